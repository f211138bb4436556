"""Counts per column of two states of one table: nulls, and distinct values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import is_nested
from icemigrate.results.compare_results import ColumnDifference, DistinctMethod
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.live_files import DATA, LiveFile
from icemigrate.table_data.query_tables import OpenQuery

MOST_EXACT_ROWS = 200_000
"""Up to this number of rows in each state, distinct values are counted exactly."""
MOST_COUNTED_ROWS = 2_000_000
"""Up to this number of rows, distinct values are estimated: that reads all values of both states."""
_AGGREGATES: Mapping[DistinctMethod, str] = {
    "exact": "count(DISTINCT {column})",
    "approximate": "approx_count_distinct({column})",
}


class _CountedColumns(Frozen):
    """Counts by column of one state."""

    nulls: Mapping[str, int]
    distinct: Mapping[str, int | None]


def distinct_method(states: Sequence[Sequence[LiveFile]], *, is_wanted: bool) -> DistinctMethod:
    """How the distinct values of two states are counted: both in the same way, by the larger one.

    :param states: the files of each.
    :param is_wanted: whether they are counted however many rows there are.
    """
    rows = max(sum(file.rows for file in files if file.content == DATA) for files in states)
    if rows <= MOST_EXACT_ROWS:
        return "exact"
    return "approximate" if is_wanted or rows <= MOST_COUNTED_ROWS else "none"


def count_columns(
    query: OpenQuery,
    schema: Schema,
    changed: Mapping[str, int],
    states: Sequence[Sequence[LiveFile]],
    method: DistinctMethod,
) -> tuple[ColumnDifference, ...]:
    """The counts of each column in two states.

    :param changed: number of changed values by column; empty without a key.
    :param states: the files of each, with metrics.
    """
    names = [field.name for field in schema.fields]
    before, after = (
        _counted(query, read.view, names, nulls_by_metrics(files, schema), method)
        for read, files in zip(query.reads, states, strict=True)
    )
    return tuple(
        ColumnDifference(
            column=format_path((name,)),
            nulls_before=before.nulls[name],
            nulls_after=after.nulls[name],
            distinct_before=before.distinct[name],
            distinct_after=after.distinct[name],
            changed=changed.get(name),
        )
        for name in names
    )


def nulls_by_metrics(files: Sequence[LiveFile], schema: Schema) -> Mapping[str, int]:
    """Numbers of nulls by column, where the metrics of all files have them and there are no delete files."""
    if any(file.content != DATA for file in files):
        return {}
    return {
        field.name: sum(file.nulls[field.id] for file in files)
        for field in schema.fields
        if not is_nested(field.type) and all(field.id in file.nulls for file in files)
    }


def _counted(
    query: OpenQuery, view: str, names: Sequence[str], known: Mapping[str, int], method: DistinctMethod
) -> _CountedColumns:
    """The counts of one state, in one scan.

    :param known: numbers of nulls that need not be counted.
    """
    unknown = [name for name in names if name not in known]
    counts = [f"count(*) - count({quoted_identifier(name)})" for name in unknown]
    if method in _AGGREGATES:
        counts += [_AGGREGATES[method].format(column=quoted_identifier(name)) for name in names]
    if not counts:
        return _CountedColumns(known, dict.fromkeys(names))
    (found,) = query.fetch(f"SELECT {', '.join(counts)} FROM {quoted_identifier(view)}")
    nulls = {**known, **dict(zip(unknown, found, strict=False))}
    rest = found[len(unknown) :]
    distinct = dict(zip(names, rest, strict=True)) if rest else dict.fromkeys(names)
    return _CountedColumns(nulls, distinct)
