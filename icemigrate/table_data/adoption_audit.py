"""Compares what a table reads of adopted files with what the footers of the files say, before the commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.diagnostics import Diagnostic, format_count
from icemigrate.errors import ConflictError, Mistakes
from icemigrate.frozen import Frozen
from icemigrate.iceberg.partitioning import IDENTITY
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.system.activity import activity
from icemigrate.table_data.adopted_checks import CheckedFile
from icemigrate.table_data.adopted_files import CODE, is_unchanged
from icemigrate.table_data.adopted_values import ColumnRange
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.partition_columns import PartitionColumn, fetched, stored_partition
from icemigrate.table_data.query_metadata import point_metadata
from icemigrate.table_data.query_readers import ReaderKind, reason_against_duckdb, reason_against_places
from icemigrate.table_data.query_tables import open_points
from icemigrate.table_data.table_points import resolve_point
from icemigrate.table_data.table_session import CurrentTable, TableSession

_FLOATS = (Primitive("float"), Primitive("double"))


class ColumnTotals(Frozen):
    """The values of a column in all files.

    :param values: their number, without nulls.
    """

    values: int
    low: Any
    high: Any
    is_exact: bool


def audit_files(session: TableSession, table: CurrentTable, files: Sequence[CheckedFile]) -> str | None:
    """Read adopted files as rows of a table, and compare counts and ranges with their footers.

    :param table: as the commit makes it.
    :returns: why the rows were not read, as a clause; ``None`` where they were.
    :raises ConflictError: a file was changed since it was checked.
    :raises Mistakes: the table reads other rows or values.
    """
    for one in files:
        if not is_unchanged(one.file):
            raise ConflictError(
                f"the file {one.file.path} was changed while it was checked",
                "wait until its writer has finished, and run the command again",
            )
    point = resolve_point(table)
    metadata = point_metadata(table.metadata, point, session.store.files.read)
    storage, paths = session.object_storage, [one.data.path for one in files]
    reason = reason_against_duckdb(metadata, storage) or reason_against_places(paths, storage)
    if reason is not None:
        return reason
    target = load_target(table)
    expected = {
        field: totals
        for field in target.schema.fields
        if (totals := _totals([one.ranges.get(field.id) for one in files])) is not None
    }
    rows = sum(one.data.records for one in files)
    shown = f"Reading {format_count(rows, 'row')} of {target.name}"
    with activity(shown), open_points(session, table, [point], [paths]) as query:
        (view,) = query.reads
        if view.reader.kind is not ReaderKind.DUCKDB:
            return view.reader.reason  # PyIceberg gives the rows of the other files too
        columns = [part for field in expected for part in _column_sql(field)]
        sql = f"SELECT count(*), {', '.join(columns) or '1'} FROM {quoted_identifier(view.view)}"
        (found,) = query.fetch(sql)
    problems = list(_differences(str(table.declared), rows, expected, found))
    if problems:
        raise Mistakes(tuple(problems), f"the files are not adopted into `{table.declared}`")
    return None


def _totals(ranges: Sequence[ColumnRange | None]) -> ColumnTotals | None:
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return None
    some = [one for one in known if not one.is_null]
    return ColumnTotals(
        sum(one.count - one.nulls for one in known),
        min((one.low for one in some), default=None),
        max((one.high for one in some), default=None),
        all(one.is_exact for one in some),
    )


def _part(field: Field, sql: str) -> PartitionColumn:
    return PartitionColumn(sql, IDENTITY, field.type)


def _column_sql(field: Field) -> Iterator[str]:
    name = quoted_identifier(field.name)
    yield f"count({name})"
    some = f" FILTER (WHERE NOT isnan({name}))" if field.type in _FLOATS else ""
    for function in ("min", "max"):
        sql = f"{function}({name}){some}"
        yield fetched(_part(field, sql), sql)


def _differences(
    table: str, rows: int, expected: Mapping[Field, ColumnTotals], found: Sequence[Any]
) -> Iterator[Diagnostic]:
    count, *values = found
    if count != rows:
        yield _problem(f"table `{table}` reads {count} rows of the files, and their footers have {rows}")
    for number, (field, totals) in enumerate(expected.items()):
        present, *bounds = values[3 * number : 3 * number + 3]
        part = _part(field, field.name)
        low, high = (stored_partition([part], [bound])[0] for bound in bounds)
        if present != totals.values:
            yield _problem(
                f"table `{table}` reads {present} values of column `{field.name}`, and the footers have "
                f"{totals.values}"
            )
        elif present and low is not None and not _is_within(totals, low, high):
            yield _problem(
                f"table `{table}` reads {low} to {high} of column `{field.name}`, and the footers have "
                f"{totals.low} to {totals.high}"
            )


def _is_within(totals: ColumnTotals, low: Any, high: Any) -> bool:
    if totals.is_exact and not isinstance(low, float):  # of zeros, the negative one is lower
        return bool(low == totals.low and high == totals.high)
    return bool(totals.low <= low and high <= totals.high)


def _problem(message: str) -> Diagnostic:
    return Diagnostic(
        CODE, message, None, "write the files again, or insert them with `icemigrate table insert`"
    )
