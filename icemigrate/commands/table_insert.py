"""``table insert``: rows of files, in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from icemigrate.commands.user_files import write_user_file
from icemigrate.frozen import replace
from icemigrate.project import Project
from icemigrate.results.write_results import InsertResult
from icemigrate.system.activity import activity
from icemigrate.table_data.bad_rows import BadRows
from icemigrate.table_data.input_files import DataFormat, require_no_input
from icemigrate.table_data.insert_rows import insert_files
from icemigrate.table_data.table_session import open_tables


def table_insert(
    project: Project,
    environment: str | None,
    table: str,
    data: Sequence[str],
    *,
    data_format: str | None = None,
    delimiter: str | None = None,
    bad_rows: Path | None = None,
) -> InsertResult:
    """Insert the rows of files.

    :param data: paths and patterns; ``-`` is standard input.
    :param data_format: of the files; ``None`` for that of each name.
    :param delimiter: of CSV and TSV files; ``None`` for that of the format.
    :param bad_rows: a file for the rows that do not fit; without it one of them refuses all.
    :raises UsageError: there is no such environment, table or file, a file has other columns, or the file
        for bad rows is one of the files.
    :raises Mistakes: rows do not fit, and there is no file for them; nothing is inserted.
    :raises IcemigrateError: the file for bad rows cannot be written; nothing is inserted.
    """
    began = time.monotonic()
    if bad_rows is not None:
        require_no_input(bad_rows, data)
    with open_tables(project, environment) as tables:
        found = tables.load(table)
        with activity(f"Inserting rows into {found.declared}"):
            keep = None if bad_rows is None else partial(_write_bad_rows, bad_rows)
            wanted = DataFormat(data_format, delimiter)
            done = insert_files(tables, table, data, wanted, keep_bad_rows=keep)
    result = InsertResult(
        table=str(found.declared),
        name=str(found.name),
        snapshot_id=done.snapshot_id,
        rows=done.rows,
        files=done.files,
        elapsed_ms=round((time.monotonic() - began) * 1000),
    )
    if bad_rows is None or not done.bad.count:
        return result
    return replace(result, bad_rows=done.bad.count, bad_rows_file=str(bad_rows))


def _write_bad_rows(path: Path, bad: BadRows) -> None:
    write_user_file(path, bad.content().decode())
