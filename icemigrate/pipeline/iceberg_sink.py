"""The sink that writes rows to the tenants' tables: one snapshot for each table and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from icemigrate.frozen import replace
from icemigrate.iceberg.metadata_parts import layout_of
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.parquet_metrics import describe_data_file
from icemigrate.metadata_engine.table_store import FileStore
from icemigrate.otlp.attribute_columns import attribute_sources
from icemigrate.pipeline.arrow_partitions import arrow_can_write, by_partition
from icemigrate.pipeline.batch_commit import TableBatch, commit_table
from icemigrate.pipeline.batch_groups import commit_together
from icemigrate.pipeline.row_group_files import LARGEST_FILE, EncodedFile, RowGroupFiles
from icemigrate.pipeline.sink_port import RowColumns
from icemigrate.pipeline.table_retries import TableKey
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.system.worker_threads import SERVER_THREADS, run_in_threads
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.parquet_output import (
    copy_to_table,
    data_location,
    delete_files,
    parquet_codec,
    write_parquet,
)
from icemigrate.table_data.table_session import TableSession

_LARGEST_SORT = 128 * 1024 * 1024
"""Rows that DuckDB sorts together, in bytes of Arrow."""


def table_columns(table: LoadTarget) -> RowColumns:
    """The stored columns of a table; its properties name the attributes that fill some of them."""
    return RowColumns(tuple(table.columns), attribute_sources(table.metadata.get("properties") or {}))


class IcebergWriter:
    """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`.

    :param find_target: finds the table when there is a first row.
    """

    def __init__(self, find_target: Callable[[], LoadTarget], db: LoadDatabase, files: FileStore) -> None:
        self._find_target, self._db, self._files = find_target, db, files
        self._target: LoadTarget | None = None
        self._written = list[DataFile]()
        self._open: RowGroupFiles[tuple[Any, ...]] | None = None
        self._unsorted = list[Any]()

    @property
    def target(self) -> LoadTarget:
        """The table, as it was at the first row.

        :raises NoTable: there is none.
        """
        if self._target is None:
            self._target = self._find_target()
        return self._target

    def columns(self) -> RowColumns:
        """The stored columns of the table."""
        return table_columns(self.target)

    def write(self, rows: Any) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is None and arrow_can_write(self.target):
            size = whole_number(self.target.properties.get("write.target-file-size-bytes"))
            self._open = RowGroupFiles(
                self.target.columns,
                rows.schema,
                self._add_file,
                parquet_codec(self.target),
                min(size or LARGEST_FILE, LARGEST_FILE),
            )
        if self._open is None:
            self._unsorted.append(rows)
            if sum(one.nbytes for one in self._unsorted) >= _LARGEST_SORT:
                self._write_sorted()
            return
        for partition, part in by_partition(rows, self.target):
            self._open.add(partition, part)

    def complete(self) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is not None:
            self._open.complete()
        self._write_sorted()

    def _write_sorted(self) -> None:
        """Write rows in the order of the table, or with partitions that DuckDB alone computes."""
        if not self._unsorted:
            return
        import pyarrow as pa

        rows, self._unsorted = pa.concat_tables(self._unsorted), []
        self._db.connection.register("telemetry", rows)
        try:
            files = write_parquet(self._db, "SELECT * FROM telemetry", self.target, is_checked=True)
        finally:
            self._db.connection.unregister("telemetry")
        self._written += copy_to_table(files, self.target, self._files)

    def _add_file(self, partition: tuple[Any, ...], file: EncodedFile) -> None:
        location = data_location(self.target, partition, len(self._written))
        target = self.target
        found = describe_data_file(location, file.content, target.columns, target.metadata, file.nan_counts)
        self._written.append(replace(found, partition=partition))
        self._files.write(location, file.content)

    def discard(self) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is not None:
            self._open.discard()
        delete_files(self._written, self._files)
        self._written, self._unsorted = [], []

    def add_to(self, result: TableEntries) -> TableEntries:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        layout = None if self._target is None else layout_of(self._target.metadata)
        return replace(result, files=tuple(self._written), layout=layout)


class IcebergSink:
    """See :class:`~icemigrate.pipeline.sink_port.Sink`."""

    def __init__(self, session: TableSession) -> None:
        self._session = session
        self._together = dict[TableKey, TableBatch]()

    def publish_together(self, batch: str, groups: Sequence[Sequence[TableEntries]]) -> None:
        """Commit the files of many tables: in one transaction, or by several requests to a server at once.

        :meth:`publish` commits what this method leaves.
        """
        session = self._session
        if session.environment.catalog.settings.type == "rest":
            ready = [one for one in groups if _has_commit(one)]
            done = run_in_threads(partial(commit_table, session, batch), ready, SERVER_THREADS)
            self._together |= {(one.tenant, one.kind): one for one in done}
        elif session.store.commits_together:
            self._together |= commit_together(session, batch, groups)

    def publish(
        self, batch: str, results: Sequence[TableEntries], before: TableBatch | None, *, is_paused: bool
    ) -> TableBatch:
        """Commit the files; without files, only the entries are counted."""
        assert before is None, "tables are first: their problems keep entries in the log"
        done = self._together.pop((results[0].tenant, results[0].kind), None)
        if done is not None:
            return done
        return commit_table(self._session, batch, results, is_paused=is_paused)


def _has_commit(results: Sequence[TableEntries]) -> bool:
    """Whether there are files for a table, and no problem."""
    has_files = any(result.files for result in results)
    return bool(results[0].table) and has_files and all(result.problem is None for result in results)
