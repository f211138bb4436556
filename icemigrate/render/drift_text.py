"""Drift for people: by table, what was recorded and what is there, when, and who was about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from icemigrate.drift.results import AcceptResult, DriftFact, DriftResult, TableDrift
from icemigrate.render.style import Style
from icemigrate.render.words import count, interrupted_line, moment, note_line, one_line, visible

_SYMBOLS = {"added": "+", "changed": "~", "removed": "-"}


def drift_text(result: DriftResult, style: Style) -> str:
    """What is not as it was recorded."""
    lines = [style.dim(f"{result.project} → {result.environment} ({visible(result.catalog)})"), ""]
    if not result.recorded:
        lines.append("Nothing is recorded yet, so there is nothing to compare with.")
        if result.interrupted:
            lines.append(style.bad(interrupted_line(result.interrupted)))
        return "\n".join(lines) + "\n"
    for table in result.tables:
        lines += [*_table(table, style), ""]
    lines.append((style.bad if result.drifted else style.bold)(_summary(result)))
    if result.drifted:
        lines.append("  `drift --accept` writes the migration that declares what is there;")
        lines.append("  `plan --reconcile` shows the way back to what is recorded.")
    if result.interrupted:
        lines.append(style.bad(interrupted_line(result.interrupted)))
    return "\n".join(lines) + "\n"


def accept_text(result: AcceptResult, style: Style) -> str:
    """The file that was written, and what no file can say."""
    if result.path is None:
        lines = ["Nothing was written: there is nothing that a migration could declare."]
    else:
        lines = [
            f"{style.good('wrote')} {one_line(result.path)}: review it, then `icemigrate apply` records it."
        ]
    lines += [f"{style.changed('note')}: {note_line(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"


def _table(table: TableDrift, style: Style) -> Iterator[str]:
    label = table.table if table.table == table.name else f"{table.table} (in the catalog: {table.name})"
    symbol = "-" if table.state in ("gone", "replaced") else "→" if table.state == "renamed" else "~"
    yield f"{style.symbol(symbol)} {style.bold(one_line(label))}{_state(table)}"
    last: tuple[str, ...] = ()
    for fact in table.facts:
        yield f"    {_fact(fact, style)}"
        told = _traced(fact)
        # What is said of one fact is mostly said of all.
        if told != last:
            yield from (f"        {style.dim(line)}" for line in told)
        last = told
    for note in table.notes:
        yield f"    {style.dim(f'note: {note_line(note)}')}"


def _state(table: TableDrift) -> str:
    words = {
        "gone": ": gone, the catalog has no such table",
        "replaced": ": gone, another table has its name",
        "renamed": f": renamed to {one_line(table.found or '')}",
    }
    pending = f", which {table.pending} wants: done already" if table.pending else ""
    return f"{words.get(table.state, '')}{pending}"


def _fact(fact: DriftFact, style: Style) -> str:
    if fact.change == "added":
        values = f"now {fact.actual}"
    elif fact.change == "removed":
        values = f"recorded {fact.recorded}, now gone"
    else:
        values = f"recorded {fact.recorded}, now {fact.actual}"
    asides = {
        "done already": f"done already: {fact.pending} wants it",
        "unmanaged": "unmanaged: no file ever declared it",
        "expired": "it was to be kept for a time, and expiring snapshots takes it away then",
    }
    aside = fact.note or asides.get(fact.told)
    text = f"{style.symbol(_SYMBOLS[fact.change])} {one_line(fact.fact)}: {one_line(values)}"
    return text if aside is None else f"{text} {style.dim(f'({aside})')}"


def _traced(fact: DriftFact) -> tuple[str, ...]:
    """When it was done and who was about, as far as that is known."""
    if fact.before is None:
        return ()
    if fact.after is None:
        when = f"before {moment(fact.before)}"
    elif fact.after == fact.before:
        when = f"at {moment(fact.before)}"
    else:
        when = f"between {' and '.join(_two_moments(fact.after, fact.before))}"
    if not fact.writers:
        return (when,)
    return (when, f"writers in that time: {'; '.join(map(one_line, fact.writers))}")


def _two_moments(first: datetime, second: datetime) -> tuple[str, str]:
    """Both, to the millisecond where they would look the same."""
    texts = moment(first), moment(second)
    if texts[0] != texts[1]:
        return texts
    one, other = (f"{at.microsecond // 1000:03}" for at in (first, second))
    return texts[0].replace(" UTC", f".{one} UTC"), texts[1].replace(" UTC", f".{other} UTC")


def _summary(result: DriftResult) -> str:
    facts = [f for t in result.tables for f in t.facts]
    drift = sum(f.told == "drift" for f in facts)
    moved = sum(t.state != "there" and t.pending is None for t in result.tables)
    tables = sum(t.drifted for t in result.tables)
    parts = [f"{count(drift, 'fact')} of {count(tables, 'table')}" if drift else ""]
    parts.append(f"{count(moved, 'table')} not there under the recorded name" if moved else "")
    asides = [
        f"{done} done already" if (done := _number(facts, "done already")) else "",
        f"{foreign} that no file declared" if (foreign := _number(facts, "unmanaged")) else "",
        f"{expired} expired" if (expired := _number(facts, "expired")) else "",
    ]
    said = ", ".join(filter(None, parts))
    head = f"Drift: {said}" if said else f"No drift in {count(result.compared, 'table')}"
    beside = ", ".join(filter(None, asides))
    if not beside:
        return f"{head}."
    return f"{head}; besides them, {beside}." if drift else f"{head}; {beside}."


def _number(facts: list[DriftFact], told: str) -> int:
    return sum(f.told == told for f in facts)
