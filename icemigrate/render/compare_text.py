"""The differences of two snapshots for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.table_cells import number_text, short_text, size_text, value_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.compare_results import (
    CompareResult,
    DistinctMethod,
    FieldDifference,
    FileSet,
    RowDifference,
    SampleRow,
)
from icemigrate.results.table_results import SnapshotInfo

_MOST_FIELDS, _MOST_COLUMNS, _MOST_VALUES = 100, 100, 20
_COLUMN_HEADS = ("column", "nulls before", "nulls after", "distinct before", "distinct after", "changed")
_NOTES: Mapping[DistinctMethod | None, str] = {
    "approximate": "~ is an estimate: the snapshots have many rows.",
    "none": "Distinct values are not counted: the snapshots have many rows. `--distinct` counts them.",
}
_SYMBOLS = {"added": "+", "removed": "-", "dropped": "-", "renamed": "→"}


def compare_text(result: CompareResult, style: TerminalStyle) -> str:
    """Both snapshots, then the differences of schema, files, rows and columns."""
    lines = [
        style.bold(f"table {short_text(result.table)}"),
        _snapshot("from", result.before),
        _snapshot("to", result.after),
        "",
        *_schema(result, style),
        *_files("+", "added", result.files_added, style),
        *_files("-", "removed", result.files_removed, style),
        f"{format_count(result.files_kept, 'data file')} in both.",
    ]
    if result.rows is not None:
        lines += ["", *_rows(result.rows, style), "", *_columns(result, style)]
    return "\n".join(lines) + "\n"


def _snapshot(word: str, entry: SnapshotInfo) -> str:
    return f"  {word:<4} {entry.snapshot_id} ({display.timestamp_text(entry.at)})"


def _schema(result: CompareResult, style: TerminalStyle) -> Iterator[str]:
    if not result.fields:
        yield "The schema is the same."
    for found in result.fields[:_MOST_FIELDS]:
        yield f"{style.symbol(_SYMBOLS.get(found.change, '~'))} {_field(found)} (field {found.field_id})"
    if (left := len(result.fields) - _MOST_FIELDS) > 0:
        yield style.dim(f"{left:,} more differences of the schema are in the JSON.")


def _field(found: FieldDifference) -> str:
    path, before, after = (
        short_text(found.path),
        short_text(found.before or ""),
        short_text(found.after or ""),
    )
    if found.change == "renamed":
        return f"column {before} is now {after}"
    if found.change == "retyped":
        return f"column {path}: {before} is now {after}"
    if found.change in ("added", "dropped"):
        return f"column {path} {after or before} was {found.change}"
    words = {"required": "is required", "optional": "may be null", "described": "has another comment"}
    return f"column {path} {words.get(found.change, display.one_line(found.change))}"


def _files(symbol: str, word: str, files: FileSet, style: TerminalStyle) -> Iterator[str]:
    if files.data_files or files.delete_files:
        deletes = format_count(files.delete_files, "delete file")
        data = format_count(files.data_files, "data file")
        rows = format_count(files.rows, "row")
        line = f"{style.symbol(symbol)} {data} {word}: {rows}, {size_text(files.data_bytes)}"
        yield line + (f", and {deletes}" if files.delete_files else "")


def _rows(rows: RowDifference, style: TerminalStyle) -> Iterator[str]:
    changed = f", {rows.changed:,} changed" if rows.key else ""
    by = f" by {', '.join(map(short_text, rows.key))}" if rows.key else ""
    yield style.bold(f"Rows{by}: {rows.added:,} added, {rows.removed:,} removed{changed}.")
    for sample in rows.samples:
        yield f"  {style.symbol(_SYMBOLS.get(sample.change, '~'))} {_sample(sample)}"


def _sample(sample: SampleRow) -> str:
    parts = []
    for value in sample.values[:_MOST_VALUES]:
        before, after = (value_text(text, 40) for text in (value.before, value.after))
        if sample.change == "changed":
            shown = before if value.before == value.after else f"{before} → {after}"
        else:
            shown = after if sample.change == "added" else before
        parts.append(f"{short_text(value.column, 40)}={shown}")
    if len(sample.values) > _MOST_VALUES:
        parts.append("…")
    return ", ".join(parts)


def _columns(result: CompareResult, style: TerminalStyle) -> Iterator[str]:
    mark = "~" if result.distinct_values == "approximate" else ""
    rows = [
        (
            short_text(column.column),
            number_text(column.nulls_before),
            number_text(column.nulls_after),
            f"{mark}{number_text(column.distinct_before)}",
            f"{mark}{number_text(column.distinct_after)}",
            number_text(column.changed),
        )
        for column in result.columns[:_MOST_COLUMNS]
    ]
    yield from text_columns(rows, _COLUMN_HEADS, style)
    if (left := len(result.columns) - _MOST_COLUMNS) > 0:
        yield style.dim(f"{left:,} more columns are in the JSON.")
    if result.distinct_values in _NOTES:
        yield style.dim(_NOTES[result.distinct_values])
