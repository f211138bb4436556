"""The result of ``ingest propose`` as text."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.phrases import WRITTEN_NEXT
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.attribute_results import ProposeResult

_MOST_LINES = 20
"""Attributes without a column that are all shown."""


def propose_text(result: ProposeResult, style: TerminalStyle) -> str:
    """The columns and the written file, or its content on a dry run, with the other lines as comments."""
    if result.content and result.path is None:
        head, *rest = result.content.splitlines(keepends=True)
        return "".join([head, *(f"# {line}\n" for line in _remarks(result)), *rest])
    lines = [style.dim(line) for line in _remarks(result)]
    if result.path is None:
        return "\n".join([*lines, "Nothing to propose: no attribute needs a column."]) + "\n"
    for one in result.columns:
        source = display.note_line(one.attribute)
        rows = format_count(one.rows, "row")
        lines.append(f"  + {one.column} {one.type}  {source} of {one.kind}, {rows}")
    columns = format_count(len(result.columns), "column")
    lines.append(f"{style.good('wrote')} {display.path_text(result.path)}, with {columns}")
    lines.append(WRITTEN_NEXT)
    return "\n".join(lines) + "\n"


def _remarks(result: ProposeResult) -> Iterator[str]:
    yield from (f"note: {display.note_line(note)}" for note in result.notes)
    for one in result.in_map[:_MOST_LINES]:
        attribute, reason = display.note_line(one.attribute), display.note_line(one.reason)
        yield f"in the map: {attribute} of {one.kind}: {reason}"
    if len(result.in_map) > _MOST_LINES:
        yield f"and {len(result.in_map) - _MOST_LINES:,} more in the map, which `--format json` lists"
