"""Commits the files of many tables of a batch in one transaction of a SQL catalog.

Each table gets a snapshot of its own, with the name of the batch, on the state in which that name was looked
for.  A table that no transaction takes is left to :func:`~icemigrate.pipeline.batch_commit.commit_table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.metadata_parts import layout_of
from icemigrate.iceberg.table_properties import BATCH_PROPERTY
from icemigrate.metadata_engine.table_store import CommitConflict, CommitRefused, TableCommit
from icemigrate.pipeline.batch_commit import TableBatch, counted_entries, is_committed
from icemigrate.pipeline.table_retries import TableKey
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.system.worker_threads import DISK_THREADS, run_in_threads
from icemigrate.table_data.row_commit import RowChange, prepare_commit
from icemigrate.table_data.table_session import TableSession
from icemigrate.table_data.writable_tables import load_for_rows

_SMALLEST = 2
"""Fewer tables are committed alone."""


class _PreparedTable(Frozen):
    """A table whose commit can be sent.

    :param new_files: of its snapshot, to delete when the transaction is refused.
    """

    results: Sequence[TableEntries]
    commit: TableCommit
    new_files: tuple[str, ...]


def commit_together(
    session: TableSession, batch: str, groups: Sequence[Sequence[TableEntries]]
) -> dict[TableKey, TableBatch]:
    """Commit the files of several tables in one transaction, each as ``commit_table`` does.

    If another client was faster on one table, each half is tried again.

    :param groups: the results of all tasks for each table.
    :returns: the committed tables; the others have not changed, and their files remain.
    :raises CommitStateUnknown: the catalog does not show whether the transaction was made.
    """
    if len(groups) < _SMALLEST:
        return {}
    found = run_in_threads(partial(_prepared, session, batch), groups, DISK_THREADS)
    prepared = [one for one in found if one is not None]
    if len(prepared) < _SMALLEST:
        _discard(session, prepared)
        return {}
    try:
        session.store.commit([one.commit for one in prepared])
    except CommitRefused as error:
        if error.keeps_files:
            raise
        _discard(session, prepared)
        if not isinstance(error, CommitConflict):
            return {}  # the commit of each table alone reports it
        rest, half = [one.results for one in prepared], len(prepared) // 2
        return {
            **commit_together(session, batch, rest[:half]),
            **commit_together(session, batch, rest[half:]),
        }
    done = [counted_entries(one.results) for one in prepared]
    return {(one.tenant, one.kind): one for one in done}


def _prepared(session: TableSession, batch: str, results: Sequence[TableEntries]) -> _PreparedTable | None:
    """The commit of one table; ``None`` where it has a problem, or nothing to commit."""
    files = tuple(file for result in results for file in result.files)
    layouts = {result.layout for result in results if result.files}
    if not files or any(result.problem is not None for result in results):
        return None
    try:
        table = load_for_rows(session, results[0].table)
        if is_committed(table, batch) or layouts != {layout_of(table.metadata)}:
            return None
        mark = {BATCH_PROPERTY: batch}
        change = RowChange(table, files, summary=mark, properties=mark)
        commit, new_files = prepare_commit(session, table, change)
    except IcemigrateError:
        return None  # the commit of this table alone reports it
    return _PreparedTable(results, commit, new_files)


def _discard(session: TableSession, prepared: Sequence[_PreparedTable]) -> None:
    for one in prepared:
        for location in one.new_files:
            session.store.files.delete(location)
