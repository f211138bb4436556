"""Updates the rows of a table that have the keys of some data, and inserts the others, in one snapshot.

A row that the table has already is not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from icemigrate.diagnostics import did_you_mean, format_count
from icemigrate.errors import ConflictError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.table_properties import MERGE_MODE
from icemigrate.iceberg.types import is_nested
from icemigrate.system.measured_activity import ROWS, measured_activity
from icemigrate.table_data.bad_rows import BadRows, shown_value
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.parquet_output import BYTES, NullInRequired, copy_to_table, write_parquet
from icemigrate.table_data.row_changes import (
    FILE,
    RowChangeOutcome,
    files_relation,
    local_size,
    row_change_errors,
)
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.row_load import load_source, require_rows_fit
from icemigrate.table_data.row_readers import SparkNeeded, stored_rows, total_rows
from icemigrate.table_data.row_relations import missing_required
from icemigrate.table_data.row_sources import RowSource
from icemigrate.table_data.spark_row_changes import NoteSpark, merge_in_spark, no_note
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.unfit_values import missing_stored_value
from icemigrate.table_data.writable_tables import load_for_rows

_STORED, _GIVEN = "_icemigrate_stored", "_icemigrate_given"
"""Names of the relations in SQL: DuckDB takes a shorter one for a column of that name, if it is a struct."""


class StagedRows(Frozen):
    """The rows of the data in DuckDB, cast to the types of the table.

    :param table: of DuckDB.
    :param keys: columns that identify a row.
    :param values: the other columns that the data has.
    """

    table: str
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def matches(self) -> str:
        """Whether a stored row has the key of a row of the data."""
        return " AND ".join(f"{_STORED}.{_name(key)} = {_GIVEN}.{_name(key)}" for key in self.keys)

    @property
    def differs(self) -> str:
        """Whether such rows have different values."""
        parts = (f"{_STORED}.{_name(c)} IS DISTINCT FROM {_GIVEN}.{_name(c)}" for c in self.values)
        return f"({' OR '.join(parts) or 'false'})"


def upsert(
    session: TableSession, name: str, data: Any, on: Sequence[str], on_spark: NoteSpark = no_note
) -> RowChangeOutcome:
    """Update or insert rows of this process.

    :param data: as in :func:`~icemigrate.table_data.insert_rows.insert_data`.
    :param on: the columns that identify a row.
    :param on_spark: called with the reason before Spark starts.
    :raises UsageError: there is no such table or column, or two rows of the data have the same key.
    :raises Mistakes: rows do not fit; nothing is changed.
    """
    from icemigrate.table_data.given_rows import given_source

    with open_load_database() as db:
        return upsert_source(session, name, given_source(data), on, db, on_spark)


def upsert_files(
    session: TableSession,
    name: str,
    patterns: Sequence[str],
    on: Sequence[str],
    data_format: DataFormat | None = None,
    on_spark: NoteSpark = no_note,
) -> RowChangeOutcome:
    """Update or insert the rows of files; see :func:`upsert`."""
    from icemigrate.table_data.file_sources import file_source

    load_for_rows(session, name)
    with open_load_database() as db:
        source = file_source(patterns, db, data_format)
        return upsert_source(session, name, source, on, db, on_spark)


def upsert_source(
    session: TableSession,
    name: str,
    source: RowSource,
    on: Sequence[str],
    db: LoadDatabase,
    on_spark: NoteSpark,
) -> RowChangeOutcome:
    """Update or insert the rows of a source; see :func:`upsert`."""
    first = load_target(load_for_rows(session, name))
    counts: dict[str, int] = {}

    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        target = load_target(table)
        if not target.has_columns_of(first):
            raise ConflictError(
                f"another client changed the columns of table `{target.name}` during the upsert",
                "run the upsert again",
            )
        rows = stored_rows(db, table, target, session.store.files, MERGE_MODE)
        with measured_activity(f"Comparing rows of {name}", ROWS, total_rows(table), db.share):
            query, removed = _changed(db, target, rows, staged, counts)
        if query is None:
            return RowChange(table, ())
        with measured_activity(f"Writing files of {name}", BYTES, local_size(removed), db.share):
            written = write_parquet(db, query, target)
        return RowChange(table, copy_to_table(written, target, session.store.files), removed)

    with row_change_errors(name):
        with measured_activity(f"Reading rows for {name}", BYTES, source.size, db.share):
            staged = _staged(db, first, source, on)
        try:
            done = commit_rows(session, name, prepare)
        except SparkNeeded as needed:
            on_spark(needed.reason)
            return merge_in_spark(session, needed.table, db, staged, needed.reason)
        except NullInRequired as error:
            raise missing_stored_value(error, name) from None
    found = RowChangeOutcome(
        snapshot_id=done.snapshot_id,
        files_removed=len(done.change.removed),
        files_added=len(done.change.data),
    )
    return replace(found, **counts)


def _staged(db: LoadDatabase, target: LoadTarget, source: RowSource, on: Sequence[str]) -> StagedRows:
    """The rows of the data, which have distinct keys.

    :raises UsageError: a key is missing, or two rows have the same one.
    """
    if not on:
        raise UsageError("there is no key", "give the columns that identify a row with `--on`")
    for key in on:
        if is_nested(target.column(key).type):
            raise UsageError(
                f"column `{key}` of table `{target.name}` is a struct, a list or a map, and cannot be a key",
                "give other columns that identify a row with `--on`",
            )
    name = f"staged_{uuid4().hex}"
    columns = ", ".join(_name(column.name) for column in target.columns)
    db.run(f"CREATE TEMP TABLE {name} AS SELECT {columns} FROM {_empty(target)} WHERE false")
    missing = [
        (column.name, condition) for column in target.columns for condition in missing_required(column)
    ]

    def write(query: str, is_checked: bool) -> Sequence[None]:
        db.run(f"INSERT INTO {name} {query}")
        for column, condition in () if is_checked else missing:
            if db.query(f"SELECT 1 FROM {name} WHERE {condition} LIMIT 1"):
                db.run(f"DELETE FROM {name}")
                raise NullInRequired(column)
        return ()

    bad = BadRows()
    load_source(db, target, source, bad, write)
    if bad.count:
        require_rows_fit(bad, target, is_of_files=False)
    given = source.columns()
    ((count,),) = db.query(f"SELECT count(*) FROM {name}")
    for key in on if count or given else ():
        if key not in given:
            raise UsageError(
                f"the data has no column `{key}`, which `--on` names",
                did_you_mean(key, given) or f"its columns are {', '.join(f'`{n}`' for n in sorted(given))}",
            )
    values = tuple(c.name for c in target.columns if c.name in given and c.name not in on)
    staged = StagedRows(name, tuple(on), values)
    _require_keys(db, staged)
    _require_same_columns(source, staged)
    return staged


def _require_same_columns(source: RowSource, staged: StagedRows) -> None:
    """Check that a column which some rows lack does not overwrite the values of these rows with nulls.

    :raises UsageError: a row has a column that another one lacks.
    """
    common = source.common_columns()
    lacking = [f"`{name}`" for name in staged.values if name not in common]
    if lacking:
        raise UsageError(
            f"some rows of the data have no {' and no '.join(lacking)}, and other rows do",
            "give all rows the same columns, with null for no value; or upsert rows with other columns on "
            "their own, because a column that all rows lack keeps its values",
        )


def _empty(target: LoadTarget) -> str:
    from icemigrate.table_data.duckdb_types import duckdb_type

    columns = (f"CAST(NULL AS {duckdb_type(c.type)}) AS {_name(c.name)}" for c in target.columns)
    return f"(SELECT {', '.join(columns)})"


def _require_keys(db: LoadDatabase, staged: StagedRows) -> None:
    keys = ", ".join(_name(key) for key in staged.keys)
    texts = ", ".join(f"CAST({_name(key)} AS VARCHAR)" for key in staged.keys)
    for key in staged.keys:
        ((count,),) = db.query(f"SELECT count(*) FROM {staged.table} WHERE {_name(key)} IS NULL")
        if count:
            rows = format_count(count, "row")
            raise UsageError(f"{rows} of the data have no key: `{key}` is null", "give each row its key")
    twice = db.query(
        f"SELECT {texts}, count(*) FROM {staged.table} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
    )
    if twice:
        *values, count = twice[0]
        shown = ", ".join(
            f"{key} = {shown_value(value)}" for key, value in zip(staged.keys, values, strict=True)
        )
        raise UsageError(f"{count:,} rows of the data have the same key: {shown}", "keep one of them")


def _changed(
    db: LoadDatabase, target: LoadTarget, rows: str | None, staged: StagedRows, counts: dict[str, int]
) -> tuple[str | None, frozenset[str]]:
    """The query of all rows to write, and the files that they replace."""
    ((total,),) = db.query(f"SELECT count(*) FROM {staged.table}")
    columns = [_name(column.name) for column in target.columns]
    if rows is None:
        counts.update(inserted=total, updated=0, unchanged=0)
        return (f"SELECT {', '.join(columns)} FROM {staged.table}" if total else None), frozenset()
    joined = f"{rows} {_STORED} JOIN {staged.table} {_GIVEN} ON {staged.matches}"
    file = f"{_STORED}.{FILE}"
    files = dict(db.query(f"SELECT {file}, count(*) FROM {joined} WHERE {staged.differs} GROUP BY {file}"))
    keys = ", ".join(f"{_GIVEN}.{_name(key)}" for key in staged.keys)
    ((there,),) = db.query(f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {joined})")
    ((changed,),) = db.query(
        f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {joined} WHERE {staged.differs})"
    )
    counts.update(inserted=total - there, updated=sum(files.values()), unchanged=there - changed)
    parts = []
    if files:
        is_match = f"{_GIVEN}.{_name(staged.keys[0])} IS NOT NULL"
        values = (
            f"CASE WHEN {is_match} THEN {_GIVEN}.{name} ELSE {_STORED}.{name} END AS {name}"
            if name in map(_name, staged.values)
            else f"{_STORED}.{name}"
            for name in columns
        )
        old = files_relation(rows, files)
        parts.append(
            f"SELECT {', '.join(values)} FROM {old} {_STORED} "
            f"LEFT JOIN {staged.table} {_GIVEN} ON {staged.matches}"
        )
    if total > there:
        new = ", ".join(f"{_GIVEN}.{name}" for name in columns)
        parts.append(
            f"SELECT {new} FROM {staged.table} {_GIVEN} WHERE NOT EXISTS "
            f"(SELECT 1 FROM {rows} {_STORED} WHERE {staged.matches})"
        )
    return (" UNION ALL ".join(parts) or None), frozenset(files)


def _name(column: str) -> str:
    return quoted_identifier(column)
