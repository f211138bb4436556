"""Updates and deletes rows by writing their data files again (copy-on-write), in one snapshot.

A row changes where the condition is true; where it is false or null, the row stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.table_properties import DELETE_MODE, UPDATE_MODE
from icemigrate.system.measured_activity import ROWS, measured_activity
from icemigrate.table_data.duckdb_problems import duckdb_problem
from icemigrate.table_data.duckdb_session import quoted_identifier, text_literal
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.nested_casts import type_problem
from icemigrate.table_data.parquet_output import (
    BYTES,
    TemporaryFile,
    copy_to_table,
    count_rows,
    write_parquet,
)
from icemigrate.table_data.query_errors import file_error
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.row_expressions import RowExpression, parse_condition, parse_new_value
from icemigrate.table_data.row_readers import SparkNeeded, stored_rows, total_rows
from icemigrate.table_data.row_relations import NULL_TYPE, cast_sql
from icemigrate.table_data.spark_row_changes import (
    NoteSpark,
    delete_in_spark,
    no_note,
    update_in_spark,
)
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.unfit_values import condition_errors, value_errors
from icemigrate.table_data.writable_tables import load_for_rows

_NEW = "_icemigrate_new"
"""Begins the names of columns with new values, in SQL."""
FILE = "filename"
"""DuckDB's own column with the location of a row's data file."""


class RowChangeOutcome(Frozen):
    """What a change of rows did.

    :param snapshot_id: ``None`` where no row had to change.
    :param unchanged: number of rows of the data that the table has already.
    :param spark_reason: why Spark made the change; ``None`` where it was made without Spark.
    """

    snapshot_id: int | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    files_removed: int = 0
    files_added: int = 0
    spark_reason: str | None = None


def delete_data(
    session: TableSession, name: str, where: str, on_spark: NoteSpark = no_note
) -> RowChangeOutcome:
    """Delete the rows for which a condition is true.

    :param where: an expression of DuckDB's SQL over the columns.
    :param on_spark: called with the reason before Spark starts.
    :raises UsageError: there is no such table, or the condition is not valid.
    """
    table = load_for_rows(session, name)
    condition = parse_condition(where, load_target(table))

    def rewritten(columns: str, rows: str, _db: LoadDatabase, _target: LoadTarget) -> str:
        return f"SELECT {columns} FROM {rows} WHERE {condition.sql} IS NOT TRUE"

    try:
        done = _rewrite(session, name, DELETE_MODE, condition, rewritten)
    except SparkNeeded as needed:
        on_spark(needed.reason)
        return delete_in_spark(session, needed.table, condition, needed.reason)
    return replace(done, deleted=done.updated, updated=0)


def update_data(
    session: TableSession,
    name: str,
    updates: Mapping[str, str],
    where: str,
    on_spark: NoteSpark = no_note,
) -> RowChangeOutcome:
    """Set columns of the rows for which a condition is true.

    :param updates: an expression of DuckDB's SQL for each column.
    :param where: an expression of DuckDB's SQL over the columns.
    :param on_spark: called with the reason before Spark starts.
    :raises UsageError: there is no such table or column, or an expression is not valid or fits no value.
    """
    if not updates:
        raise UsageError("there is no column to set", "give `column = expression`")
    target = load_target(load_for_rows(session, name))
    condition = parse_condition(where, target)
    values = {
        column: parse_new_value(text, target, target.column(column)) for column, text in updates.items()
    }

    def rewritten(_columns: str, rows: str, db: LoadDatabase, now: LoadTarget) -> str:
        found = ", ".join(_updated(db, rows, now, values, condition))
        return f"SELECT {found} FROM {_with_new_values(rows, now, values, condition)}"

    try:
        return _rewrite(session, name, UPDATE_MODE, condition, rewritten, values)
    except SparkNeeded as needed:
        on_spark(needed.reason)
        return update_in_spark(session, needed.table, values, condition, needed.reason)


def _updated(
    db: LoadDatabase,
    rows: str,
    target: LoadTarget,
    values: Mapping[str, RowExpression],
    condition: RowExpression,
) -> list[str]:
    """The columns of a query of updated rows."""
    found = []
    for number, column in enumerate(target.columns):
        name, value = quoted_identifier(column.name), values.get(column.name)
        if value is None:
            found.append(name)
            continue
        # Another client may have changed the columns since the expression was checked.
        given = value.type
        if given != NULL_TYPE:
            given = db.types(f"(SELECT {value.sql} AS v FROM {rows})")["v"]
        if (problem := type_problem(column.type, given, column.name)) is not None:
            raise UsageError(f"--set {column.name}: {problem}", "write a value of the column's type")
        new = cast_sql(column.type, given, f"{_NEW}{number}")
        found.append(f"CASE WHEN {condition.sql} THEN {new} ELSE {name} END AS {name}")
    return found


def _with_new_values(
    rows: str, target: LoadTarget, values: Mapping[str, RowExpression], condition: RowExpression
) -> str:
    """The rows with each new value in a column: a check of `uuid()` and its result need the same value."""
    new = "".join(
        f", CASE WHEN {condition.sql} THEN {values[column.name].sql} END AS {_NEW}{number}"
        for number, column in enumerate(target.columns)
        if column.name in values
    )
    return f"(SELECT *{new} FROM {rows})"


def _require_row_count(
    db: LoadDatabase, written: Sequence[TemporaryFile], old_rows: str, deleted: int
) -> None:
    """Check that new files have the rows of the old ones, except for the deleted rows.

    :param old_rows: a relation.
    :raises UsageError: rows are missing, or there are further ones.
    """
    ((before,),) = db.query(f"SELECT count(*) FROM {old_rows}")
    after, expected = count_rows(db, written), before - deleted
    if after != expected:
        raise UsageError(
            f"an expression gives {after} rows for {expected} rows; the table is not changed",
            "write an expression with one value for each row",
        )


NewRowsQuery = Callable[[str, str, LoadDatabase, LoadTarget], str]
"""The query of the new rows: from the columns, the relation of the old rows, the database, and the table."""


def _rewrite(
    session: TableSession,
    name: str,
    mode: str,
    condition: RowExpression,
    query: NewRowsQuery,
    values: Mapping[str, RowExpression] | None = None,
) -> RowChangeOutcome:
    """Write the files again that have a row for which a condition is true.

    :param mode: the property with the mode of the change.
    :param values: that columns get, for the message where one does not fit.
    :raises SparkNeeded: the table cannot be changed without Spark, or no longer after a conflict.
    """
    count = 0

    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        nonlocal count
        target = load_target(table)
        # A new one for each attempt: it is locked to the files of one state of the table.
        with open_load_database() as db:
            rows = stored_rows(db, table, target, session.store.files, mode, locks=True)
            if rows is None:
                count = 0
                return RowChange(table, ())
            # One transaction has one `now()`, so that the condition has one value in all statements.
            db.run("BEGIN TRANSACTION")
            with (
                condition_errors(condition),
                measured_activity(f"Searching rows of {name}", ROWS, total_rows(table), db.share),
            ):
                found = dict(
                    db.query(f"SELECT {FILE}, count(*) FROM {rows} WHERE {condition.sql} GROUP BY {FILE}")
                )
            count = sum(found.values())
            if not found:
                return RowChange(table, ())
            columns = ", ".join(quoted_identifier(column.name) for column in target.columns)
            chosen = files_relation(rows, found)
            new_rows = query(columns, chosen, db, target)
            with (
                value_errors(db, target, f"(SELECT * FROM {chosen} WHERE {condition.sql})", values or {}),
                measured_activity(f"Writing files of {name} again", BYTES, local_size(found), db.share),
            ):
                written = write_parquet(db, new_rows, target)
            _require_row_count(db, written, chosen, deleted=count if mode == DELETE_MODE else 0)
            return RowChange(table, copy_to_table(written, target, session.store.files), frozenset(found))

    with row_change_errors(name):
        done = commit_rows(session, name, prepare)
    change = done.change
    return RowChangeOutcome(
        snapshot_id=done.snapshot_id,
        updated=count,
        files_removed=len(change.removed),
        files_added=len(change.data),
    )


@contextmanager
def row_change_errors(name: str) -> Iterator[None]:
    """Raise DuckDB's exceptions during a change of a table as errors of the project.

    :raises IcemigrateError: a file of the table is missing or damaged.
    :raises UsageError: DuckDB refuses the change.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if (damage := file_error(error, f"`{name}`", {})) is not None:
            raise damage from error
        raise UsageError(f"table `{name}` is not changed: {duckdb_problem(error).message}") from error


def local_size(files: Iterable[str]) -> int:
    """The size of data files on this machine, in bytes; those elsewhere, and missing ones, have none."""
    paths = (Path(path) for file in files if (path := local_path(file)) is not None)
    return sum(path.stat().st_size for path in paths if path.is_file())


def files_relation(rows: str, files: Mapping[str, int]) -> str:
    """The rows of some data files."""
    listed = ", ".join(map(text_literal, files))
    return f"(SELECT * FROM {rows} WHERE {FILE} IN ({listed}))"
