"""Commits the files of a batch: one snapshot for each table, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icemigrate.errors import ConflictError
from icemigrate.frozen import Frozen
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.pipeline.entry_files import TableEntries, layout_of
from icemigrate.table_data.parquet_output import delete_files
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.table_session import CurrentTable, TableSession

BATCH_KEY = "icemigrate.batch"
"""The key of a snapshot's summary: the batch whose entries it has."""


class TableBatch(Frozen):
    """The entries of a batch that belong to one table.

    :param rows: of entries that are committed.
    :param problem: why the entries are not committed, as a clause.
    """

    table: str
    tenant: str | None
    kind: str | None
    entries: int
    rows: int
    problem: str | None = None


def is_committed(table: CurrentTable, batch: str) -> bool:
    """Whether a snapshot of the table has the entries of a batch."""
    return any((s.get("summary") or {}).get(BATCH_KEY) == batch for s in table.metadata["snapshots"])


def by_table(results: Iterable[TableEntries]) -> list[list[TableEntries]]:
    """The results of all tasks, those of one table together."""
    found = dict[tuple[str, str | None, str | None], list[TableEntries]]()
    for result in results:
        found.setdefault((result.table, result.tenant, result.kind), []).append(result)
    return list(found.values())


def commit_table(session: TableSession, batch: str, results: Sequence[TableEntries]) -> TableBatch:
    """Commit the files of one table, unless an earlier attempt of the batch did.

    :param results: of all tasks for this table.
    :raises IcemigrateError: the catalog or the storage failed.
    """
    first = results[0]
    entries = sum(result.entries for result in results)
    files = tuple(file for result in results for file in result.files)
    problem = next((result.problem for result in results if result.problem is not None), None)
    rows = sum(result.rows for result in results)
    if problem is not None:
        delete_files(files, session.store.files)
        found = session.find(session.parse(first.table)) if first.table else None
        if found is None or not is_committed(found, batch):
            return TableBatch(first.table, first.tenant, first.kind, entries, 0, problem)
    elif files:
        _commit(session, first.table, batch, files, {result.layout for result in results if result.files})
    return TableBatch(first.table, first.tenant, first.kind, entries, rows)


def _commit(
    session: TableSession, name: str, batch: str, files: tuple[DataFile, ...], layouts: set[str | None]
) -> None:
    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        if is_committed(table, batch):
            delete_files(files, session.store.files)
            return RowChange(table, ())
        if layouts != {layout_of(table.metadata)}:
            raise ConflictError(
                f"another client changed the columns of table `{name}` during the batch",
                "run the command again: it repeats the batch",
            )
        return RowChange(table, files, summary={BATCH_KEY: batch})

    commit_rows(session, name, prepare)
