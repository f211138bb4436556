"""Results of the commands of `table` for people."""

from __future__ import annotations

from icemigrate.render import phrases
from icemigrate.render.status_text import text_columns
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.table_results import SnapshotEntry, SnapshotsResult


def snapshots_text(result: SnapshotsResult, style: TerminalStyle) -> str:
    """A line for each snapshot."""
    if not result.snapshots:
        return f"table `{phrases.visible_text(result.table)}` has no snapshots\n"
    rows = [_snapshot_row(entry) for entry in result.snapshots]
    header = ("snapshot", "committed at", "operation", "added", "deleted", "rows", "branches and tags")
    return "\n".join(text_columns(rows, header, style)) + "\n"


def _snapshot_row(entry: SnapshotEntry) -> tuple[str, ...]:
    counts = (entry.added_rows, entry.deleted_rows, entry.rows)
    return (
        str(entry.snapshot_id),
        phrases.timestamp_text(entry.at),
        phrases.one_line(entry.operation or "-"),
        *("-" if count is None else f"{count:,}" for count in counts),
        phrases.one_line(", ".join((*entry.branches, *entry.tags))),
    )
