"""Writes the entries of a batch as data files of their tables, in Spark's Python processes.

A task gets the entries of some tables, in the order of tables.  It writes their files and returns what the
driver commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, kind_of
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.table_store import TableStore
from icemigrate.otlp.attribute_columns import AttributeSource
from icemigrate.otlp.payload_fields import UnreadablePayload
from icemigrate.otlp.telemetry_columns import RequestColumns, read_columns
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.pipeline.attribute_counts import AttributeCounter, pack_counts
from icemigrate.pipeline.entry_payloads import entries_with_payloads
from icemigrate.pipeline.iceberg_sink import IcebergWriter, table_columns
from icemigrate.pipeline.parquet_sink import ParquetWriter, standard_columns, tenant_folder
from icemigrate.pipeline.quarantine import QUARANTINE_TYPES, quarantine_row
from icemigrate.pipeline.sink_port import RowColumns, SinkWriter
from icemigrate.pipeline.task_results import TableEntries, result_batch
from icemigrate.pipeline.telemetry_arrow import ArrowRows, UnsuitableTable
from icemigrate.planning.planning_context import ReservedNames
from icemigrate.project.namespace_mapping import NamespaceMapping
from icemigrate.project.sink_choice import SinkChoice
from icemigrate.project.tenant_tables import TenantTables
from icemigrate.spark.task_errors import carry_errors
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.table_session import CurrentTable
from icemigrate.table_data.writable_tables import reason_against_rows
from icemigrate.wal.entries import EntryKind, PayloadEncoding
from icemigrate.wal.storage_path import AnyPath

_ROW_GROUP = 32 * 1024 * 1024
"""Rows of one table that a task has in memory before it encodes them, in bytes of Arrow."""


class BatchContext(Frozen):
    """What tasks need to know.

    :param settings: of the catalog.
    :param names: declared names and those in the catalog.
    :param quarantine: the declared table of entries that cannot be read.
    :param reserved: names of tables that only icemigrate writes.
    :param paused: problems by tenant and kind, of tables that are not written now.
    :param latest_ns: entries with a later time are from the future; in nanoseconds since 1970.
    :param sinks: where the rows of each tenant go.
    :param batch: the name of the batch.
    :param log: the folder of the segments.
    :param observed: the kinds whose attributes without a column are counted.
    """

    settings: CatalogSettings
    tables: TenantTables
    names: NamespaceMapping
    quarantine: TableName
    reserved: ReservedNames
    paused: Mapping[tuple[str | None, str | None], str] = field(default_factory=dict)
    latest_ns: int = 2**63
    sinks: SinkChoice = SinkChoice()
    batch: str = ""
    log: AnyPath = Path()
    observed: frozenset[EntryKind] = frozenset()


class NoTable(IcemigrateError):
    """A tenant has no table for its entries."""


class _TableFiles:
    """Collects the rows of one tenant and kind and writes them to sinks.

    :param table: the declared name of the table; empty without one.
    :param sinks: at least one, unless there is a problem; the first one decides the columns.
    :param types: of the columns that rows have, in Iceberg's notation.
    :param problem: why the entries are only counted, known before they are read.
    :param counter: of attributes, which the caller calls.
    """

    def __init__(
        self,
        table: str,
        sinks: Sequence[SinkWriter],
        types: Mapping[str, str],
        problem: str | None = None,
        counter: AttributeCounter | None = None,
    ) -> None:
        self._table, self._sinks, self._types = table, sinks, types
        self._pending: ArrowRows | None = None
        self._counter, self._sources = counter, frozenset[AttributeSource]()
        self.entries = self.rows = 0
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
            if self._pending is None:
                columns = self._sinks[0].columns()
                self._pending = ArrowRows(self._types, columns.fields, columns.sources)
                self._sources = frozenset(columns.sources.values())
            self._pending.add(found, size)
            self.rows += found.rows
            if self._pending.bytes >= _ROW_GROUP:
                self._flush()

    def _flush(self) -> None:
        """Hand over what is pending."""
        rows = None if self._pending is None else self._pending.take()
        if rows is not None and rows.num_rows:
            for sink in self._sinks:
                sink.write(rows)

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
        for sink in self._sinks:
            sink.discard()
        self.rows, self.problem, self.stops = 0, problem, stops
        self._pending = None

    def result(self, tenant: str | None, kind: str | None) -> TableEntries:
        """The files, after the last row."""
        with self._problems():
            self._flush()
            if self.problem is None:
                for sink in self._sinks:
                    sink.complete()
        result = TableEntries(
            table=self._table,
            tenant=tenant,
            kind=kind,
            entries=self.entries,
            rows=self.rows,
            problem=self.problem,
            stops=self.stops,
            attributes=b"" if self._counter is None else pack_counts(self._counter.result(self._sources)),
        )
        for sink in self._sinks:
            result = sink.add_to(result)
        return result


class EntryFileWriter:
    """Writes the files of tables; an instance belongs to one task.

    :param store: of the catalog.
    """

    def __init__(self, context: BatchContext, store: TableStore, db: LoadDatabase) -> None:
        self._context, self.store, self._db = context, store, db
        quarantine = context.quarantine
        self._quarantine = _TableFiles(str(quarantine), [self._iceberg(quarantine)], QUARANTINE_TYPES)

    def write(self, tenant: str, kind: EntryKind, entries: Iterable[Mapping[str, Any]]) -> TableEntries:
        """Write the entries of one tenant and kind; those that cannot be read are in the quarantine."""
        name = self._context.tables.table(tenant, kind)
        has_tables = self._context.sinks.of(tenant).has_tables
        problem = self._context.paused.get((tenant, kind.value))
        if name is None and has_tables:
            problem = f"no table is given for {kind.value}"
        table = "" if name is None or not has_tables else str(name)
        counter = AttributeCounter() if kind in self._context.observed and problem is None else None
        observe = None if counter is None else counter.observe
        sinks = self._sinks(tenant, kind, name)
        files = _TableFiles(table, sinks, TELEMETRY_TYPES[kind], problem, counter)
        unreadable = future = 0
        for entry in entries:
            payload = entry["payload"]
            try:
                found = read_columns(payload, kind, PayloadEncoding(entry["encoding"]), observe)
            except UnreadablePayload as error:
                self.quarantine(entry, str(error))
                unreadable += 1
            else:
                files.add(found, len(payload))
                future += entry["time_ns"] > self._context.latest_ns
        return replace(files.result(tenant, kind.value), quarantined=unreadable, future=future)

    def _iceberg(self, name: TableName) -> IcebergWriter:
        return IcebergWriter(lambda: self.target(name), self._db, self.store.files)

    def _sinks(self, tenant: str, kind: EntryKind, name: TableName | None) -> list[SinkWriter]:
        """The sinks of a tenant, the table first: its columns are those of the files."""
        choice, found = self._context.sinks, list[SinkWriter]()
        iceberg = None
        if choice.of(tenant).has_tables and name is not None:
            iceberg = self._iceberg(name)
            found.append(iceberg)
        if choice.of(tenant).has_files:
            assert choice.folder is not None, "a sink of files has a folder"
            folder = tenant_folder(choice.folder, tenant, kind.value)
            table = iceberg

            def find_columns() -> RowColumns:
                try:
                    return standard_columns(kind) if name is None else table_columns(self.target(name))
                except NoTable:
                    return standard_columns(kind)

            def find_table() -> str | None:
                return None if table is None else str(table.target.metadata["table-uuid"])

            found.append(ParquetWriter(folder, self._context.batch, kind, find_columns, find_table))
        return found

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

        :raises NoTable: there is none, only icemigrate writes it, or another declared table has its name.
        """
        name = self._context.names.table(declared)
        if self._context.names.is_shared(declared):
            other = self._context.names.declared(name)
            raise NoTable(
                f"`{name}` in the catalog is the table `{other}`, by `namespaces` of the environment"
            )
        stored = self.store.load(name)
        if stored is None:
            raise NoTable(f"there is no table `{declared}`")
        kind = kind_of(self._context.settings.type, self._context.settings.uri)
        if CAPABILITY_MATRIX[kind].lowercases_names and str(name) != str(name).lower():
            # Another tenant's id can differ in case alone.
            raise NoTable(f"the catalog ignores case, and the name `{name}` has upper-case letters")
        table = CurrentTable(declared, name, stored)
        if (reason := reason_against_rows(self._context.reserved, table)) is not None:
            raise NoTable(f"table `{declared}` {reason}: only icemigrate writes it")
        return load_target(table)


def file_batches(context: BatchContext, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the entries of a task.

    :param batches: ``pyarrow.RecordBatch`` with the columns of
        :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`; entries of a table follow each other.
    """
    store = open_table_store(context.settings)
    assert store is not None, "the driver opened this catalog"
    try:
        with (
            carry_errors(),
            open_load_database() as db,
            entries_with_payloads(context.log, batches) as entries,
        ):
            writer = EntryFileWriter(context, store, db)
            for (tenant, kind), group in groupby(entries, key=itemgetter("tenant", "kind")):
                if tenant is None:
                    for entry in group:
                        writer.quarantine(entry, entry["problem"])
                else:
                    yield result_batch(writer.write(tenant, EntryKind(kind), group))
            if (result := writer.quarantined()) is not None:
                yield result_batch(result)
    finally:
        store.close()
