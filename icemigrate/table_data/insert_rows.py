"""Inserts rows into a table: one snapshot with all of them, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from icemigrate.errors import ConflictError
from icemigrate.frozen import Frozen
from icemigrate.system.measured_activity import measured_activity
from icemigrate.table_data.bad_rows import BadRows
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.load_target import LoadTarget, load_target
from icemigrate.table_data.parquet_output import BYTES, copy_to_table
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.row_load import require_rows_fit, write_source
from icemigrate.table_data.row_sources import RowSource
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_rows


class InsertedRows(Frozen):
    """What an insert did.

    :param rows: number of inserted rows.
    :param files: number of new data files.
    :param snapshot_id: ``None`` where there were no rows to insert.
    :param bad: the rows that do not fit, and were left out.
    """

    rows: int
    files: int
    snapshot_id: int | None
    bad: BadRows


def insert_data(session: TableSession, name: str, data: Any) -> InsertedRows:
    """Insert rows of this process.

    :param data: a table, batch or reader of Arrow; a frame of pandas, Polars, PySpark or DuckDB; a dict for
        one row, or a list of dicts, with values by column; a dict with a list of values for each column.
    :raises UsageError: there is no such table, or the data has other columns or is of another kind.
    :raises Mistakes: rows do not fit; nothing is inserted.
    """
    from icemigrate.table_data.given_rows import given_source

    with open_load_database() as db:
        return insert_source(session, name, given_source(data), db, BadRows())


def insert_files(
    session: TableSession,
    name: str,
    patterns: Sequence[str],
    data_format: DataFormat | None = None,
    *,
    keep_bad_rows: Callable[[BadRows], None] | None = None,
) -> InsertedRows:
    """Insert the rows of files.

    :param patterns: paths and patterns; ``-`` is standard input.
    :param data_format: of the files; ``None`` for that of each name.
    :param keep_bad_rows: called before the commit with the rows that do not fit, if there are some; they are
        left out then.  Where it raises, nothing is inserted.  ``None`` refuses the load.
    :raises UsageError: there is no such table or file, or a file has other columns.
    :raises Mistakes: rows do not fit, and they are not kept; nothing is inserted.
    """
    from icemigrate.table_data.file_sources import file_source

    load_for_rows(session, name)
    with open_load_database() as db:
        source = file_source(patterns, db, data_format)
        return insert_source(
            session, name, source, db, BadRows(are_kept=keep_bad_rows is not None), keep_bad_rows
        )


def insert_source(
    session: TableSession,
    name: str,
    source: RowSource,
    db: LoadDatabase,
    bad: BadRows,
    keep_bad_rows: Callable[[BadRows], None] | None = None,
) -> InsertedRows:
    """Insert the rows of a source; see :func:`insert_files`."""
    written: LoadTarget | None = None

    def prepare(table: CurrentTable, earlier: RowChange | None) -> RowChange:
        nonlocal written
        target = load_target(table)
        if earlier is not None and written is not None:
            if target.is_laid_out_as(written):
                return RowChange(table, earlier.data)
            if not source.is_repeatable:
                raise ConflictError(
                    f"another client changed the columns of table `{target.name}` during the load",
                    "run the load again",
                )
        written = target
        found = BadRows(are_kept=bad.are_kept)
        with measured_activity(f"Reading rows for {target.name}", BYTES, source.size, db.share):
            files = write_source(db, target, source, found)
        bad.replace(found)
        require_rows_fit(bad, target, is_of_files=any(row.file for row in bad.first))
        if bad.count and keep_bad_rows is not None:
            keep_bad_rows(bad)
        return RowChange(table, copy_to_table(files, target, session.store.files))

    done = commit_rows(session, name, prepare)
    data = done.change.data
    return InsertedRows(sum(file.records for file in data), len(data), done.snapshot_id, bad)
