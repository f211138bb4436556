"""Writes the rows of some data as files of a table, and finds those that do not fit.

The fast way casts all rows in one statement.  Where a value does not fit, the statement fails; then every row
is checked and numbered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import TypeAlias, TypeVar

from icemigrate.errors import EngineError, IcemigrateError, UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field
from icemigrate.table_data.bad_rows import BadRow, BadRows, value_problem
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.parquet_output import NullInRequired, TemporaryFile, write_parquet
from icemigrate.table_data.partition_columns import NO_PARTITION, lacks_partition
from icemigrate.table_data.row_relations import PROBLEM, ROW, SOURCE, LoadRelation
from icemigrate.table_data.row_sources import NumberedRows, RowSource

_BATCH = 10_000
T = TypeVar("T")
WriteQuery: TypeAlias = Callable[[str, bool], Sequence[T]]


def write_source(
    db: LoadDatabase, target: LoadTarget, source: RowSource, bad: BadRows
) -> tuple[TemporaryFile, ...]:
    """Write the rows that fit to temporary files; see :func:`load_source`."""

    def write(query: str, is_checked: bool) -> Sequence[TemporaryFile]:
        return write_parquet(db, query, target, is_checked=is_checked)

    return tuple(load_source(db, target, source, bad, write))


def load_source(
    db: LoadDatabase, target: LoadTarget, source: RowSource, bad: BadRows, write: WriteQuery[T]
) -> Sequence[T]:
    """Write the rows that fit.

    :param write: writes the rows of a query of the table's columns; its second argument is whether the query
        has no nulls in required columns.  It raises :class:`NullInRequired` where it finds one.
    :param bad: gets the others.  Where there are some and they are not kept, nothing is written.
    :raises UsageError: the data cannot be read, or has other columns.
    :raises EngineError: DuckDB failed.
    """
    import duckdb

    relations = source.fast(db, target)
    failure: Exception | None = None
    if relations is not None:
        query = " UNION ALL ".join(relation.select(target.columns) for relation in relations)
        try:
            return write(query, False)
        except (NullInRequired, duckdb.Error) as error:
            failure = error
        if not source.is_repeatable:
            raise UsageError(
                f"a row does not fit table `{target.name}`: {_reason(failure)}",
                "the data is a stream, which can be read once: pass a table to see the numbers of the rows",
            ) from failure
    try:
        for rows in source.numbered(db, target):
            bad.add(list(_unfit(db, target, rows)))
        if bad.count and not bad.are_kept:
            return ()
        written = list[T]()
        for rows in source.numbered(db, target):
            written.extend(write(_fitting(target, rows.relation), True))
        return written
    except duckdb.Error as error:
        raise _engine_error(target, error) from error


def _reason(failure: Exception | None) -> str:
    if isinstance(failure, NullInRequired):
        return str(failure)
    return str(failure).partition("\n")[0]


def _engine_error(target: LoadTarget, error: Exception) -> IcemigrateError:
    """The error of DuckDB; one that Python code raised within a scan keeps its own text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, IcemigrateError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return EngineError(f"the rows for table `{target.name}` cannot be read: {_reason(error)}")


class _Misfit(Frozen):
    """A condition in SQL, never null, that is true where a row does not fit because of a column.

    :param reason: follows the column and its value in a message.
    """

    column: Field
    condition: str
    reason: str = ""


def _misfits(target: LoadTarget, relation: LoadRelation) -> list[_Misfit]:
    found = [
        _Misfit(column, condition)
        for column in target.columns
        if (condition := relation.misfits(column)) is not None
    ]
    for field in target.spec.live:
        line = target.schema.line_to(field.source_ids[0])
        # A field inside a column has its error from the partition's own value.
        if len(line) != 1 or line[0].name not in relation.types:
            continue
        value = f"TRY_CAST({quoted_identifier(line[0].name)} AS {duckdb_type(line[0].type)})"
        if (lacks := lacks_partition(field.transform, line[0].type, value)) is not None:
            reason = f": {NO_PARTITION.format(field.name, field.transform)} it"
            found.append(_Misfit(line[0], f"coalesce({lacks}, false)", reason))
    return found


def _fitting(target: LoadTarget, relation: LoadRelation) -> str:
    """A query of the rows that fit."""
    return f"{relation.select(target.columns)} WHERE NOT ({_bad(_misfits(target, relation))})"


def _bad(misfits: Sequence[_Misfit]) -> str:
    """Whether a row does not fit: a condition in SQL."""
    return " OR ".join((f"{PROBLEM} IS NOT NULL", *(misfit.condition for misfit in misfits)))


def _unfit(db: LoadDatabase, target: LoadTarget, rows: NumberedRows) -> Iterator[BadRow]:
    """The rows that do not fit, in their order."""
    relation = rows.relation
    misfits = _misfits(target, relation)
    flags = ", ".join(f"coalesce({misfit.condition}, false)" for misfit in misfits)
    names = list(relation.types)
    values = "".join(f", CAST({quoted_identifier(name)} AS VARCHAR)" for name in names)
    # Each condition reads the columns, and the relation may be a stream: one scan.
    cursor = db.connection.execute(
        f"SELECT {ROW}, {PROBLEM}, {SOURCE}, [{flags}]::BOOLEAN[]{values} FROM {relation.sql} "
        f"WHERE {_bad(misfits)}"
    )
    found = list[BadRow]()
    while batch := cursor.fetchmany(_BATCH):
        for number, unread, source, unfit, *given in batch:
            by_name = dict(zip(names, given, strict=True))
            problems: dict[str, str] = {} if unread is None else json.loads(unread)
            for misfit in compress(misfits, unfit):
                name = misfit.column.name
                problems.setdefault(name, value_problem(misfit.column, by_name[name]) + misfit.reason)
            in_order = (problems[c.name] for c in target.columns if c.name in problems)
            found.append(BadRow(relation.file, number, tuple(in_order), by_name, source))
    found.extend(rows.unreadable())
    yield from sorted(found, key=lambda row: row.row)


def require_rows_fit(bad: BadRows, target: LoadTarget, *, is_of_files: bool) -> None:
    """Refuse a load with rows that do not fit and are not kept.

    :param is_of_files: whether an option can keep them.
    :raises Mistakes: there are some.
    """
    if bad.count and not bad.are_kept:
        hint = "`--bad-rows FILE` loads the other rows, and writes these to a file" if is_of_files else None
        raise bad.error(target.name, hint)
