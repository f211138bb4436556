"""The commit of one change of rows: a snapshot on the main branch, on the table as it is then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

from icemigrate.errors import ConflictError, Stopped
from icemigrate.execution.signals import StopRequest, watch_stop_signals
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id, default_spec_id
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from icemigrate.metadata_engine.table_store import (
    CommitConflict,
    CommitRefused,
    FileStore,
    StoredTable,
    TableCommit,
)
from icemigrate.metadata_engine.table_updates import requirements
from icemigrate.table_data.parquet_output import delete_files
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import load_for_rows

_TRIES = 20
_LONGEST_PAUSE_S = 0.2


class RowChange(Frozen):
    """A change of rows whose data files are written.

    :param base: the table that they were written for.
    :param data: new files.
    :param removed: locations of files that the table no longer has.
    :param summary: further keys of the snapshot's summary.
    :param properties: of the table, set in the same commit.
    :param keeps_files: whether the new files stay where the change fails, because they are those of a user.
    """

    base: CurrentTable
    data: tuple[DataFile, ...]
    removed: frozenset[str] = frozenset()
    summary: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    keeps_files: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.data and not self.removed

    def discard(self, files: FileStore) -> None:
        """Delete the new files, to which no snapshot refers."""
        if not self.keeps_files:
            delete_files(self.data, files)


PrepareChange = Callable[[CurrentTable, "RowChange | None"], RowChange]
"""Makes the change for the current table; an earlier one, which met a conflict, may serve again."""


class CommittedRows(Frozen):
    """A committed change.

    :param snapshot_id: ``None`` where there was nothing to change.
    """

    change: RowChange
    snapshot_id: int | None


def accept_all(_table: CurrentTable) -> None:
    """Accept every table."""


def commit_rows(
    session: TableSession,
    name: str,
    prepare: PrepareChange,
    inspect: Callable[[CurrentTable], None] = accept_all,
) -> CommittedRows:
    """Prepare a change and commit it, again where another writer commits first.

    The new files are deleted where the change fails, unless the catalog may refer to them.

    :param name: of the table, as migration files write it.
    :param inspect: called with the table as the commit makes it, before the catalog gets the commit; where it
        raises, nothing changes.
    :raises UsageError: there is no such table, or only icemigrate writes it.
    :raises ConflictError: other writers were faster each time.
    :raises Stopped: the user asked to stop while another writer was faster.
    :raises CommitStateUnknown: the catalog does not show whether the commit was made.
    """
    change: RowChange | None = None
    for _ in range(_TRIES):
        earlier = change
        try:
            table = load_for_rows(session, name)
            change = prepare(table, earlier)
        except BaseException:
            if earlier is not None:
                earlier.discard(session.store.files)
            raise
        with watch_stop_signals() as stop:  # a commit that has begun is completed
            if earlier is not None and earlier.data is not change.data:
                earlier.discard(session.store.files)
            if change.is_empty:
                return CommittedRows(change, None)
            try:
                return CommittedRows(change, _commit(session, table, change, stop, inspect))
            except CommitConflict as error:
                if error.keeps_files:
                    raise
                _pause(session, change, stop)
    assert change is not None, "there is at least one attempt"
    change.discard(session.store.files)
    raise ConflictError(
        f"other writers changed table `{name}` during each of {_TRIES} attempts", "run the command again"
    )


def _pause(session: TableSession, change: RowChange, stop: StopRequest) -> None:
    """Wait before the next attempt.

    :raises Stopped: the user asked to stop; the files of the change are deleted.
    """
    try:
        stop.wait(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 (nothing secret)
    except Stopped:
        change.discard(session.store.files)
        raise


def _commit(
    session: TableSession,
    table: CurrentTable,
    change: RowChange,
    stop: StopRequest,
    inspect: Callable[[CurrentTable], None],
) -> int:
    """One attempt; returns the snapshot's id.

    :raises CommitConflict: another writer was faster; the data files remain, for the next attempt.
    :raises Stopped: the user asked to stop before the catalog was asked to commit.
    """
    files = session.store.files
    written: tuple[str, ...] = ()
    may_refer = False
    try:
        commit, written = prepare_commit(session, table, change)
        number = int(commit.updates[0]["snapshot"]["snapshot-id"])
        if inspect is not accept_all:
            inspect(_after(table, commit))
        stop.check()
        # From here until an answer, the catalog may refer to the files.
        may_refer = True
        session.store.commit([commit])
        return number
    except BaseException as error:
        if isinstance(error, CommitRefused):
            may_refer = error.keeps_files
        if not may_refer:
            for location in written:
                files.delete(location)
            if not isinstance(error, CommitConflict):
                change.discard(files)
        raise


def prepare_commit(
    session: TableSession, table: CurrentTable, change: RowChange
) -> tuple[TableCommit, tuple[str, ...]]:
    """Write the files of a change's snapshot.

    :returns: the commit, whose first update adds the snapshot, and the locations of these files, to delete
        when the commit is refused.
    """
    metadata = table.metadata
    main = metadata["refs"].get(MAIN_BRANCH)
    snapshot = append_snapshot(
        metadata,
        session.store.files,
        change.summary,
        data=change.data,
        parent_id=None if main is None else main["snapshot-id"],
        now_ms=time.time_ns() // 1_000_000,
        removed=change.removed,
    )
    return _table_commit(table, metadata, snapshot.json, change.properties), snapshot.files


def _after(table: CurrentTable, commit: TableCommit) -> CurrentTable:
    """The table as a commit makes it."""
    location, now_ms = table.stored.location, time.time_ns() // 1_000_000
    json = apply_updates(table.stored.json, commit.updates, previous_location=location, now_ms=now_ms)
    return replace(table, stored=StoredTable(location, json))


def _table_commit(
    table: CurrentTable, metadata: Json, snapshot: Json, properties: Mapping[str, str]
) -> TableCommit:
    main = metadata["refs"].get(MAIN_BRANCH)
    updates: list[Json] = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {
            "action": "set-snapshot-ref",
            "ref-name": MAIN_BRANCH,
            **(main or {"type": "branch"}),
            "snapshot-id": snapshot["snapshot-id"],
        },
    ]
    if properties:
        updates.append({"action": "set-properties", "updates": dict(properties)})
    wanted: list[Json] = [
        *requirements(metadata, updates),
        # Files have the columns and the partitions of these.
        {"type": "assert-current-schema-id", "current-schema-id": current_schema_id(metadata)},
        {"type": "assert-default-spec-id", "default-spec-id": default_spec_id(metadata)},
    ]
    return TableCommit(table.name, table.stored, tuple(updates), tuple(wanted))
