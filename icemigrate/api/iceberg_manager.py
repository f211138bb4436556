"""The tables of a catalog in Python: rows, columns and snapshots of single tables, with or without a project.

.. code-block:: python

    import icemigrate

    with icemigrate.IcebergManager("lake") as lake:
        lake.create_table("sales.orders", {"id": "long", "amount": "decimal(10,2)"})
        lake.insert_data("sales.orders", [{"id": 1, "amount": "9.50"}])
        print(lake.query_table("sales.orders").to_pandas())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

from icemigrate.api.checked_arguments import check_arguments, given_path
from icemigrate.api.project import Project
from icemigrate.api.thread_sessions import ThreadSessions
from icemigrate.commands.column_changes import ColumnChanges, change_columns, column_addition
from icemigrate.commands.given_consents import parse_consents
from icemigrate.frozen import replace
from icemigrate.project import open_project
from icemigrate.project.catalog_files import catalog_project, is_project_path
from icemigrate.results.column_results import ColumnChangesResult
from icemigrate.results.compare_results import CompareResult
from icemigrate.results.snapshot_results import CompactResult, ExpireResult, RollbackTableResult
from icemigrate.results.table_results import SnapshotInfo
from icemigrate.table_data.table_session import TableSession

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from icemigrate.results.generate_results import GenerateResult
    from icemigrate.table_data.insert_rows import InsertedRows
    from icemigrate.table_data.row_changes import RowChangeOutcome


@check_arguments
class IcebergManager:
    """The tables of one catalog.

    Tables have the names that migration files use, such as ``sales.orders``.  Each method that changes a
    table is one commit: a reader sees all of it or nothing.  Queries return Arrow tables, so ``.to_pandas()``
    works.  Several threads may use one manager.  Every method raises the errors of :mod:`icemigrate.errors`:
    ``UsageError`` for a wrong argument, ``CatalogError`` where the catalog cannot be read, ``ConflictError``
    where another writer was faster, ``EngineError`` where a commit failed.

    :param catalog: a :class:`~icemigrate.api.project.Project`; the path of a project file, or of a folder
        with one; or the path of a SQLite catalog, or of a folder for one, which needs no project.  By default
        the working directory.
    :param environment: of the project; by default its default environment.
    """

    def __init__(
        self, catalog: str | PathLike[str] | Project | None = None, environment: str | None = None
    ) -> None:
        if isinstance(catalog, Project):
            project, is_recorded = catalog.opened, True
            environment = environment or catalog.environment
        else:
            path = given_path("." if catalog is None else catalog, "catalog")
            is_recorded = is_project_path(path)
            project = open_project(path) if is_recorded else catalog_project(path)
        self._sessions = ThreadSessions(project, environment, is_recorded=is_recorded)

    def __enter__(self) -> IcebergManager:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of all threads; no method may be called afterwards."""
        self._sessions.close()

    def _tables(self) -> TableSession:
        """The open tables of this thread."""
        return self._sessions.current()

    # Tables and rows

    def create_table(
        self,
        table: str,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        identifier: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        format_version: int | None = None,
        location: str | None = None,
        description: str | None = None,
    ) -> None:
        """Create a table, and its namespace where it is missing.

        No migration declares it; ``icemigrate import`` writes one that adopts it.

        :param schema: types by name, such as ``{"id": "long"}``; a list of columns as in a migration file; a
            schema of Arrow or PySpark; or a table or frame of a library that exports Arrow data.
        :param partition_by: terms of a migration file, such as ``day(at)``.
        :param sort_by: terms of a migration file, such as ``id desc``.
        :param identifier: columns that identify a row.
        :param format_version: ``None`` for the default of a migration file.
        :raises Mistakes: the table would break a rule of Iceberg.
        """
        from icemigrate.api.table_columns import create_from_entry

        settings: dict[str, Any] = {"partition_by": list(partition_by), "sort_by": list(sort_by)}
        settings |= {"identifier": list(identifier), "properties": dict(properties or {})}
        settings |= {"format_version": format_version, "location": location, "description": description}
        given = {key: value for key, value in settings.items() if value}
        create_from_entry(self._tables(), table, schema, given)

    def insert_data(self, table: str, data: Any) -> InsertedRows:
        """Insert rows in one snapshot; a row that does not fit refuses all of them.

        :param data: a table, batch or reader of Arrow; a frame of pandas, Polars, PySpark or DuckDB; a dict
            for one row, or a list of dicts, with values by column; a dict with a list of values for each
            column.  Missing columns are null, or have their default.
        :raises Mistakes: rows do not fit the columns; nothing was inserted.
        """
        from icemigrate.table_data.insert_rows import insert_data

        return insert_data(self._tables(), table, data)

    def generate_data(self, table: str, rows: int, seed: int = 0, *, first_row: int = 0) -> pa.Table:
        """Rows of test data for the columns of a table; the table stays as it is.

        The same seed gives the same rows, as ``icemigrate generate`` writes them.  A project's table may be
        declared only, in its migration files.

        :param first_row: the number of the first row.
        :raises IcemigrateError: a column has no test data.
        """
        from icemigrate.commands.generate import generate_arrow

        project = self._sessions.project if self._sessions.is_recorded else None
        return generate_arrow(self._tables(), project, table, rows, seed, first_row)

    def insert_generated(self, table: str, rows: int, seed: int = 0, *, first_row: int = 0) -> GenerateResult:
        """Insert rows of test data in one snapshot, in constant memory; see :meth:`generate_data`."""
        from icemigrate.commands.generate import insert_test_data

        return insert_test_data(self._tables(), table, rows, seed, first_row)

    def update_data(self, table: str, updates: Mapping[str, object], where: str) -> RowChangeOutcome:
        """Set columns of the rows for which a condition is true, in one snapshot.

        Rows of format version 3, or with ``merge-on-read``, need Spark, which is started.

        :param updates: a text is an expression of DuckDB's SQL, such as ``upper(name)`` or ``'paid'``; a
            number, a date, a time, ``True``, ``False`` and ``None`` are values.
        :param where: a condition in DuckDB's SQL; ``true`` for all rows.
        """
        from icemigrate.api.sql_values import expressions
        from icemigrate.table_data.row_changes import update_data

        return update_data(self._tables(), table, expressions(updates), where)

    def delete_data(self, table: str, where: str) -> RowChangeOutcome:
        """Delete the rows for which a condition is true, in one snapshot; with Spark as :meth:`update_data`.

        :param where: a condition in DuckDB's SQL; ``true`` for all rows.
        """
        from icemigrate.table_data.row_changes import delete_data

        return delete_data(self._tables(), table, where)

    def upsert(self, table: str, data: Any, on: str | Sequence[str]) -> RowChangeOutcome:
        """Update the rows that have the keys of some data, and insert the others, in one snapshot.

        With Spark as :meth:`update_data`.

        :param data: as in :meth:`insert_data`; columns that it lacks keep their values.
        :param on: the columns that identify a row.
        :raises UsageError: two rows of the data have the same key.
        :raises Mistakes: rows do not fit the columns; nothing was changed.
        """
        from icemigrate.table_data.upsert_rows import upsert

        return upsert(self._tables(), table, data, [on] if isinstance(on, str) else on)

    def query_table(
        self,
        table: str,
        where: str | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """The current rows.

        :param where: a condition in DuckDB's SQL, such as ``amount > 5``.
        :param columns: names, or dotted paths of nested fields; by default all.
        :param limit: the largest number of rows.
        """
        return self._query(table, where, columns, limit)

    def query_snapshot(
        self,
        table: str,
        snapshot_id: int | str,
        where: str | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """The rows of a snapshot, with the columns of that time; otherwise as :meth:`query_table`.

        :param snapshot_id: an id; or a tag, a time in ISO 8601, or a branch, which has the current columns.
        """
        return self._query(table, where, columns, limit, snapshot=str(snapshot_id))

    def query_as_of(
        self,
        table: str,
        timestamp: date | str,
        where: str | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """The rows at a time, with the columns of that time; otherwise as :meth:`query_table`.

        :param timestamp: a day is its midnight, and a text is in ISO 8601; without a zone it is in UTC.
        """
        from icemigrate.table_data.table_points import parse_timestamp

        at = timestamp if isinstance(timestamp, datetime) else parse_timestamp(str(timestamp))
        return self._query(table, where, columns, limit, timestamp=at)

    def query_tag(
        self,
        table: str,
        tag: str,
        where: str | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """The rows of a tag, with the columns of that time; otherwise as :meth:`query_table`."""
        return self._query(table, where, columns, limit, tag=tag)

    def _query(
        self, table: str, where: str | None, columns: Sequence[str], limit: int | None, **point: Any
    ) -> pa.Table:
        from icemigrate.table_data.query_tables import query_table
        from icemigrate.table_data.table_points import ReadPoint

        return query_table(self._tables(), table, where, columns, limit, ReadPoint(**point))

    # Snapshots

    def list_snapshots(self, table: str) -> tuple[SnapshotInfo, ...]:
        """The snapshots that the table still has, the oldest first."""
        from icemigrate.table_data.snapshot_list import list_snapshots

        return list_snapshots(self._tables().load(table))

    def get_current_snapshot(self, table: str) -> SnapshotInfo | None:
        """The snapshot of the main branch; ``None`` for a table without rows."""
        from icemigrate.table_data.snapshot_list import get_current_snapshot

        return get_current_snapshot(self._tables().load(table))

    def compare_snapshots(
        self, table: str, before: int | str, after: int | str, *, key: Sequence[str] = ()
    ) -> CompareResult:
        """The differences of two snapshots: columns, files, and rows that were added, removed or changed.

        :param before: an id; or a tag, a branch, or a time in ISO 8601; so is ``after``.
        :param key: the columns that identify a row; without them no row is changed, only added and removed.
        """
        from icemigrate.table_data.compare_snapshots import compare_snapshots

        return compare_snapshots(self._tables(), table, before, after, key=key)

    def rollback(self, table: str, snapshot_id: int | str) -> RollbackTableResult:
        """Roll back to a snapshot: set the main branch back, or forward again; no snapshot is removed.

        Columns, properties, tags and other branches stay.

        :param snapshot_id: an id; or a tag, a branch, or a time in ISO 8601.
        """
        from icemigrate.table_data.snapshot_rollback import rollback_table

        return rollback_table(self._tables(), table, snapshot_id)

    def expire_snapshots(self, table: str, older_than_days: float, *, dry_run: bool = False) -> ExpireResult:
        """Remove old snapshots, and delete the files that only they need.

        The current snapshot, those of tags and branches, and those that an undo of a migration reads stay.

        :param older_than_days: the least age, in days.
        :param dry_run: only find out what would expire.
        """
        from icemigrate.table_data.snapshot_expiry import expire_snapshots

        return expire_snapshots(self._tables(), table, older_than_days, dry_run=dry_run)

    def compact(
        self, table: str, *, where: str | None = None, spark: SparkSession | None = None
    ) -> CompactResult:
        """Write small data files, and data files with deleted rows, anew; rows do not change.

        Spark does it, and is started unless a session is given.

        :param where: a condition in Spark SQL; only files that may have such rows are rewritten.
        :param spark: a running session.
        """
        from icemigrate.table_data.compaction import compact

        return compact(self._tables(), table, where=where, spark=spark)

    # Columns

    def evolve_schema(
        self, table: str, changes: Mapping[str, Any], *, allow: Iterable[str] = ()
    ) -> ColumnChangesResult:
        """Make several changes of columns in one commit, with the rules of migrations.

        The history of a project records them as a manual change, which ``drift`` shows until a migration
        declares them.

        :param changes: the keys ``renames``, ``columns`` and ``drop_columns`` of a table's entry in a
            migration file.
        :param allow: consents to hazards, as in a file: ``destructive sales.orders.note``.
        :raises Mistakes: a change breaks a rule of Iceberg, or a consent is missing; nothing was changed.
        :raises LockHeld: another process held the project's lock until the timeout.
        """
        return self._change_columns(ColumnChanges(table, changes), allow)

    def add_column(
        self,
        table: str,
        column: str,
        type_: str,
        *,
        description: str | None = None,
        required: bool = False,
        default: object = None,
        after: str | None = None,
        first: bool = False,
        allow: Iterable[str] = (),
    ) -> ColumnChangesResult:
        """Add a column; otherwise as :meth:`evolve_schema`.

        :param column: a name, or a dotted path into a struct.
        :param type_: as in a migration file, such as ``decimal(10,2)``.
        :param default: of older rows, and of new rows without a value; needs format version 3.
        :param after: the column that precedes it; by default it is the last one.
        """
        request = column_addition(
            table,
            column,
            type_,
            description=description,
            is_required=required,
            default=default,
            after=after,
            is_first=first,
        )
        return self._change_columns(request, allow)

    def rename_column(
        self, table: str, column: str, new_name: str, *, allow: Iterable[str] = ()
    ) -> ColumnChangesResult:
        """Rename a column, which keeps its field id and its values; otherwise as :meth:`evolve_schema`.

        :param column: a name, or a dotted path into a struct.
        :param new_name: the last part alone.
        """
        return self._change_columns(ColumnChanges(table, {"renames": {column: new_name}}), allow)

    def drop_column(self, table: str, column: str, *, allow: Iterable[str] = ()) -> ColumnChangesResult:
        """Drop a column, which needs the consent ``destructive``; otherwise as :meth:`evolve_schema`.

        :param column: a name, or a dotted path into a struct.
        """
        return self._change_columns(ColumnChanges(table, {"drop_columns": [column]}), allow)

    def _change_columns(self, request: ColumnChanges, allow: Iterable[str]) -> ColumnChangesResult:
        consents = parse_consents([allow] if isinstance(allow, str) else allow)
        result = change_columns(
            self._sessions.project,
            self._sessions.environment,
            replace(request, allow=consents),
            is_recorded=self._sessions.is_recorded,
        )
        assert result is not None, "without a question nothing is declined"
        return result
