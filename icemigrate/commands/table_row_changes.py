"""``table update``, ``table delete`` and ``table upsert``: changes of rows, in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from icemigrate.project import Project
from icemigrate.results.write_results import RowChangeResult
from icemigrate.system.activity import activity
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.row_changes import RowChangeOutcome, delete_data, update_data
from icemigrate.table_data.table_session import TableSession, open_tables
from icemigrate.table_data.upsert_rows import upsert_files

OnSpark = Callable[[str], None]
"""Takes the reason for which Spark starts: a sentence."""


def table_update(
    project: Project,
    environment: str | None,
    table: str,
    updates: Mapping[str, str],
    where: str,
    on_spark: OnSpark,
) -> RowChangeResult:
    """Set columns of the rows for which a condition is true.

    :param updates: an expression for each column.
    :raises UsageError: there is no such environment, table or column, or an expression is not valid.
    """
    return _changed(
        project,
        environment,
        table,
        f"Updating rows of {table}",
        lambda tables: update_data(tables, table, updates, where, on_spark),
    )


def table_delete(
    project: Project, environment: str | None, table: str, where: str, on_spark: OnSpark
) -> RowChangeResult:
    """Delete the rows for which a condition is true.

    :raises UsageError: there is no such environment or table, or the condition is not valid.
    """
    return _changed(
        project,
        environment,
        table,
        f"Deleting rows of {table}",
        lambda tables: delete_data(tables, table, where, on_spark),
    )


def table_upsert(
    project: Project,
    environment: str | None,
    table: str,
    data: Sequence[str],
    on: Sequence[str],
    on_spark: OnSpark,
    data_format: str | None = None,
    delimiter: str | None = None,
) -> RowChangeResult:
    """Update the rows that have the keys of rows of files, and insert the others.

    :param on: the columns that identify a row.
    :param data_format: of the files; ``None`` for that of each name.
    :param delimiter: of CSV and TSV files; ``None`` for that of the format.
    :raises UsageError: there is no such environment, table, file or column, or two rows have the same key.
    :raises Mistakes: rows do not fit; nothing is changed.
    """
    wanted = DataFormat(data_format, delimiter)
    return _changed(
        project,
        environment,
        table,
        f"Changing rows of {table}",
        lambda tables: upsert_files(tables, table, data, on, wanted, on_spark),
    )


def _changed(
    project: Project,
    environment: str | None,
    table: str,
    what: str,
    change: Callable[[TableSession], RowChangeOutcome],
) -> RowChangeResult:
    began = time.monotonic()
    with open_tables(project, environment) as tables:
        found = tables.load(table)
        with activity(what):
            done = change(tables)
    return RowChangeResult(
        table=str(found.declared),
        name=str(found.name),
        snapshot_id=done.snapshot_id,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        unchanged=done.unchanged,
        files_removed=done.files_removed,
        files_added=done.files_added,
        spark_reason=done.spark_reason,
        elapsed_ms=round((time.monotonic() - began) * 1000),
    )
