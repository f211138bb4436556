"""Results of the commands of `table`."""

from __future__ import annotations

from datetime import datetime

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count


class SnapshotInfo(Frozen):
    """A snapshot of a table.

    :param snapshot_id: its id.
    :param parent_id: the snapshot that it was made from; ``None`` for the first one.
    :param at: when it was committed, in UTC.
    :param operation: ``append``, ``replace``, ``overwrite`` or ``delete``; ``None`` where it is missing.
    :param is_current: whether the main branch is at this snapshot.
    :param branches: the branches at this snapshot.
    :param tags: the tags of this snapshot.
    :param added_rows: by its summary; ``None`` where its writer omitted it.
    :param deleted_rows: by its summary; ``None`` where its writer omitted it.
    :param rows: rows of the table, by its summary; ``None`` where its writer omitted it.
    """

    snapshot_id: int
    parent_id: int | None
    at: datetime
    operation: str | None = None
    is_current: bool = False
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    added_rows: Count | None = None
    deleted_rows: Count | None = None
    rows: Count | None = None


class SnapshotsResult(Frozen):
    """The snapshots of a table.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshots: the newest ones that `--limit` allows, the oldest first.
    :param total: number of all snapshots.
    :param is_graph: whether text draws the lines from snapshots to their parents.
    """

    table: str
    name: str
    snapshots: tuple[SnapshotInfo, ...]
    total: Count = 0
    is_graph: bool = False
