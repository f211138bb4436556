"""Drift as text: by table, the recorded and the current values, times and writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from icemigrate.diagnostics import format_count
from icemigrate.render.alike_findings import note_lines
from icemigrate.render.alike_tables import AlikeTables, TableLines, alike_tables, without_ids
from icemigrate.render.display import note_line, one_line, path_text, timestamp_text, visible_text
from icemigrate.render.phrases import interrupted_line, join_with_and
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.drift_results import AcceptResult, DriftFact, DriftResult, TableDrift

_SYMBOLS = {"added": "+", "changed": "~", "removed": "-"}
_MOST_WRITERS = 10
"""Writers of one period that are named."""


def drift_text(result: DriftResult, style: TerminalStyle) -> str:
    """The differences from the recorded state."""
    lines = [style.dim(f"{result.project} → {result.environment} ({visible_text(result.catalog)})"), ""]
    if not result.recorded:
        lines.append("Nothing is recorded yet, so there is nothing to compare with.")
        if result.interrupted:
            lines.append(style.bad(interrupted_line(result.interrupted)))
        return "\n".join(lines) + "\n"
    for group in _groups(result.tables, style):
        lines += [*group, ""]
    lines.append((style.bad if result.drifted else style.bold)(_summary(result)))
    if result.drifted:
        ends = [*(";" for _ in result.resolutions[1:]), "."]
        lines += [f"  {one_line(text)}{end}" for text, end in zip(result.resolutions, ends, strict=False)]
    if result.undeclared:
        others = format_count(result.undeclared, "table")
        verb = "is" if result.undeclared == 1 else "are"
        lines.append(
            style.dim(
                f"note: {others} in the namespaces of these tables {verb} not declared: `icemigrate import` "
                "declares them"
            )
        )
    if result.interrupted:
        lines.append(style.bad(interrupted_line(result.interrupted)))
    return "\n".join(lines) + "\n"


def accept_text(result: AcceptResult, style: TerminalStyle) -> str:
    """The written file, and the facts that no file can declare."""
    if result.path is None:
        lines = ["Nothing was written: there is nothing that a migration can declare."]
    else:
        lines = [
            f"{style.good('wrote')} {path_text(result.path)}: review it, then `icemigrate apply` records it."
        ]
    lines += [f"{style.changed('note')}: {note}" for note in note_lines(result.notes, style)]
    return "\n".join(lines) + "\n"


def _groups(tables: Sequence[TableDrift], style: TerminalStyle) -> Iterator[Iterator[str]]:
    """The lines of each table, or of each group of tables that differ in the same way."""
    blocks = (
        TableLines(
            tuple(dict.fromkeys((table.table, table.name, table.found or table.name))),
            (),
            tuple(
                without_ids(line)
                for line in (_head(table, style), *_facts(table, style), *_notes(table, style))
            ),
        )
        for table in tables
    )
    for group in alike_tables(blocks, one_line, shows_all=style.details):
        alike = [tables[at] for at in group.members]
        yield _table(alike[0], style) if len(alike) == 1 else _table_for_all(alike, group, style)


def _table(table: TableDrift, style: TerminalStyle) -> Iterator[str]:
    yield _head(table, style)
    last: tuple[str, ...] = ()
    for fact in table.facts:
        yield f"    {_fact(fact, style)}"
        traced = _traced(fact)
        # The note of one fact usually applies to all.
        if traced != last:
            yield from (f"        {style.dim(line)}" for line in traced)
        last = traced
    yield from _notes(table, style)


def _table_for_all(tables: Sequence[TableDrift], group: AlikeTables, style: TerminalStyle) -> Iterator[str]:
    """The first one of several tables, with the names of the others and the times of all their changes."""
    yield _head(tables[0], style)
    yield f"    {style.dim(group.others_text(one_line) or '')}"
    yield from _facts(tables[0], style)
    traced = [fact for table in tables for fact in table.facts if fact.before is not None]
    if traced:
        latest = max(fact.before for fact in traced if fact.before is not None)
        after = [fact.after for fact in traced]
        earliest = min(at for at in after if at is not None) if None not in after else None
        writers = tuple(dict.fromkeys(name for fact in traced for name in fact.writers))
        yield from (f"        {style.dim(line)}" for line in _period(earliest, latest, writers))
        by = dict.fromkeys(one_line(fact.by) for fact in traced if fact.by is not None)
        if by:
            yield f"        {style.dim(f'manual changes by {join_with_and(by)}, with `icemigrate table`')}"
    yield from _notes(tables[0], style)


def _head(table: TableDrift, style: TerminalStyle) -> str:
    label = table.table if table.table == table.name else f"{table.table} (in the catalog: {table.name})"
    symbols = {"gone": "-", "replaced": "-", "renamed": "→", "unreadable": "?"}
    symbol = symbols.get(table.state, "~")
    return f"{style.symbol(symbol)} {style.bold(one_line(label))}{_state(table)}"


def _facts(table: TableDrift, style: TerminalStyle) -> Iterator[str]:
    yield from (f"    {_fact(fact, style)}" for fact in table.facts)


def _notes(table: TableDrift, style: TerminalStyle) -> Iterator[str]:
    yield from (f"    {style.dim(f'note: {note_line(note)}')}" for note in table.notes)


def _state(table: TableDrift) -> str:
    words = {
        "gone": ": missing from the catalog",
        "unreadable": ": cannot be read",
        "replaced": ": missing, another table has its name",
        "renamed": f": renamed to {one_line(table.found or '')}",
    }
    pending = f", as {table.pending} declares: done already" if table.pending else ""
    return f"{words.get(table.state, '')}{pending}"


def _fact(fact: DriftFact, style: TerminalStyle) -> str:
    if fact.change == "added":
        values = f"now {fact.actual}"
    elif fact.change == "removed":
        values = f"recorded {fact.recorded}, now gone"
    else:
        values = f"recorded {fact.recorded}, now {fact.actual}"
    asides = {
        "done already": f"done already: {fact.pending} declares it",
        "unmanaged": "unmanaged: no migration declared it",
        "expired": "its retention is over: expiring snapshots removes it",
    }
    aside = fact.note or asides.get(fact.told)
    text = f"{style.symbol(_SYMBOLS[fact.change])} {one_line(fact.fact)}: {one_line(values)}"
    return text if aside is None else f"{text} {style.dim(f'({aside})')}"


def _traced(fact: DriftFact) -> tuple[str, ...]:
    """The time of a change and its writers, as far as they are known."""
    if fact.before is None:
        return ()
    if fact.by is not None:
        when = timestamp_text(fact.before)
        return (f"manual change at {when} by {one_line(fact.by)}, with `icemigrate table`",)
    return _period(fact.after, fact.before, fact.writers)


def _period(after: datetime | None, before: datetime, writers: Sequence[str]) -> tuple[str, ...]:
    """When something changed, and the writers in that period."""
    if after is None:
        when = f"before {timestamp_text(before)}"
    elif after == before:
        when = f"at {timestamp_text(before)}"
    else:
        when = f"between {' and '.join(_two_timestamps(after, before))}"
    if not writers:
        return (when,)
    named = [one_line(name) for name in writers[:_MOST_WRITERS]]
    if len(writers) > _MOST_WRITERS:
        named.append(f"{len(writers) - _MOST_WRITERS} more")
    return (when, f"writers in that period: {'; '.join(named)}")


def _two_timestamps(first: datetime, second: datetime) -> tuple[str, str]:
    """Both timestamps, to the millisecond where they would look the same."""
    texts = timestamp_text(first), timestamp_text(second)
    if texts[0] != texts[1]:
        return texts
    one, other = (f"{at.microsecond // 1000:03}" for at in (first, second))
    return texts[0].replace(" UTC", f".{one} UTC"), texts[1].replace(" UTC", f".{other} UTC")


def _summary(result: DriftResult) -> str:
    facts = [f for t in result.tables for f in t.facts]
    drift = sum(f.told == "drift" for f in facts)
    moved = sum(t.state not in ("there", "unreadable") and t.pending is None for t in result.tables)
    tables = sum(t.drifted for t in result.tables)
    parts = [f"{format_count(drift, 'fact')} of {format_count(tables, 'table')}" if drift else ""]
    parts.append(f"{format_count(moved, 'table')} missing under the recorded name" if moved else "")
    asides = [
        f"{done} done already" if (done := _number(facts, "done already")) else "",
        f"{foreign} that no migration declared" if (foreign := _number(facts, "unmanaged")) else "",
        f"{expired} expired" if (expired := _number(facts, "expired")) else "",
        f"{format_count(len(result.unreadable), 'table')} not compared" if result.unreadable else "",
    ]
    said = ", ".join(filter(None, parts))
    head = f"Drift: {said}" if said else f"No drift in {format_count(result.compared, 'table')}"
    beside = ", ".join(filter(None, asides))
    if not beside:
        return f"{head}."
    return f"{head}; also {beside}." if drift else f"{head}; {beside}."


def _number(facts: list[DriftFact], status: str) -> int:
    return sum(f.told == status for f in facts)
