"""Writes the entries of a batch as data files of their tables, in Spark's Python processes.

A task gets the entries of some tables, in the order of tables.  It writes their files and returns what the
driver commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id, default_spec_id
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.table_store import TableStore
from icemigrate.otlp.payload_fields import UnreadablePayload
from icemigrate.otlp.telemetry_columns import RequestColumns, read_columns
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.pipeline.quarantine import QUARANTINE_TYPES, quarantine_row
from icemigrate.pipeline.telemetry_arrow import ArrowRows, UnsuitableTable
from icemigrate.planning.planning_context import ReservedNames
from icemigrate.project.namespace_mapping import NamespaceMapping
from icemigrate.project.tenant_tables import TenantTables
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.parquet_output import copy_to_table, delete_files, write_parquet
from icemigrate.table_data.table_session import CurrentTable
from icemigrate.table_data.writable_tables import reason_against_rows
from icemigrate.wal.entries import EntryKind, PayloadEncoding

FILE_COLUMNS = (
    "table string, tenant string, kind string, files binary, layout string, entries long, rows long, "
    "problem string, stops boolean, quarantined long, future long"
)
"""The columns of :class:`TableEntries`, in Spark's syntax."""
_MOST_BYTES = 256 * 1024 * 1024
"""Rows of one table that a task has in memory, in bytes of Arrow."""
_IGNORE_CASE = frozenset({"hive", "glue"})
"""Kinds of catalogs that ignore the case of names."""


class BatchContext(Frozen):
    """What tasks need to know.

    :param settings: of the catalog.
    :param names: declared names and those in the catalog.
    :param quarantine: the declared table of entries that cannot be read.
    :param reserved: names of tables that only icemigrate writes.
    :param paused: problems by tenant and kind, of tables that are not written now.
    :param latest_ns: entries with a later time are from the future; in nanoseconds since 1970.
    """

    settings: CatalogSettings
    tables: TenantTables
    names: NamespaceMapping
    quarantine: TableName
    reserved: ReservedNames
    paused: Mapping[tuple[str | None, str | None], str] = field(default_factory=dict)
    latest_ns: int = 2**63


class TableEntries(Frozen):
    """The result of a task for one table.

    :param table: its declared name.
    :param tenant: ``None`` for the quarantine.
    :param files: data files that are written; none if the table has a problem.
    :param layout: of the table that they were written for, see :func:`layout_of`.
    :param problem: why the entries are not written, as a clause.
    :param stops: whether the problem is not one of this table alone, so that the batch stops.
    :param quarantined: further entries of the tenant, which the quarantine gets.
    :param future: entries that are from the future; the table gets them all the same.
    """

    table: str
    tenant: str | None = None
    kind: str | None = None
    files: tuple[DataFile, ...] = ()
    layout: str | None = None
    entries: int = 0
    rows: int = 0
    problem: str | None = None
    stops: bool = False
    quarantined: int = 0
    future: int = 0


def layout_of(metadata: Json) -> str:
    """The ids of the schema and the partition spec that new files of a table have."""
    return f"{current_schema_id(metadata)}/{default_spec_id(metadata)}"


class NoTable(IcemigrateError):
    """A tenant has no table for its entries."""


class _TableFiles:
    """Collects the rows of one table and writes them as files.

    :param types: of the columns that rows have, in Iceberg's notation.
    :param problem: why the entries are only counted, known before they are read.
    """

    def __init__(
        self,
        writer: EntryFileWriter,
        name: TableName | None,
        types: Mapping[str, str],
        problem: str | None = None,
    ) -> None:
        self._writer, self._name, self._types = writer, name, types
        self._target: LoadTarget | None = None
        self._pending: ArrowRows | None = None
        self.files, self.entries, self.rows = list[DataFile](), 0, 0
        self.problem = problem
        self.stops = False

    def add(self, found: RequestColumns, size: int) -> None:
        """Add the rows of one entry.

        :param size: of its payload, in bytes.
        """
        self.entries += 1
        if self.problem is not None or not found.rows:
            return
        with self._problems():
            if self._target is None or self._pending is None:
                assert self._name is not None, "without a table there is a problem"
                self._target = self._writer.target(self._name)
                self._pending = ArrowRows(self._types, self._target.columns)
            self._pending.add(found, size)
            self.rows += found.rows
            if self._pending.bytes >= _MOST_BYTES:
                self._flush()

    def _flush(self) -> None:
        """Write what is pending."""
        if self._target is not None and self._pending is not None:
            rows = self._pending.take()
            if rows.num_rows:
                self.files += self._writer.write_rows(rows, self._target)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """A block whose errors are the problem of the table."""
        try:
            yield
        except (UnsuitableTable, NoTable) as error:
            self._fail(str(error))
        except IcemigrateError as error:
            self._fail(error.message, stops=True)

    def _fail(self, problem: str, *, stops: bool = False) -> None:
        delete_files(self.files, self._writer.store.files)
        self.files, self.rows, self.problem, self.stops = [], 0, problem, stops
        self._pending = None

    def result(self, tenant: str | None, kind: str | None) -> TableEntries:
        """The files, after the last row."""
        with self._problems():
            self._flush()
        return TableEntries(
            table="" if self._name is None else str(self._name),
            tenant=tenant,
            kind=kind,
            files=tuple(self.files),
            layout=None if self._target is None else layout_of(self._target.metadata),
            entries=self.entries,
            rows=self.rows,
            problem=self.problem,
            stops=self.stops,
        )


class EntryFileWriter:
    """Writes the files of tables; an instance belongs to one task.

    :param store: of the catalog.
    """

    def __init__(self, context: BatchContext, store: TableStore, db: LoadDatabase) -> None:
        self._context, self.store, self._db = context, store, db
        self._quarantine = _TableFiles(self, context.quarantine, QUARANTINE_TYPES)

    def write(self, tenant: str, kind: EntryKind, entries: Iterable[Mapping[str, Any]]) -> TableEntries:
        """Write the entries of one table; those that cannot be read are in the quarantine."""
        name = self._context.tables.table(tenant, kind)
        problem = self._context.paused.get((tenant, kind.value))
        if name is None:
            problem = f"no table is given for {kind.value}"
        files, unreadable, future = _TableFiles(self, name, TELEMETRY_TYPES[kind], problem), 0, 0
        for entry in entries:
            payload = entry["payload"]
            try:
                found = read_columns(payload, kind, PayloadEncoding(entry["encoding"]))
            except UnreadablePayload as error:
                self.quarantine(entry, str(error))
                unreadable += 1
            else:
                files.add(found, len(payload))
                future += entry["time_ns"] > self._context.latest_ns
        return replace(files.result(tenant, kind.value), quarantined=unreadable, future=future)

    def quarantine(self, entry: Mapping[str, Any], problem: str) -> None:
        """Write an entry that cannot be read to the quarantine."""
        row = quarantine_row(entry, problem)
        columns = {name: [value] for name, value in row.items()}
        self._quarantine.add(RequestColumns(1, columns), len(entry["payload"]))

    def quarantined(self) -> TableEntries | None:
        """The files of the quarantine, after the last entry; a problem of it stops the batch."""
        if not self._quarantine.entries:
            return None
        result = self._quarantine.result(None, None)
        return result if result.problem is None else replace(result, stops=True)

    def target(self, declared: TableName) -> LoadTarget:
        """A table as it is now.

        :raises NoTable: there is none, or only icemigrate writes it.
        """
        name = self._context.names.table(declared)
        stored = self.store.load(name)
        if stored is None:
            raise NoTable(f"there is no table `{declared}`")
        if self._context.settings.type in _IGNORE_CASE and str(name) != str(name).lower():
            # Another tenant's id can differ in case alone.
            raise NoTable(f"the catalog ignores case, and the name `{name}` has upper-case letters")
        table = CurrentTable(declared, name, stored)
        if (reason := reason_against_rows(self._context.reserved, table)) is not None:
            raise NoTable(f"table `{declared}` {reason}: only icemigrate writes it")
        return load_target(table)

    def write_rows(self, rows: Any, target: LoadTarget) -> tuple[DataFile, ...]:
        """Write rows as files of a table.

        :param rows: ``pyarrow.Table`` with the columns of the table.
        """
        self._db.connection.register("telemetry", rows)
        files = write_parquet(self._db, "SELECT * FROM telemetry", target, is_checked=True)
        return copy_to_table(files, target, self.store.files)


def file_batches(context: BatchContext, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the entries of a task.

    :param batches: ``pyarrow.RecordBatch`` with the columns of
        :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`; entries of a table follow each other.
    """
    store = open_table_store(context.settings)
    assert store is not None, "the driver opened this catalog"
    try:
        with open_load_database() as db:
            writer = EntryFileWriter(context, store, db)
            entries = (entry for batch in batches for entry in batch.to_pylist())
            for (tenant, kind), group in groupby(entries, key=itemgetter("tenant", "kind")):
                if tenant is None:
                    for entry in group:
                        writer.quarantine(entry, entry["problem"])
                else:
                    yield _result_batch(writer.write(tenant, EntryKind(kind), group))
            if (result := writer.quarantined()) is not None:
                yield _result_batch(result)
    finally:
        store.close()


def _result_batch(result: TableEntries) -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "binary": pa.binary(), "long": pa.int64(), "boolean": pa.bool_()}
    columns = [column.split() for column in FILE_COLUMNS.split(", ")]
    values = [getattr(result, name) for name, _ in columns]
    values[3] = msgspec.msgpack.encode(result.files)
    arrays = [pa.array([value], types[type_]) for value, (_, type_) in zip(values, columns, strict=True)]
    return pa.record_batch(arrays, names=[name for name, _ in columns])


def read_result(row: Any) -> TableEntries:
    """A row of :data:`FILE_COLUMNS`."""
    files = msgspec.msgpack.decode(bytes(row.files), type=tuple[DataFile, ...])
    return TableEntries(**{**row.asDict(), "files": files})
