"""Inserts rows of test data into a table: one snapshot with all of them, or nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

from icemigrate.errors import ConflictError
from icemigrate.frozen import Frozen, replace
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.parquet_metrics import describe_data_file
from icemigrate.metadata_engine.table_store import FileStore
from icemigrate.system.file_writes import replacing_stream
from icemigrate.table_data.bad_rows import BadRows
from icemigrate.table_data.file_sources import file_source
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.insert_rows import insert_source
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.parquet_output import delete_files
from icemigrate.table_data.partition_columns import order_sql
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_rows
from icemigrate.test_data.parquet_file import GeneratorName, Report, RowRange, bloom_columns, write_rows

_ROWS_OF_FILE = 1_048_576
"""Eight row groups; a file is in memory while it is copied to the table's folder."""


class GeneratedInsert(Frozen):
    """What an insert of generated rows did.

    :param files: number of new data files.
    :param size: of all files, in bytes.
    """

    files: int
    size: int
    snapshot_id: int
    generator: GeneratorName


def insert_generated(session: TableSession, name: str, rows: RowRange, report: Report) -> GeneratedInsert:
    """Generate rows for the current columns of a table, and insert them.

    Files for a table without partitions and sort order are added as they are generated.  For other tables,
    DuckDB distributes and sorts the rows, as for every insert.

    :param name: of a table without columns that :mod:`~icemigrate.test_data.schema_checks` finds.
    :raises UsageError: there is no such table.
    :raises ConflictError: other writers changed the table each time.
    :raises OSError: a temporary file cannot be written.
    """
    with open_load_database() as db:
        work = _GeneratedFiles(load_target(load_for_rows(session, name)), rows, db, report)
        if work.target.spec.live or order_sql(work.target.order, work.target) is not None:
            paths = [str(path) for path in work.write()]
            source = file_source(paths, db, DataFormat("parquet"))
            inserted = insert_source(session, name, source, db, BadRows())
            assert inserted.snapshot_id is not None, "there is at least one row"
            size = sum(Path(path).stat().st_size for path in paths)
            return GeneratedInsert(inserted.files, size, inserted.snapshot_id, work.generator)

        def prepare(table: CurrentTable, earlier: RowChange | None) -> RowChange:
            if not load_target(table).is_laid_out_as(work.target):
                raise ConflictError(
                    f"another client changed the columns of table `{table.declared}` during the generation",
                    "run the command again",
                )
            data = work.add_to_table(session.store.files) if earlier is None else earlier.data
            return RowChange(table, data)

        done = commit_rows(session, name, prepare)
        assert done.snapshot_id is not None, "there is at least one row"
        data = done.change.data
        return GeneratedInsert(len(data), sum(file.size for file in data), done.snapshot_id, work.generator)


class _GeneratedFiles:
    """The files of one generation.

    :ivar generator: which one wrote the last file.
    """

    def __init__(self, target: LoadTarget, rows: RowRange, db: LoadDatabase, report: Report) -> None:
        self.target = target
        self.generator: GeneratorName = "arrow"
        self._rows, self._folder, self._report = rows, db.folder, report
        self._blooms = bloom_columns(target.properties)

    def write(self) -> Iterator[Path]:
        """Write temporary files, one after the other."""
        for done in range(0, self._rows.count, _ROWS_OF_FILE):
            count = min(_ROWS_OF_FILE, self._rows.count - done)
            part = replace(self._rows, first=self._rows.first + done, count=count)
            path = self._folder / f"generated-{done // _ROWS_OF_FILE:05d}.parquet"
            with replacing_stream(path) as stream:
                self.generator = write_rows(
                    self.target.schema, part, stream, self._report_after(done), self._blooms
                )
            yield path

    def _report_after(self, done: int) -> Report:
        return lambda rows: self._report(done + rows)

    def add_to_table(self, files: FileStore) -> tuple[DataFile, ...]:
        """Generate the files in the table's folder; where one fails, none remains."""
        added = list[DataFile]()
        try:
            for number, path in enumerate(self.write()):
                location = f"{self.target.data_folder}/{number:05d}-0-{uuid.uuid4()}-00001.parquet"
                added.append(describe_data_file(location, path, self.target.columns, self.target.metadata))
                files.write_file(location, path)
                path.unlink()
        except BaseException:
            delete_files(added, files)
            raise
        return tuple(added)
