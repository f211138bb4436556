"""What a table is and contains, for people."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.growth_plot import plot_lines
from icemigrate.render.table_cells import number_text, short_text, size_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.describe_results import ColumnDescription, DescribeResult, TableSizes

_MOST_COLUMNS, _MOST_PROPERTIES = 200, 50
_LONG = 160
"""How many characters of a location, a comment or a property are shown."""


def describe_text(result: DescribeResult, style: TerminalStyle) -> str:
    """The parts of the description, one below the other."""
    title = short_text(result.table)
    if result.name != result.table:
        title += f" (in the catalog: {short_text(result.name)})"
    lines = [style.bold(title), *_facts(result), "", *_columns(result, style), ""]
    lines += [*_layout(result), "", *_sizes(result.sizes), "", *_properties(result, style), ""]
    lines += _health(result, style)
    if result.is_plot:
        lines += plot_lines(result.growth, style)
    return "\n".join(lines) + "\n"


def _facts(result: DescribeResult) -> Iterator[str]:
    snapshots = format_count(result.snapshots, "snapshot")
    branches = format_count(result.branches, "branch", "branches")
    yield f"  format     Iceberg {result.format_version}, {short_text(result.file_format)} files"
    yield f"  location   {short_text(result.location, _LONG)}"
    yield f"  metadata   {short_text(result.metadata_location, _LONG)}"
    yield f"  id         {short_text(result.uuid or '-')}"
    yield f"  changed    {display.timestamp_text(result.updated_at)}"
    yield f"  first seen {display.timestamp_text(result.created_at)}"
    yield f"  history    {snapshots}, {branches}, {format_count(result.tags, 'tag')}"
    schemas, specs = format_count(result.schemas, "schema"), format_count(result.specs, "partition spec")
    yield f"  versions   {schemas}, {specs}, {format_count(result.metadata_files, 'metadata file')}"


def _columns(result: DescribeResult, style: TerminalStyle) -> Iterator[str]:
    rows = [
        (
            str(column.field_id),
            short_text(column.path),
            short_text(column.type),
            _flags(column),
            short_text(column.doc or ""),
        )
        for column in result.columns[:_MOST_COLUMNS]
    ]
    yield from text_columns(rows, ("id", "column", "type", "", "comment"), style)
    if (left := len(result.columns) - _MOST_COLUMNS) > 0:
        yield style.dim(f"{left:,} more fields are in the JSON.")


def _flags(column: ColumnDescription) -> str:
    found = [
        "required" if column.required else "",
        "identifier" if column.is_identifier else "",
        "" if column.write_default is None else f"default {short_text(column.write_default, 30)}",
    ]
    return ", ".join(filter(None, found))


def _layout(result: DescribeResult) -> Iterator[str]:
    terms = ", ".join(
        f"{short_text(field.term)} (id {field.field_id}, {short_text(field.name or '')})"
        for field in result.partition_by
    )
    yield f"Partitioned by {terms} (spec {result.spec_id})." if terms else "Not partitioned."
    order = ", ".join(short_text(term.term) for term in result.sort_by)
    yield f"Sorted by {order}." if order else "Not sorted."


def _sizes(sizes: TableSizes) -> Iterator[str]:
    yield (
        f"{sizes.rows:,} rows in {format_count(sizes.data_files, 'data file')} of "
        f"{format_count(sizes.partitions, 'partition')}, {size_text(sizes.data_bytes)}"
    )
    if sizes.data_files:
        yield (
            f"Data files have {size_text(sizes.smallest_bytes)} to {size_text(sizes.largest_bytes)}, "
            f"median {size_text(sizes.median_bytes)}."
        )
    yield (
        f"{format_count(sizes.delete_files, 'delete file')} with {number_text(sizes.deletes)} deletes, "
        f"{format_count(sizes.manifests, 'manifest')} of {size_text(sizes.manifest_bytes)}"
    )


def _properties(result: DescribeResult, style: TerminalStyle) -> Iterator[str]:
    shown = list(result.properties.items())[:_MOST_PROPERTIES]
    yield from text_columns(
        [(short_text(key), short_text(value, _LONG)) for key, value in shown], ("property", "value"), style
    )
    if (left := len(result.properties) - len(shown)) > 0:
        yield style.dim(f"{left:,} more properties are in the JSON.")


def _health(result: DescribeResult, style: TerminalStyle) -> Iterator[str]:
    if not result.health:
        yield style.good("Health: nothing to improve.")
        return
    yield "Health:"
    for found in result.health:
        yield f"  {style.changed('!')} {short_text(found.text, 200)} [{found.finding}]"
        if found.hint is not None:
            yield style.dim(f"    {display.one_line(found.hint)}")
