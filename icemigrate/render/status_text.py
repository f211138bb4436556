"""Status, history and the outcome of ``apply`` for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from icemigrate.diagnostics import format_count
from icemigrate.render import display, phrases
from icemigrate.render.alike_findings import note_lines
from icemigrate.render.alike_tables import alike_lines, alike_rows, some_names
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.command_results import (
    ApplyResult,
    ImportResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
)
from icemigrate.results.drift_results import ReconcileResult
from icemigrate.results.status_results import (
    HistoryEvent,
    HistoryResult,
    MigrationStatus,
    Status,
    TableStatus,
    UnlockResult,
    WaitingValues,
)

_WIDEST = 80
_NAMED = 3
"""How many tables are named in one line."""
_REASON = 120
"""Characters of a text in a line of the history."""


_SHORTEST_MS = 50
"""A shorter time is shown as a dash, because it would round to 0.0 s."""


def status_text(status: Status, style: TerminalStyle) -> str:
    """Migrations, then tables."""
    lines = [
        style.dim(f"{status.project} → {status.environment} ({display.visible_text(status.catalog)})"),
        "",
    ]
    lines += text_columns(
        [
            (
                m.version,
                _state(_shown_state(m), style),
                display.timestamp_text(m.applied_at),
                display.one_line(m.description),
            )
            for m in status.migrations
        ],
        ("version", "state", "applied at", "description"),
        style,
    )
    lines += [
        style.changed(
            f"{m.version} was rolled back in part; still present: {display.one_line('; '.join(m.stays))}."
        )
        for m in status.migrations
        if m.stays
    ]
    lines += [
        style.dim(f"{m.version} was rolled back at {display.timestamp_text(m.rolled_back_at)}.")
        for m in status.migrations
        if m.rolled_back_at is not None
    ]
    lines += [style.changed(_waiting_line(m.version, w)) for m in status.migrations for w in m.waiting]
    progress = {m.version: m.lists for m in status.migrations}
    of_lists = (
        *phrases.extension_lines(progress, shows_all=style.details),
        *phrases.left_value_lines(progress, shows_all=style.details),
    )
    lines += [style.changed(f"{display.one_line(text)}.") for text in of_lists]
    if status.unread_lists is not None:
        lines.append(style.bad(f"The values of lists are unknown: {display.one_line(status.unread_lists)}."))
    lines += [
        style.changed(f"{m.version}: {display.one_line(text)}.")
        for m in status.migrations
        for text in m.not_restorable
    ]
    lines += [style.changed(text) for text in phrases.hidden_losses_lines(status.hidden_losses)]
    lines += [
        style.bad(f"{m.version}: {display.one_line(m.interruption)}.")
        for m in status.migrations
        if m.interruption
    ]
    lines += [
        style.bad(f"{m.version} {phrases.REFUSED_STATES[_shown_state(m)]}.")
        for m in status.migrations
        if m.state in phrases.REFUSED_STATES
    ]
    if status.tables:
        lines.append("")
    rows = [
        (
            display.one_line(t.table if t.table == t.name else f"{t.table} (in the catalog: {t.name})"),
            t.version or "–",
            _presence(t, style),
            ", ".join(t.pending) or "–",
        )
        for t in status.tables
    ]
    lines += text_columns(
        rows if style.details else alike_rows(rows),
        ("table", "at", "catalog", "pending"),
        style,
    )
    for remarks in _remarks(status.tables, style):
        lines += alike_lines(remarks, shows_all=style.details, escape=display.one_line)
    differing = [display.one_line(t.name) for t in status.tables if t.differs]
    if differing:
        lines += ["", style.changed(_differing(differing))]
    if status.lock is not None:
        lines += ["", style.changed(f"The lock is held by {display.one_line(status.lock.words)}.")]
    lines += ["", style.bold(_status_line(status))]
    return "\n".join(lines) + "\n"


def _remarks(tables: Sequence[TableStatus], style: TerminalStyle) -> Iterator[Iterable[tuple[str, str]]]:
    """Each kind of remark, as the names of tables and their lines."""
    yield ((t.name, f"{display.one_line(t.name)}: {display.note_line(t.note)}.") for t in tables if t.note)
    yield (
        (t.name, style.bad(f"{display.one_line(t.name)} cannot be read: {display.note_line(t.unreadable)}."))
        for t in tables
        if t.unreadable
    )
    yield ((t.name, style.dim(phrases.kept_view_line(t.name, view))) for t in tables for view in t.views)
    yield (
        (t.name, style.dim(phrases.old_partition_line(t.name, t.old_files)))
        for t in tables
        if t.old_files is not None
    )


def _waiting_line(version: str, waiting: WaitingValues) -> str:
    values = display.one_line(f"`{waiting.table}`: only {waiting.kept_in} has values of {waiting.listed}")
    ways = (
        f"`icemigrate rollback --only {version} --refill`, or `restore_columns` with `refill: true` in a new "
        "migration, restores them"
    )
    return f"{version} was rolled back without all values of {values}; {ways}."


_STATE_TEXTS = {"held": "rolled back", "late": "out of order"}
"""Texts for states whose name in JSON is another."""


def _shown_state(migration: MigrationStatus) -> str:
    return phrases.OTHER_FILE if migration.is_other_file else migration.state


def _state(state: str, style: TerminalStyle) -> str:
    waiting = ("pending", "running", "unrecorded")
    paint = style.good if state == "applied" else style.changed if state in waiting else style.bad
    return paint(_STATE_TEXTS.get(state, state))


def _presence(table: TableStatus, style: TerminalStyle) -> str:
    expected = table.version is not None
    if table.unreadable:
        return style.bad("unreadable")
    if not table.exists:
        return style.bad("missing") if expected else "not yet"
    if expected:
        return style.bad("another table") if table.note else "there"
    if table.ours and table.note:
        return style.bad("there, not in the history")
    return style.changed("there, incomplete" if table.ours else "there, unmanaged")


def _differing(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    named = [*names[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    verb = "differs" if len(names) == 1 else "differ"
    return f"{phrases.join_with_and(named)} {verb} from the recorded state: `icemigrate drift` shows how."


def _status_line(status: Status) -> str:
    at = f"at {status.version}" if status.version else "nothing is applied"
    parts_of = [m.version for m in status.migrations if m.stays]
    if parts_of:
        at += f", with parts of {phrases.join_with_and(parts_of)}"
    elif not status.version:
        at += " yet"
    pending = status.count("pending")
    extended = status.extended_next
    others = " else" if extended or status.count("running", "interrupted") else ""
    parts = [at, f"{pending} pending" if pending else f"nothing{others} pending"]
    parts[1:1] = [f"{n} {state}" for state in ("running", "interrupted") if (n := status.count(state))]
    if extended:
        parts.insert(1, f"{extended} to extend")
    if held := status.count("held"):
        parts.append(f"{held} {_STATE_TEXTS['held']}")
    unrecorded = status.count("unrecorded")
    if unrecorded:
        parts.append(f"{format_count(unrecorded, 'squash', 'squashes')} to record")
    wrong = status.count(*phrases.REFUSED_STATES)
    if wrong:
        parts.append(f"{wrong} refused by `plan`")
    return f"{status.project} in {status.environment}: {', '.join(parts)}."


def history_text(history: HistoryResult, style: TerminalStyle) -> str:
    """One line for each event."""
    if not history.events:
        return f"{history.project} in {history.environment}: no migration was applied yet.\n"
    rows = [
        (
            display.timestamp_text(e.at),
            _event(e, style),
            e.version or "–",
            "–" if (e.duration_ms or 0) < _SHORTEST_MS else display.elapsed_text(e.duration_ms or 0),
            display.one_line(e.by),
            " – ".join(
                _short(text, of) for text, of in ((e.description, _WIDEST), (e.message, _REASON)) if text
            ),
        )
        for e in history.events
    ]
    lines = text_columns(rows, ("at", "event", "version", "took", "by", "description"), style)
    if history.earlier:
        earlier = format_count(history.earlier, "earlier event")
        lines.append(style.dim(f"{earlier} not shown: the history table has them."))
    return "\n".join(lines) + "\n"


def _short(text: str, widest: int = _WIDEST) -> str:
    line = display.one_line("; ".join(part.strip() for part in text.splitlines() if part.strip()))
    return line if len(line) <= widest else f"{line[: widest - 1].rstrip()}…"


def _event(event: HistoryEvent, style: TerminalStyle) -> str:
    paint = (
        style.good
        if event.event in ("applied", "redone")
        else style.bad
        if event.event in ("failed", "interrupted")
        else style.changed
    )
    return paint(f"{event.action or ''} {event.event.replace('_', ' ')}".strip())


def apply_text(result: ApplyResult, style: TerminalStyle) -> str:
    """The applied versions; notes were shown with the plan and its progress."""
    lines = []
    if not result.applied:
        lines.append(phrases.nothing_line(result))
    elif result.is_baseline:
        what = format_count(len(result.applied), "migration")
        lines.append(
            f"{style.good('Baselined')} {what} in {result.environment}: {', '.join(result.applied)}; "
            "no tables were changed."
        )
    else:
        what = format_count(len(result.applied), "migration")
        took = display.elapsed_text(result.elapsed_ms)
        lines.append(
            f"{style.good('Applied')} {what} to {result.environment} in {took}: {', '.join(result.applied)}."
        )
    return "\n".join(lines) + "\n"


def reconcile_text(result: ReconcileResult, style: TerminalStyle) -> str:
    """The reconciled tables; notes were shown with the plan and its progress."""
    if not result.tables:
        return f"{phrases.NOTHING_TO_RECONCILE}\n"
    what = format_count(len(result.tables), "table")
    took = display.elapsed_text(result.elapsed_ms)
    names = ", ".join(some_names(result.tables, display.one_line, shows_all=style.details))
    return f"{style.good('Reconciled')} {what} in {result.environment} in {took}: {names}.\n"


def unlock_text(result: UnlockResult, style: TerminalStyle) -> str:
    """The former holder of the lock."""
    if result.lock is None:
        return f"{result.project} in {result.environment}: no process holds the lock.\n"
    if not result.taken:
        return "Cancelled: the lock was not released.\n"
    return f"{style.good('Unlocked')}: {display.one_line(result.lock.words)} no longer holds the lock.\n"


def rollback_text(result: RollbackResult, style: TerminalStyle) -> str:
    """The versions that were undone; notes were shown with the plan and its progress."""
    lines = []
    if result.by_others:
        lines.append(f"Nothing to do: another process already rolled back {', '.join(result.by_others)}.")
    elif not result.rolled_back:
        last = (
            "no migration is applied" if result.last is None else f"{result.last} is the last that is applied"
        )
        lines.append(f"Nothing to roll back: {last}.")
    else:
        what = format_count(len(result.rolled_back), "migration")
        lines.append(
            f"{style.good('Rolled back')} {what} in {result.environment} "
            f"in {display.elapsed_text(result.elapsed_ms)}: {', '.join(result.rolled_back)}."
        )
        first, last = min(result.rolled_back, key=int), max(result.rolled_back, key=int)
        versions, which, files = f"{first}..{last}", "them", "their files were"
        if first == last:
            versions, which, files = first, "it", "its file was"
        lines.append(
            f"`icemigrate apply --redo {versions}` applies {which} again, also after {files} edited."
        )
    return "\n".join(lines) + "\n"


def repair_text(result: RepairResult, style: TerminalStyle) -> str:
    """Which files count as what was applied, or which tables were adopted."""
    if result.action == "adopt":
        return _adopted_text(result, style)
    if result.action == "abandon":
        return _abandoned_text(result, style)
    if not result.repaired:
        return f"{result.project} in {result.environment}: no applied file was edited.\n"
    lines = [
        (
            f"{style.good('Repaired')} {r.version}: applied with checksum {r.was}; the file now "
            f"has {r.now} and declares the same."
        )
        for r in result.repaired
    ]
    return "\n".join(lines) + "\n"


def _abandoned_text(result: RepairResult, style: TerminalStyle) -> str:
    """Which rolled-back versions no redo applies again."""
    if not result.abandoned:
        return f"{result.project} in {result.environment}: these versions are abandoned already.\n"
    versions = ", ".join(result.abandoned)
    what, files = (
        ("them", "their files if they still exist")
        if len(result.abandoned) > 1
        else ("it", "its file if it still exists")
    )
    return (
        f"{style.good('Abandoned')} {versions} in {result.environment}: no run applies {what} again.\n"
        f"Remove {files}; otherwise an environment that has not applied {what} applies {what}.\n"
    )


def _adopted_text(result: RepairResult, style: TerminalStyle) -> str:
    """Which tables that were created again are recorded now."""
    if not result.adopted:
        return f"{result.project} in {result.environment}: no table was created again.\n"
    lines = [
        f"{style.good('Adopted')} {display.one_line(a.table)}: table {display.one_line(a.now)} takes the "
        f"place of table {display.one_line(a.was)}."
        for a in result.adopted
    ]
    lines.append("`icemigrate drift` shows in what the tables differ from their recorded state.")
    return "\n".join(lines) + "\n"


def rebase_text(result: RebaseResult, style: TerminalStyle) -> str:
    """Which files were renamed."""
    if not result.renamed:
        return f"{result.project} in {result.environment}: no file needs a new number.\n"
    lines = [
        f"{style.good('renamed')} {display.path_text(r.old)} → {display.path_text(r.new)}"
        for r in result.renamed
    ]
    lines += [f"{style.changed('warning:')} {display.note_line(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"


def squash_text(result: SquashResult, style: TerminalStyle) -> str:
    """The written file, and the files that it replaces."""
    lines = [f"{style.good('wrote')} {display.path_text(result.path)}"]
    lines += [f"{style.changed('removed')} {display.path_text(path)}" for path in result.removed]
    return "\n".join(lines) + "\n"


def revert_text(result: RevertResult, style: TerminalStyle) -> str:
    """The file that was written."""
    notes = [style.dim(f"note: {display.note_line(note)}") for note in result.notes]
    return "\n".join([*notes, result.path]) + "\n"


def import_text(result: ImportResult, style: TerminalStyle) -> str:
    """The written file, or its content on a dry run, with notes as comments."""
    if result.path is None:
        head, *rest = result.content.splitlines(keepends=True)
        return "".join([head, *(f"# note: {note}\n" for note in note_lines(result.notes, style)), *rest])
    notes = [style.dim(f"note: {note}") for note in note_lines(result.notes, style)]
    what = format_count(len(result.tables), "table")
    wrote = f"{style.good('wrote')} {display.path_text(result.path)}, with {what}"
    return "\n".join([*notes, wrote, phrases.WRITTEN_NEXT]) + "\n"
