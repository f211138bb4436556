"""The sink of loose Parquet files: ``<kind>/tenant=<id>/day=<day>/<batch>-<number>.parquet``.

Tasks write to a folder that readers pass over, and the driver gives the files names that depend on the batch
alone (:mod:`icemigrate.pipeline.sink_folders`).  A file beside them lists those of the last batch: a repeated
batch replaces its own files, and leaves no other file of an earlier attempt.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.table_properties import ROWS_OF_TABLE
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.row_group_files import EncodedFile, RowGroupFiles
from icemigrate.pipeline.sink_folders import publish_file, remove_staged, write_new
from icemigrate.pipeline.sink_port import RowColumns
from icemigrate.pipeline.task_results import StagedFile, TableEntries
from icemigrate.project.sink_choice import SinkChoice
from icemigrate.wal.entries import EntryKind
from icemigrate.wal.storage_path import AnyPath, replace_file

DAY_COLUMNS = {EntryKind.TRACES: "start_time", EntryKind.LOGS: "time", EntryKind.METRICS: "time"}
"""The columns whose day, in UTC, a file's folder has."""
_NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_STAGING, _LAST_BATCH = "_staging", "_last_batch"


class _LastBatch(Frozen):
    """The files of the batch that was published last.

    :param files: relative to the tenant's folder.
    """

    batch: str
    files: tuple[str, ...]


def tenant_folder(root: AnyPath, tenant: str, kind: str) -> AnyPath:
    """The folder of a tenant's files of one kind."""
    return root / kind / f"tenant={tenant}"


def standard_columns(kind: EntryKind) -> RowColumns:
    """All columns of a kind, for a tenant without a table."""
    names = enumerate(TELEMETRY_TYPES[kind].items(), start=1)
    return RowColumns(tuple(Field(number, name, parse_type(type_)) for number, (name, type_) in names))


class ParquetWriter:
    """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`.

    :param folder: of the tenant and kind.
    :param batch: its name.
    :param find_columns: finds the columns when there is a first row.
    :param find_table: the UUID of the table that gets the rows too; ``None`` without one.
    """

    def __init__(
        self,
        folder: AnyPath,
        batch: str,
        kind: EntryKind,
        find_columns: Callable[[], RowColumns],
        find_table: Callable[[], str | None],
    ) -> None:
        self._staging, self._kind = folder / _STAGING / batch, kind
        self._find_columns, self._find_table = find_columns, find_table
        self._staged = list[StagedFile]()
        self._open: RowGroupFiles[str] | None = None

    def columns(self) -> RowColumns:
        """Those of the tenant's table, or all columns of the kind."""
        return self._find_columns()

    def write(self, rows: Any) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is None:
            table = self._find_table()
            metadata = None if table is None else {ROWS_OF_TABLE: table}
            schema = _without_ids(rows.schema).with_metadata(metadata)
            self._open = RowGroupFiles(self.columns().fields, schema, self._stage, has_metadata=True)
        for day, part in _by_day(rows, DAY_COLUMNS[self._kind]):
            self._open.add(day, part)

    def complete(self) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is not None:
            self._open.complete()

    def _stage(self, day: str, file: EncodedFile) -> None:
        path = self._staging / f"{uuid.uuid4()}.parquet"
        with _storage_errors(path):
            write_new(path, file.content)
        self._staged.append(StagedFile(path.name, day, file.rows))

    def discard(self) -> None:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        if self._open is not None:
            self._open.discard()
        for one in self._staged:
            (self._staging / one.name).unlink(missing_ok=True)
        self._staged = []

    def add_to(self, result: TableEntries) -> TableEntries:
        """See :class:`~icemigrate.pipeline.sink_port.SinkWriter`."""
        return replace(result, staged=tuple(self._staged))


class ParquetSink:
    """See :class:`~icemigrate.pipeline.sink_port.Sink`.

    :param choice: the tenants whose rows are in files, and the folder of all tenants.
    """

    def __init__(self, choice: SinkChoice) -> None:
        self._choice = choice

    def publish_together(self, batch: str, groups: Sequence[Sequence[TableEntries]]) -> None:
        """Leave all files to :meth:`publish`, because they wait for the tables."""

    def publish(
        self, batch: str, results: Sequence[TableEntries], before: TableBatch | None, *, is_paused: bool
    ) -> TableBatch:
        """Publish the files; after a problem of an earlier sink, the batch has none.

        :raises EngineError: also where an earlier attempt of the batch committed the rows to the table, and
            this one could not write them as files.
        """
        assert before is not None, "tables are first"
        if before.tenant is None or before.kind is None or is_paused:
            return before
        assert self._choice.folder is not None, "a sink of files has a folder"
        folder = tenant_folder(self._choice.folder, before.tenant, before.kind)
        problem = next((result.problem for result in results if result.problem is not None), None)
        if problem is not None and before.problem is None and self._choice.of(before.tenant).has_files:
            raise EngineError(
                f"table `{before.table}` has the rows of batch {batch}, and {folder} lacks them: {problem}",
                "remove the cause, and run the command again: it repeats the batch",
            )
        staged = [one for result in results for one in result.staged] if before.problem is None else []
        with _storage_errors(folder):
            if folder.is_dir():
                _publish(folder, batch, staged)
        return before


def _publish(folder: AnyPath, batch: str, staged: Sequence[StagedFile]) -> None:
    names = [f"day={one.day}/{batch}-{number:05}.parquet" for number, one in enumerate(staged)]
    record = folder / f"{_LAST_BATCH}-{batch.rpartition('-')[0]}.json"
    last, staging = _last_batch(record), folder / _STAGING / batch
    earlier = last.files if last is not None and last.batch == batch else ()
    if names or earlier:
        # Until the batch is complete, each file of any attempt of it is listed.
        listed = _LastBatch(batch, tuple(dict.fromkeys((*earlier, *names))))
        replace_file(record, msgspec.json.encode(listed))
    for name, one in zip(names, staged, strict=True):
        publish_file(staging / one.name, folder / name, may_exist=name in earlier)
    for name in set(earlier) - set(names):
        (folder / name).unlink(missing_ok=True)
    remove_staged(staging)


def _last_batch(record: AnyPath) -> _LastBatch | None:
    try:
        return msgspec.json.decode(record.read_bytes(), type=_LastBatch)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise EngineError(
            f"the file {record} is damaged", "remove it if no batch of this log was interrupted"
        ) from error


@contextmanager
def _storage_errors(path: AnyPath) -> Iterator[None]:
    """A block in which a refusal of the file system or storage ends the batch."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the Parquet files below {error.filename or path} cannot be written: {os_error_reason(error)}",
            "check the free space, and the right to write there",
        ) from error


def _by_day(rows: Any, column: str) -> Iterator[tuple[str, Any]]:
    """The rows of each day in order, and at the end those without a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in rows.schema.names:
        yield _NO_DAY, rows
        return
    days = rows[column].cast(pa.date32(), safe=False)
    for day in sorted(day for day in pc.unique(days).to_pylist() if day is not None):
        yield day.isoformat(), rows.filter(pc.equal(days, pa.scalar(day, pa.date32())))
    if days.null_count:
        yield _NO_DAY, rows.filter(pc.is_null(days))


def _without_ids(schema: Any) -> Any:
    """A schema without field ids: the table that adopts a file may have other ones."""
    import pyarrow as pa

    return pa.schema([_plain(field) for field in schema])


def _plain(field: Any) -> Any:
    import pyarrow as pa

    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_plain(type_.field(number)) for number in range(type_.num_fields)])
    elif pa.types.is_map(type_):
        type_ = pa.map_(_plain(type_.key_field), _plain(type_.item_field))
    elif pa.types.is_list(type_):
        type_ = pa.list_(_plain(type_.value_field))
    return pa.field(field.name, type_, field.nullable)
