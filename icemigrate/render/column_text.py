"""The changes of a table's columns, for people."""

from __future__ import annotations

from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.column_results import ColumnChangesResult


def column_changes_text(result: ColumnChangesResult, style: TerminalStyle) -> str:
    """The changes on one line; notes were shown with the progress."""
    table = display.one_line(result.table)
    if not result.changes:
        return f"Nothing to change: {table} has these columns already.\n"
    took, done = display.elapsed_text(result.elapsed_ms), "; ".join(map(display.one_line, result.changes))
    return f"{style.good('Changed')} {table} in {result.environment} in {took}: {done}.\n"
