"""The result of ``adopt-parquet``, for people."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.adoption_results import AdoptionResult


def adoption_text(result: AdoptionResult, style: TerminalStyle) -> str:
    """The files and rows, and what that means for the table."""
    return "\n".join([_head(result), *(f"  {style.dim(line)}" for line in _notes(result))]) + "\n"


def _head(result: AdoptionResult) -> str:
    name, path = display.one_line(result.table), display.one_line(result.path)
    if not result.files:
        return f"No file of {path} is new for {name}: nothing was changed."
    files = format_count(result.files, "file")
    what = f"{files} with {format_count(result.rows, 'row')}"
    if not result.done:
        verb, word = ("take", "out of") if result.is_undo else ("adopt", "into")
        return f"Would {verb} {what} of {path} {word} {name}; nothing was changed."
    took = display.elapsed_text(result.elapsed_ms)
    if result.is_undo:
        return f"Took {what} of {path} out of {name} in {took}: snapshot {result.snapshot_id}."
    return f"Adopted {what} of {path} into {name} in {took}: snapshot {result.snapshot_id}."


def _notes(result: AdoptionResult) -> Iterator[str]:
    if result.already_adopted:
        yield f"{format_count(result.already_adopted, 'file')}, or the rows of them, are in the table already"
    if result.empty:
        yield f"{format_count(result.empty, 'file')} without rows are left out"
    if result.sets_name_mapping:
        yield "the files have no field ids: `schema.name-mapping.default` lets readers find columns by name"
    if result.disables_gc:
        yield "`gc.enabled` is false: no client deletes files of the table, and its snapshots do not expire"
    if result.is_undo and not result.gc_enabled:
        yield "older snapshots have the files: `gc.enabled` stays false, so that no client deletes them"
    if result.unread is not None:
        yield f"the rows were not read for a comparison with the footers, because {result.unread}"
