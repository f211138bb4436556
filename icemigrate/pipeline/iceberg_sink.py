"""The sink that writes rows to the tenants' tables: one snapshot for each table and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from icemigrate.frozen import replace
from icemigrate.iceberg.metadata_parts import layout_of
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.table_store import FileStore
from icemigrate.pipeline.batch_commit import TableBatch, commit_table
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.parquet_output import copy_to_table, delete_files, write_parquet
from icemigrate.table_data.table_session import TableSession


class IcebergWriter:
    """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`.

    :param find_target: finds the table when there is a first row.
    """

    def __init__(self, find_target: Callable[[], LoadTarget], db: LoadDatabase, files: FileStore) -> None:
        self._find_target, self._db, self._files = find_target, db, files
        self._target: LoadTarget | None = None
        self._written = list[DataFile]()

    @property
    def target(self) -> LoadTarget:
        """The table, as it was at the first row.

        :raises NoTable: there is none.
        """
        if self._target is None:
            self._target = self._find_target()
        return self._target

    def columns(self) -> Sequence[Field]:
        """The stored columns of the table."""
        return self.target.columns

    def write(self, rows: Any) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        self._db.connection.register("telemetry", rows)
        files = write_parquet(self._db, "SELECT * FROM telemetry", self.target, is_checked=True)
        self._written += copy_to_table(files, self.target, self._files)

    def discard(self) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        delete_files(self._written, self._files)
        self._written = []

    def add_to(self, result: TableEntries) -> TableEntries:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        layout = None if self._target is None else layout_of(self._target.metadata)
        return replace(result, files=tuple(self._written), layout=layout)


class IcebergSink:
    """See :class:`~icemigrate.pipeline.sink_port.Sink`."""

    def __init__(self, session: TableSession) -> None:
        self._session = session

    def publish(
        self, batch: str, results: Sequence[TableEntries], before: TableBatch | None, *, is_paused: bool
    ) -> TableBatch:
        """Commit the files; without files, only the entries are counted."""
        assert before is None, "tables are first: their problems keep entries in the log"
        return commit_table(self._session, batch, results, is_paused=is_paused)
