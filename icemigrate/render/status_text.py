"""Status, history and the outcome of ``apply`` for people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from icemigrate.drift.results import ReconcileResult
from icemigrate.model.imported import ImportResult
from icemigrate.render import words
from icemigrate.render.style import Style
from icemigrate.results import (
    ApplyResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
)
from icemigrate.status_results import HistoryResult, Status, TableStatus, UnlockResult

_GAP = "  "
_WIDEST = 80
_NAMED = 3
"""How many tables are named in one line."""
_REASON = 120
"""Characters of a text in a line of the history."""


def status_text(status: Status, style: Style) -> str:
    """Migrations, then tables."""
    lines = [style.dim(f"{status.project} → {status.environment} ({words.visible(status.catalog)})"), ""]
    lines += _columns(
        [
            (m.version, _state(m.state, style), words.moment(m.applied_at), words.one_line(m.description))
            for m in status.migrations
        ],
        ("version", "state", "applied at", "description"),
        style,
    )
    lines += [
        style.changed(f"{m.version} was rolled back in part; left is {words.one_line('; '.join(m.stays))}.")
        for m in status.migrations
        if m.stays
    ]
    if status.tables:
        lines.append("")
    lines += _columns(
        [
            (
                words.one_line(t.table if t.table == t.name else f"{t.table} (in the catalog: {t.name})"),
                t.version or "–",
                _presence(t, style),
                ", ".join(t.pending) or "–",
            )
            for t in status.tables
        ],
        ("table", "at", "catalog", "pending"),
        style,
    )
    lines += [f"{words.one_line(t.name)}: {words.note_line(t.note)}." for t in status.tables if t.note]
    lines += [
        style.dim(words.lying_old_line(t.name, t.old_files)) for t in status.tables if t.old_files is not None
    ]
    differing = [words.one_line(t.name) for t in status.tables if t.differs]
    if differing:
        lines += ["", style.changed(_differing(differing))]
    if status.lock is not None:
        lines += ["", style.changed(f"The lock is held by {words.one_line(status.lock.words)}.")]
    lines += ["", style.bold(_status_line(status))]
    return "\n".join(lines) + "\n"


def _state(state: str, style: Style) -> str:
    waiting = ("pending", "running", "unrecorded")
    paint = style.good if state == "applied" else style.changed if state in waiting else style.bad
    return paint(state)


def _presence(table: TableStatus, style: Style) -> str:
    expected = table.version is not None
    if not table.exists:
        return style.bad("missing") if expected else "not yet"
    if expected:
        return style.bad("another table") if table.note else "there"
    if table.ours and table.note:
        return style.bad("there, not in the history")
    return style.changed("there, half made" if table.ours else "there, not ours")


def _differing(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    named = [*names[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    verb = "differs" if len(names) == 1 else "differ"
    return f"{words.listed(named)} {verb} from what is recorded: `icemigrate drift` tells how."


def _status_line(status: Status) -> str:
    at = f"at {status.version}" if status.version else "nothing is applied"
    parts_of = [m.version for m in status.migrations if m.stays]
    if parts_of:
        at += f", with parts of {words.listed(parts_of)}"
    elif not status.version:
        at += " yet"
    pending = status.count("pending")
    parts = [at, f"{pending} pending" if pending else "nothing pending"]
    parts += [f"{n} {state}" for state in ("held", "running", "interrupted") if (n := status.count(state))]
    unrecorded = status.count("unrecorded")
    if unrecorded:
        parts.append(f"{words.count(unrecorded, 'squash', 'squashes')} to record")
    wrong = status.count("edited", "missing", "late", "partial")
    if wrong:
        parts.append(f"{wrong} that `plan` refuses")
    return f"{status.project} in {status.environment}: {', '.join(parts)}."


def history_text(history: HistoryResult, style: Style) -> str:
    """One line for each thing that happened."""
    if not history.events:
        return f"{history.project} in {history.environment}: nothing was applied yet.\n"
    rows = [
        (
            words.moment(e.at),
            _event(e.event, style),
            e.version or "–",
            "–" if e.duration_ms is None else words.duration(e.duration_ms),
            words.one_line(e.by),
            " – ".join(
                _short(text, of) for text, of in ((e.description, _WIDEST), (e.message, _REASON)) if text
            ),
        )
        for e in history.events
    ]
    lines = _columns(rows, ("at", "event", "version", "took", "by", "description"), style)
    if history.earlier:
        earlier = words.count(history.earlier, "earlier event")
        lines.append(style.dim(f"{earlier}: only the rows of the history tell of them."))
    return "\n".join(lines) + "\n"


def _short(text: str, widest: int = _WIDEST) -> str:
    line = words.one_line("; ".join(part.strip() for part in text.splitlines() if part.strip()))
    return line if len(line) <= widest else f"{line[: widest - 1].rstrip()}…"


def _event(event: str, style: Style) -> str:
    paint = (
        style.good
        if event in ("applied", "redone")
        else style.bad
        if event in ("failed", "interrupted")
        else style.changed
    )
    return paint(event.replace("_", " "))


def apply_text(result: ApplyResult, style: Style) -> str:
    """What was applied; its notes were told with the plan and on the way."""
    lines = []
    if not result.applied:
        lines.append(words.nothing_line(result))
    elif result.is_baseline:
        what = words.count(len(result.applied), "migration")
        lines.append(
            f"{style.good('Recorded')} {what} in {result.environment} as done already, no table touched: "
            f"{', '.join(result.applied)}."
        )
    else:
        what = words.count(len(result.applied), "migration")
        lines.append(
            f"{style.good('Applied')} {what} to {result.environment} in {words.duration(result.elapsed_ms)}: "
            f"{', '.join(result.applied)}."
        )
    return "\n".join(lines) + "\n"


def reconcile_text(result: ReconcileResult, style: Style) -> str:
    """What was led back; its notes were told with the plan and on the way."""
    if not result.tables:
        return f"{words.LED_BACK}\n"
    what = words.count(len(result.tables), "table")
    took = words.duration(result.elapsed_ms)
    names = ", ".join(map(words.one_line, result.tables))
    return f"{style.good('Led back')} {what} in {result.environment} in {took}: {names}.\n"


def unlock_text(result: UnlockResult, style: Style) -> str:
    """Whose lock was taken away."""
    if result.lock is None:
        return f"{result.project} in {result.environment}: nobody holds the lock.\n"
    if not result.taken:
        return "Nothing was done.\n"
    return f"{style.good('Unlocked')}: {words.one_line(result.lock.words)} does not hold the lock any more.\n"


def rollback_text(result: RollbackResult, style: Style) -> str:
    """What was taken back; its notes were told with the plan and on the way."""
    lines = []
    if result.by_others:
        lines.append(f"Nothing was done: somebody else took {', '.join(result.by_others)} back meanwhile.")
    elif not result.rolled_back:
        last = (
            "no migration is applied" if result.last is None else f"{result.last} is the last that is applied"
        )
        lines.append(f"Nothing to roll back: {last}.")
    else:
        what = words.count(len(result.rolled_back), "migration")
        lines.append(
            f"{style.good('Rolled back')} {what} in {result.environment} "
            f"in {words.duration(result.elapsed_ms)}: {', '.join(result.rolled_back)}."
        )
        one = len(result.rolled_back) == 1
        version, which = (result.rolled_back[0], "it") if one else ("VERSION", "one")
        lines.append(
            f"Held from now on; `icemigrate apply --redo {version}` applies {which} again, "
            "its file mended or not."
        )
    return "\n".join(lines) + "\n"


def repair_text(result: RepairResult, style: Style) -> str:
    """Which files count as what was applied."""
    if not result.repaired:
        return f"{result.project} in {result.environment}: no applied file was edited.\n"
    lines = [
        f"{style.good('Repaired')} {r.version}: checksum {r.was} was applied, the file has {r.now} and "
        "declares the same."
        for r in result.repaired
    ]
    return "\n".join(lines) + "\n"


def rebase_text(result: RebaseResult, style: Style) -> str:
    """Which files were renamed."""
    if not result.renamed:
        return f"{result.project} in {result.environment}: no file has to be renumbered.\n"
    lines = [
        f"{style.good('renamed')} {words.one_line(r.old)} → {words.one_line(r.new)}" for r in result.renamed
    ]
    lines += [f"{style.changed('warning:')} {words.note_line(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"


def squash_text(result: SquashResult, style: Style) -> str:
    """The file that was written, and those that it replaces."""
    lines = [f"{style.good('wrote')} {words.one_line(result.path)}"]
    lines += [f"{style.changed('removed')} {words.one_line(path)}" for path in result.removed]
    return "\n".join(lines) + "\n"


def revert_text(result: RevertResult, style: Style) -> str:
    """The file that was written."""
    notes = [style.dim(f"note: {words.note_line(note)}") for note in result.notes]
    return "\n".join([*notes, result.path]) + "\n"


def import_text(result: ImportResult, style: Style) -> str:
    """The file that was written, or what would be: a file too, its notes as comments."""
    if result.path is None:
        head, *rest = result.content.splitlines(keepends=True)
        return "".join([head, *(f"# note: {words.note_line(note)}\n" for note in result.notes), *rest])
    notes = [style.dim(f"note: {words.note_line(note)}") for note in result.notes]
    what = words.count(len(result.tables), "table")
    return "\n".join([*notes, f"{style.good('wrote')} {words.one_line(result.path)}, with {what}"]) + "\n"


def _columns(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...], style: Style) -> list[str]:
    """Rows as aligned columns below their heads; nothing where there are no rows."""
    if not rows:
        return []
    widths = [max(_width(row[i]) for row in (heads, *rows)) for i in range(len(heads))]

    def line(row: tuple[str, ...]) -> str:
        return _GAP.join(c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)).rstrip()

    return [style.dim(line(heads)), *map(line, rows)]


def _width(text: str) -> int:
    """How many cells a text takes on a terminal, escape codes not counted."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in plain)
    marks = sum(unicodedata.combining(c) != 0 for c in plain)
    return len(plain) + wide - marks
