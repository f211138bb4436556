"""Rows of queries, and how queries are run, for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from icemigrate.diagnostics import format_count
from icemigrate.hidden_characters import escape_hidden_characters
from icemigrate.render import display
from icemigrate.render.table_cells import size_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.query_results import QueriedTable, QueryExplanation

_WIDEST = 60
"""Characters of a value, unless all details are wanted."""
_NULL = "NULL"


def rows_text(
    names: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[bool], style: TerminalStyle
) -> str:
    """Rows in aligned columns; a null is ``NULL``, and long values are cut, except with details.

    :param rows: values of JSON.
    :param numeric: for each column, whether it has numbers, which are aligned at their ends.
    """
    heads = [_cut(escape_hidden_characters(name), style) for name in names]
    cells = [[_cell(value, style) for value in row] for row in rows]
    for at, is_number in enumerate(numeric):
        if is_number:
            width = max(len(row[at]) for row in [heads, *cells])
            for row in [heads, *cells]:
                row[at] = row[at].rjust(width)
    lines = text_columns([tuple(row) for row in cells], tuple(heads), style)
    return "".join(f"{line}\n" for line in lines or [style.dim("  ".join(heads))])


def _cell(value: Any, style: TerminalStyle) -> str:
    if value is None:
        return _NULL
    if isinstance(value, str):
        text = json.dumps(value) if value in ("", _NULL) else value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return _cut(escape_hidden_characters(text), style)


def _cut(text: str, style: TerminalStyle) -> str:
    return text if style.details or len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def explanation_text(result: QueryExplanation, style: TerminalStyle) -> str:
    """A paragraph for each table."""
    if not result.tables:
        return "the query reads no table\n"
    return "\n".join(_table_text(table, style) for table in result.tables)


def _table_text(table: QueriedTable, style: TerminalStyle) -> str:
    snapshot = "without snapshots" if table.snapshot_id is None else f"at snapshot {table.snapshot_id}"
    reader = {"duckdb": "DuckDB", "pyiceberg": "PyIceberg"}.get(table.reader, display.one_line(table.reader))
    rows = [
        ("reader", f"{reader}: {display.one_line(table.reason)}"),
        ("files", f"{table.files_read:,} of {format_count(table.files, 'file')} read"),
        ("bytes", f"{size_text(table.bytes_read)} of {size_text(table.bytes)} in the files that are read"),
    ]
    skips = [
        f"{format_count(group.files, 'file')} ({size_text(group.bytes)}) {reason}"
        for group, reason in (
            (table.partition_skips, "by partition values"),
            (table.statistics_skips, "by column statistics"),
            (table.other_skips, "for other reasons"),
        )
        if group.files
    ]
    if skips:
        rows.append(("skipped", ", ".join(skips)))
    if table.delete_files:
        rows.append(("deletes", format_count(table.delete_files, "delete file")))
    title = style.bold(f"{display.visible_text(table.table)} {snapshot}")
    return "".join([f"{title}\n", *(f"  {name:<9}{text}\n" for name, text in rows)])
