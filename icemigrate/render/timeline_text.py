"""The table history for people."""

from __future__ import annotations

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.table_cells import short_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.timeline_results import TimelineResult

_LONG = 120


def timeline_text(result: TimelineResult, style: TerminalStyle) -> str:
    """A line for each event, the oldest first."""
    rows = [
        (
            f"{'before ' if entry.is_earlier else ''}{display.timestamp_text(entry.at)}",
            entry.kind,
            short_text(entry.version or "", 20),
            short_text(entry.text, _LONG),
        )
        for entry in result.entries
    ]
    lines = text_columns(rows, ("at", "kind", "version", "event"), style)
    if (left := result.total - len(rows)) > 0:
        lines.append(style.dim(f"{left:,} older events are not shown: `--limit 0` shows all."))
    if result.unreadable_files:
        files = format_count(result.unreadable_files, "older metadata file")
        lines.append(style.dim(f"{files} cannot be read, so earlier events may be missing."))
    return "\n".join(lines) + "\n"
