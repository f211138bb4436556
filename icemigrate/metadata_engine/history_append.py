"""The commit that moves the head of the history: one snapshot on main, with or without rows, and properties.

It does what :func:`icemigrate.spark.append_snapshot.build_append_commit` does with Iceberg's Java library.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.metadata_engine.apply_updates import complete_metadata
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.expired_files import files_of_expired
from icemigrate.metadata_engine.manifest_lists import WrittenLists
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from icemigrate.metadata_engine.table_store import (
    CommitConflict,
    CommitRefused,
    FileStore,
    StoredTable,
    TableCommit,
    TableStore,
)
from icemigrate.metadata_engine.table_updates import property_updates, requirements
from icemigrate.spark.append_snapshot import MOST_SNAPSHOTS, head_moved


class HistoryAppend(Frozen):
    """A commit with a new head.

    :param files: that were written for it.
    :param expired: ids of the snapshots that it removes.
    """

    commit: TableCommit
    head: int
    files: tuple[str, ...]
    expired: tuple[int, ...] = ()

    def discard(self, store: FileStore) -> None:
        """Delete the files of a commit that was refused."""
        for location in self.files:
            store.delete(location)

    def delete_expired(self, store: FileStore) -> None:
        """Delete the files of the snapshots that the successful commit removed."""
        base = self.commit.base
        if not self.expired or base is None:
            return
        for location in files_of_expired(complete_metadata(base.json), self.expired, store):
            store.delete(location)


def append_commit(
    name: TableName,
    stored: StoredTable,
    files: FileStore,
    rows: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    remove: Sequence[str],
    *,
    expected_head: int | None,
    summary: Mapping[str, str],
    written: WrittenLists | None = None,
) -> HistoryAppend:
    """Write the files of a new head, and build its commit.

    :param stored: the history's table, freshly read; unpartitioned.
    :param written: as in :func:`~icemigrate.metadata_engine.snapshot_files.append_snapshot`.
    :raises HeadMoved: its head is not ``expected_head``; nothing was written.
    """
    json = complete_metadata(stored.json)
    main = json["refs"].get(MAIN_BRANCH)
    head = None if main is None else main["snapshot-id"]
    if head != expected_head:
        raise head_moved(name)
    data = (_data_file(json, files, rows),) if rows else ()
    now_ms = time.time_ns() // 1_000_000
    snapshot = append_snapshot(
        json, files, summary, data=data, parent_id=head, now_ms=now_ms, written=written, merges=bool(data)
    )
    number: int = snapshot.json["snapshot-id"]
    before = json["properties"]
    after = {key: value for key, value in {**before, **properties}.items() if key not in remove}
    moved = {**(main or {"type": "branch"}), "snapshot-id": number}
    updates: list[Json] = [
        {"action": "add-snapshot", "snapshot": snapshot.json},
        {"action": "set-snapshot-ref", "ref-name": MAIN_BRANCH, **moved},
        *property_updates(before, after),
    ]
    if expired := _expired(json):
        updates.append({"action": "remove-snapshots", "snapshot-ids": list(expired)})
    wanted = requirements(json, updates, (MAIN_BRANCH,))
    commit = TableCommit(name, stored, tuple(updates), tuple(wanted))
    return HistoryAppend(commit, number, (*(file.path for file in data), *snapshot.files), expired)


def _data_file(json: Json, files: FileStore, rows: Sequence[Mapping[str, Any]]) -> DataFile:
    # Most commits have no rows, and this imports PyArrow.
    from icemigrate.metadata_engine.history_rows import write_rows

    return write_rows(json, files, rows)


def _expired(json: Json) -> tuple[int, ...]:
    """The older half of too many snapshots; their rows stay, because later snapshots have them too."""
    snapshots = json["snapshots"]
    if len(snapshots) < MOST_SNAPSHOTS:
        return ()
    referenced = {ref["snapshot-id"] for ref in json["refs"].values()}
    old = (s["snapshot-id"] for s in snapshots[: len(snapshots) - MOST_SNAPSHOTS // 2])
    return tuple(i for i in old if i not in referenced)


def land_append(append: HistoryAppend, store: TableStore) -> None:
    """Commit a new head, and delete the files of the snapshots that it removes.

    :raises HeadMoved: another process was faster; nothing was written.
    """
    try:
        store.commit([append.commit])
    except CommitRefused as error:
        if not error.keeps_files:
            append.discard(store.files)
        if isinstance(error, CommitConflict):
            raise head_moved(append.commit.name) from error
        raise
    append.delete_expired(store.files)
