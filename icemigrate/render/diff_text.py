"""The result of ``diff`` as text."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.alike_findings import note_lines
from icemigrate.render.alike_tables import TableLines, alike_tables
from icemigrate.render.phrases import WRITTEN_NEXT
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.diff_results import DiffResult

_DROPS = "left out, because only `--include-drops` drops it:"


def diff_text(result: DiffResult, style: TerminalStyle) -> str:
    """The written file and what it does, or its content on a dry run, with the other lines as comments."""
    if result.content and result.path is None:
        head, *rest = result.content.splitlines(keepends=True)
        return "".join([head, *(f"# {line}\n" for line in _remarks(result, style)), *rest])
    lines = [style.dim(line) for line in _remarks(result, style)]
    if result.path is None:
        return "\n".join([*lines, "Nothing to write: the declared state has all of it."]) + "\n"
    blocks = (
        TableLines((table.table,), tuple(f"      {display.note_line(change)}" for change in table.changes))
        for table in result.tables
    )
    for group in alike_tables(blocks, display.note_line, shows_all=style.details):
        lines.append(f"  ~ {display.note_line(result.tables[group.members[0]].table)}")
        if (others := group.others_text(display.note_line)) is not None:
            lines.append(f"      {style.dim(others)}")
        lines += group.lines
    what = format_count(len(result.tables), "table")
    lines.append(f"{style.good('wrote')} {display.path_text(result.path)}, with {what}")
    lines.append(WRITTEN_NEXT)
    return "\n".join(lines) + "\n"


def _remarks(result: DiffResult, style: TerminalStyle) -> Iterator[str]:
    yield from (f"note: {note}" for note in note_lines(result.notes, style))
    # On a dry run, the comment of the file says it.
    if result.review and result.path is not None:
        place = "instead of its line `allow`" if result.allow else "as a line of it"
        yield f"review `retype` and its checks in the file, then consent to it there, {place}:"
        yield f"  allow: [{', '.join(map(display.note_line, (*result.allow, *result.review)))}]"
    if result.left_out:
        yield _DROPS
        yield from (f"  {one}" for one in note_lines(result.left_out, style))
