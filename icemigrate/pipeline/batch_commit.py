"""Commits the files of a batch: one snapshot for each table, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icemigrate.errors import CatalogError, ConflictError, EngineError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata_parts import layout_of
from icemigrate.iceberg.table_properties import BATCH_PROPERTY
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.table_store import CommitRefused
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.table_data.parquet_output import delete_files
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.table_session import CurrentTable, TableSession


class TableBatch(Frozen):
    """The entries of a batch that belong to one table.

    :param rows: of entries that are committed.
    :param problem: why the entries are not committed, as a clause.
    :param quarantined: further entries of the tenant, which the quarantine has.
    :param size: of the data files, in bytes.
    :param future: entries whose time is in the future.
    """

    table: str
    tenant: str | None
    kind: str | None
    entries: int
    rows: int
    problem: str | None = None
    quarantined: int = 0
    size: int = 0
    future: int = 0


def is_committed(table: CurrentTable, batch: str) -> bool:
    """Whether the table has the entries of a batch.

    The table says so itself, because the snapshot of the batch may have expired.
    """
    summaries = ((snapshot.get("summary") or {}) for snapshot in table.metadata["snapshots"])
    return batch == (table.metadata.get("properties") or {}).get(BATCH_PROPERTY) or any(
        summary.get(BATCH_PROPERTY) == batch for summary in summaries
    )


def by_table(results: Iterable[TableEntries]) -> list[list[TableEntries]]:
    """The results of all tasks, those of one table together.

    :raises AssertionError: a table has the entries of two tenants or kinds, which the check of the patterns
        and of the tenants' ids prevents.
    """
    found = dict[str, list[TableEntries]]()
    for result in results:
        found.setdefault(result.table or f"{result.tenant} {result.kind}", []).append(result)
    for group in found.values():
        assert len({(result.tenant, result.kind) for result in group}) == 1, "a table has one tenant and kind"
    return list(found.values())


def counted_entries(results: Sequence[TableEntries]) -> TableBatch:
    """The entries of one table, which has no problem.

    :param results: of all tasks for this table.
    """
    first = results[0]
    return TableBatch(
        first.table,
        first.tenant,
        first.kind,
        sum(result.entries for result in results),
        sum(result.rows for result in results),
        quarantined=sum(result.quarantined for result in results),
        size=sum(file.size for result in results for file in result.files),
        future=sum(result.future for result in results),
    )


def require_running(session: TableSession, results: Sequence[TableEntries]) -> None:
    """Stop the batch where the catalog or the storage failed, and not only tables of it.

    :raises EngineError: it did.
    """
    stopped = next((result for result in results if result.stops), None)
    if stopped is None:
        return
    place = f"table `{stopped.table}`" if stopped.table else f"{stopped.kind} of tenant `{stopped.tenant}`"
    failure = EngineError(f"{place}: {stopped.problem}", "run the command again")
    if not stopped.table or any(result.stops and result.tenant is None for result in results):
        raise failure
    try:
        session.find(session.parse(stopped.table))
    except (CatalogError, EngineError):
        raise failure from None


def commit_table(
    session: TableSession, batch: str, results: Sequence[TableEntries], *, is_paused: bool = False
) -> TableBatch:
    """Commit the files of one table, unless an earlier attempt of the batch did.

    A table has a problem if another client drops or changes it after the files were written, or if the
    catalog refuses the commit.

    :param results: of all tasks for this table.
    :param is_paused: whether the table was not tried: then no earlier attempt of the batch committed.
    :raises IcemigrateError: the catalog or the storage failed.
    """
    first, done = results[0], counted_entries(results)
    files = tuple(file for result in results for file in result.files)
    problem = next((result.problem for result in results if result.problem is not None), None)
    if problem is not None and is_paused:
        return replace(done, rows=0, size=0, problem=problem)
    if problem is not None:
        delete_files(files, session.store.files)
        found = _own_table(session, first.table)
        if found is None or not is_committed(found, batch):
            return replace(done, rows=0, size=0, problem=problem)
    elif files:
        layouts = {result.layout for result in results if result.files}
        try:
            _commit(session, first.table, batch, files, layouts)
        except (UsageError, ConflictError, CommitRefused) as error:
            # A refused commit whose earlier attempt has no answer may still be made.
            if first.tenant is None or (isinstance(error, CommitRefused) and error.keeps_files):
                raise
            return replace(done, rows=0, size=0, problem=error.message)
    return done


def _own_table(session: TableSession, text: str) -> CurrentTable | None:
    """The table of a tenant; ``None`` where there is none, or the catalog has another one under its name."""
    name = session.parse(text) if text else None
    return None if name is None or session.environment.names.is_shared(name) else session.find(name)


def _commit(
    session: TableSession, name: str, batch: str, files: tuple[DataFile, ...], layouts: set[str | None]
) -> None:
    mark = {BATCH_PROPERTY: batch}

    def prepare(table: CurrentTable, _earlier: RowChange | None) -> RowChange:
        if is_committed(table, batch):
            delete_files(files, session.store.files)
            return RowChange(table, ())
        if layouts != {layout_of(table.metadata)}:
            delete_files(files, session.store.files)
            raise ConflictError(
                f"another client changed the columns of table `{name}` during the batch",
                "run the command again: it repeats the batch",
            )
        return RowChange(table, files, summary=mark, properties=mark)

    try:
        commit_rows(session, name, prepare)
    except UsageError:  # the table was dropped
        delete_files(files, session.store.files)
        raise
