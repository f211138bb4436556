"""Queries on tables: what the commands ``table query`` and ``table sql`` and the Python API call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.table_data.duckdb_problems import duckdb_problem
from icemigrate.table_data.duckdb_scans import require_manifests
from icemigrate.table_data.duckdb_session import open_duckdb, quoted_identifier, run_query
from icemigrate.table_data.duckdb_statements import require_reads
from icemigrate.table_data.expression_types import require_truth_type
from icemigrate.table_data.query_errors import duckdb_errors
from icemigrate.table_data.query_metadata import point_metadata
from icemigrate.table_data.query_readers import choose_reader
from icemigrate.table_data.query_statements import Query, TableUse, check_condition, parse_query
from icemigrate.table_data.query_views import TableRead, create_views
from icemigrate.table_data.sql_positions import EditedSql
from icemigrate.table_data.sql_quotes import quote_hints
from icemigrate.table_data.table_points import CURRENT, ReadPoint, ResolvedPoint, resolve_point
from icemigrate.table_data.table_session import CurrentTable, TableSession

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 65_536
"""Rows of one batch of a result."""


class QueryBatches:
    """The batches of a result, whose columns have different names: a second ``id`` is called ``id_1``.

    :ivar schema: of every batch.
    """

    def __init__(
        self, reader: pa.RecordBatchReader, errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        import pyarrow as pa

        names: list[str] = []
        for name in reader.schema.names:
            free = (f"{name}_{number}" for number in count(1))
            names.append(name if name not in names else next(n for n in free if n not in reader.schema.names))
        self.schema = pa.schema([one.with_name(n) for one, n in zip(reader.schema, names, strict=True)])
        self._reader, self._errors = reader, errors

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with self._errors():
            for batch in self._reader:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)


class OpenQuery(Frozen):
    """A query whose tables are open.

    :param written: the statement for DuckDB, made from what the user wrote.
    :param reads: the tables, each once for each point.
    """

    connection: duckdb.DuckDBPyConnection
    written: EditedSql
    reads: tuple[TableRead, ...] = field(default_factory=tuple)

    @property
    def sql(self) -> str:
        """The statement."""
        return self.written.sql

    def batches(self) -> QueryBatches:
        """Run the query; its rows come in batches while the query is open.

        :raises IcemigrateError: DuckDB refuses the query, or a file cannot be read.
        """
        self.require_files()
        with self.errors():
            reader = self.connection.execute(self.sql).to_arrow_reader(BATCH_ROWS)
        return QueryBatches(reader, self.errors)

    def require_files(self) -> None:
        """See :func:`~icemigrate.table_data.duckdb_scans.require_manifests`."""
        for read in self.reads:
            require_manifests(read.declared, read.manifests)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise DuckDB's exceptions as errors of the project, with places in what the user wrote."""
        import duckdb

        columns = [column.name for read in self.reads for column in read.metadata.schema.fields]
        with duckdb_errors(self.reads_by_view, self.written, columns):
            try:
                yield
            except (duckdb.Error, OSError) as error:
                if duckdb_problem(error).exception == "INTERRUPT":
                    # DuckDB's stream reports an interrupt for an error in another of its threads.
                    run_query(self.connection, lambda: _read_all(self.connection.execute(self.sql)))
                raise

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of another statement on the open tables.

        :raises IcemigrateError: a file cannot be read.
        """
        self.require_files()
        with duckdb_errors(self.reads_by_view):
            return run_query(self.connection, lambda: self.connection.execute(sql).fetchall())

    def rows(self) -> pa.Table:
        """Run the query; all of its rows.

        :raises IcemigrateError: as :meth:`batches`.
        """
        import pyarrow as pa

        found = self.batches()
        return pa.Table.from_batches(found, found.schema)

    @property
    def reads_by_view(self) -> dict[str, str]:
        """The declared names of the tables, by the names of their views."""
        return {read.view: read.declared for read in self.reads}


def _read_all(result: duckdb.DuckDBPyConnection) -> None:
    for _ in result.to_arrow_reader(BATCH_ROWS):
        pass


def query_table(
    session: TableSession,
    name: str,
    where: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    at: ReadPoint = CURRENT,
) -> pa.Table:
    """Rows of one table as an Arrow table.

    :param name: of the table, in migration files.
    :param where: a condition in DuckDB's SQL; all rows without one.
    :param columns: names of columns, or paths of nested fields; all columns without one.
    :param limit: the largest number of rows.
    :param at: the state of the table.
    :raises UsageError: a name, the condition or the point is wrong.
    :raises IcemigrateError: the table cannot be read.
    """
    with open_table_query(session, name, where, columns, limit, at) as query:
        return query.rows()


def query_sql(session: TableSession, text: str) -> pa.Table:
    """The rows of a SELECT on tables of the catalog, as an Arrow table.

    :param text: DuckDB's SQL, with ``FOR TIMESTAMP AS OF`` and ``FOR VERSION AS OF`` after a table.
    :raises UsageError: it is no SELECT, or names no table.
    :raises IcemigrateError: a table cannot be read.
    """
    with open_sql_query(session, text) as query:
        return query.rows()


@contextmanager
def open_sql_query(session: TableSession, text: str) -> Iterator[OpenQuery]:
    """A SELECT whose rows are read while the block runs; see :func:`query_sql`."""
    with quote_hints(text):
        query = parse_query(text)
    with _opened(session, query, [use.point for use in query.uses]) as opened:
        yield opened


@contextmanager
def open_table_query(
    session: TableSession,
    name: str,
    where: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    at: ReadPoint = CURRENT,
) -> Iterator[OpenQuery]:
    """A query of one table whose rows are read while the block runs; see :func:`query_table`."""
    table = session.load(name)
    point = resolve_point(table, at)
    if limit is not None and limit < 0:
        raise UsageError(f"the limit {limit} is negative", "give the largest number of rows")
    schema = _schema(table, point)
    selected = _selected(table, schema, columns, at)
    parts = (*table.declared.namespace, table.declared.name)
    before = f"SELECT {selected} FROM "
    text = before + ".".join(map(quoted_identifier, parts))
    own = TableUse(table.declared, at, len(before), len(text), table.declared.name)
    end = "" if where is None else "\n)"
    if limit is not None:
        end += f" LIMIT {limit}"
    if where is not None:
        with quote_hints(where, (column.name for _, column in schema.walk())):
            check_condition(where)
        text += f"{_WHERE}{where}"
    text += end
    # Only a condition can name further tables.
    query = Query(text, (own,)) if where is None else parse_query(text)
    points = [at, *(use.point for use in query.uses[1:])]
    part = None if where is None else (own.end + len(_WHERE), own.end + len(_WHERE) + len(where))
    with _opened(session, query, points, {table.declared: table}, part) as opened:
        if where is not None:
            view = f"{quoted_identifier(opened.reads[0].view)} AS {quoted_identifier(table.declared.name)}"
            condition = opened.sql[len(before) + len(view) + len(_WHERE) : len(opened.sql) - len(end)]
            _require_truth(opened, view, condition, where)
        yield opened


_WHERE = " WHERE (\n"


def _require_truth(opened: OpenQuery, view: str, condition: str, where: str) -> None:
    """Check that DuckDB does not make a condition of another value, as it makes `false` of the number 0.

    :param view: the table, as what follows ``FROM``.
    :param condition: for DuckDB.
    :param where: the condition as the user wrote it.
    :raises UsageError: its values are neither true nor false.
    """
    import duckdb

    opened.require_files()
    try:
        described = opened.connection.execute(f"DESCRIBE SELECT (\n{condition}\n) FROM {view}").fetchall()
    except duckdb.Error:
        return  # the query itself gives the error, with its place in the condition
    require_truth_type(str(described[0][1]), where)


def _schema(table: CurrentTable, point: ResolvedPoint) -> Schema:
    from icemigrate.iceberg.schema_json import schema_from_json

    schemas = table.metadata["schemas"]
    return schema_from_json(next(s for s in schemas if s["schema-id"] == point.schema_id))


def _selected(table: CurrentTable, schema: Schema, columns: Sequence[str], at: ReadPoint) -> str:
    """The columns of a SELECT."""
    from icemigrate.iceberg.names import BadName, parse_path

    if not columns:
        return "*"
    found = []
    for text in columns:
        try:
            path = parse_path(text)
        except BadName as error:
            raise UsageError(f"`--columns`: {error}", "separate names by commas, such as `id,at`") from error
        if schema.find(path) is None:
            known = [format_path(p) for p, _ in schema.walk()]
            hint = did_you_mean(text, known) or "its columns are " + ", ".join(
                f"`{format_path((f.name,))}`" for f in schema.fields
            )
            when = "" if at == CURRENT else " in the state that is read"
            raise UsageError(f"table `{table.declared}` has no column `{text}`{when}", hint)
        if path in found:
            raise UsageError(f"column `{text}` is given twice", "give each column once")
        found.append(path)
    return ", ".join(
        ".".join(map(quoted_identifier, path))
        + (f" AS {quoted_identifier(format_path(path))}" if len(path) > 1 else "")
        for path in found
    )


@contextmanager
def _opened(
    session: TableSession,
    query: Query,
    points: Sequence[ReadPoint],
    loaded: dict[TableName, CurrentTable] | None = None,
    condition: tuple[int, int] | None = None,
) -> Iterator[OpenQuery]:
    """A query with a view for each table and point, in a DuckDB that reads nothing else.

    :param condition: where the condition of ``--where`` begins and ends, if the user wrote only that.
    """
    reads, views = _reads(session, query, points, dict(loaded or {}))
    written = query.with_views(views)
    if condition is not None:
        written = replace(written, label="--where", start=condition[0], end=condition[1])
    with _connected(session, reads) as (connection, used):
        opened = OpenQuery(connection, written, used)
        with opened.errors():
            require_reads(connection, written.sql, views)
        yield opened


@contextmanager
def open_points(
    session: TableSession,
    table: CurrentTable,
    points: Sequence[ResolvedPoint],
    files: Sequence[Collection[str] | None],
) -> Iterator[OpenQuery]:
    """Several states of one table, each as a view; the query is empty.

    :param files: for each point, the data files whose rows are wanted; ``None`` for all.  PyIceberg's scan
        gives the rows of the other files too.
    :raises IcemigrateError: the table cannot be read.
    """
    reads = []
    for number, point in enumerate(points, 1):
        metadata = point_metadata(table.metadata, point, session.store.files.read)
        reader = choose_reader(str(table.declared), metadata, session.object_storage)
        reads.append(TableRead(table, point, metadata, reader, f"icemigrate_{number}"))
    with _connected(session, reads, files) as (connection, used):
        yield OpenQuery(connection, EditedSql(""), used)


@contextmanager
def _connected(
    session: TableSession, reads: Sequence[TableRead], files: Sequence[Collection[str] | None] = ()
) -> Iterator[tuple[duckdb.DuckDBPyConnection, tuple[TableRead, ...]]]:
    """A DuckDB with a view for each table and point, which reads nothing else; the tables that it reads."""
    with tempfile.TemporaryDirectory(prefix="icemigrate-query-") as folder:
        scratch = Path(folder).resolve()
        with open_duckdb(scratch / "spill") as connection:
            yield connection, create_views(session, connection, reads, scratch, files)


def _reads(
    session: TableSession,
    query: Query,
    points: Sequence[ReadPoint],
    loaded: dict[TableName, CurrentTable],
) -> tuple[tuple[TableRead, ...], list[str]]:
    """The tables of a query, each once for each point, and the view of each use."""
    reads: dict[tuple[TableName, ResolvedPoint], TableRead] = {}
    views = []
    for use, point in zip(query.uses, points, strict=True):
        # A table is loaded once, so that one query sees one state of it.
        table = loaded.setdefault(use.name, loaded.get(use.name) or session.load(str(use.name)))
        resolved = resolve_point(table, point)
        key = (use.name, resolved)
        if key not in reads:
            metadata = point_metadata(table.metadata, resolved, session.store.files.read)
            reader = choose_reader(str(table.declared), metadata, session.object_storage)
            reads[key] = TableRead(table, resolved, metadata, reader, f"icemigrate_{len(reads) + 1}")
        views.append(reads[key].view)
    return tuple(reads.values()), views
