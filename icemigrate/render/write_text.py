"""Results of commands that create a table or write rows, for people."""

from __future__ import annotations

import shlex

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.write_results import CreateTableResult, InsertResult, RowChangeResult


def create_table_text(result: CreateTableResult, style: TerminalStyle) -> str:
    """The new table, and how a project adopts it."""
    name = display.one_line(result.table)
    columns = format_count(len(result.columns), "column")
    verb = "Created" if result.done else "Would create"
    rows = [
        ("", display.one_line(c.name), display.one_line(c.type), "required" if c.required else "")
        for c in result.columns
    ]
    lines = [
        f"{verb} table {name} in {display.one_line(result.environment)}: {columns}, "
        f"format version {result.format_version}.",
        *text_columns(rows, ("",) * 4, style)[1:],
    ]
    if result.is_inferred:
        types = "Each type fits all values of the file"
        if not result.has_rows:
            types = "The file has a header and no rows, so each column is a string"
        lines.append(style.dim(f"{types}; `--schema` with YAML sets other types."))
    if result.done:
        word = shlex.quote(display.one_line(result.table))
        hint = f"No migration declares it: `icemigrate import {word}` writes one that does."
        lines.append(style.dim(hint))
    return "\n".join(lines) + "\n"


def insert_text(result: InsertResult, style: TerminalStyle) -> str:
    """The inserted rows, and those that were left out."""
    name = display.one_line(result.table)
    lines = []
    if result.snapshot_id is None:
        why = "" if result.bad_rows else ": the data has no rows"
        lines.append(f"Inserted no rows into {name}{why}.")
    else:
        rows, files = format_count(result.rows, "row"), format_count(result.files, "file")
        lines.append(
            f"Inserted {rows} into {name} in {display.elapsed_text(result.elapsed_ms)} ({files}): "
            f"snapshot {result.snapshot_id}."
        )
    if result.bad_rows:
        verb = "does" if result.bad_rows == 1 else "do"
        lines.append(
            style.changed(f"{format_count(result.bad_rows, 'row')} {verb} not fit the table")
            + f": see {display.one_line(result.bad_rows_file or '')}."
        )
    return "\n".join(lines) + "\n"


def row_change_text(result: RowChangeResult, _style: TerminalStyle) -> str:
    """The changed rows, and the files that were rewritten for them."""
    name = display.one_line(result.table)
    counts = {"inserted": result.inserted, "updated": result.updated, "deleted": result.deleted}
    parts = [f"{verb} {format_count(count, 'row')}" for verb, count in counts.items() if count]
    unchanged = f" ({format_count(result.unchanged, 'row')} unchanged)" if result.unchanged else ""
    if result.snapshot_id is None:
        return f"No row of {name} changes{unchanged}.\n"
    words = " and ".join(parts)
    files = _files_text(result.files_removed, result.files_added)
    took = display.elapsed_text(result.elapsed_ms)
    head = f"{words[:1].upper()}{words[1:]} of {name} in {took}{unchanged}"
    return f"{head}; {files}: snapshot {result.snapshot_id}.\n"


def _files_text(removed: int, added: int) -> str:
    if removed and added:
        return f"{format_count(removed, 'file')} replaced by {added}"
    if not removed and not added:
        return "the data files stay"  # delete files mark the rows
    return f"{format_count(removed or added, 'file')} {'removed' if removed else 'added'}"
