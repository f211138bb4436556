"""Results of the commands of `table` that move main or remove snapshots."""

from __future__ import annotations

from datetime import datetime

from icemigrate.frozen import Frozen, replace
from icemigrate.results.document_types import Count
from icemigrate.results.table_results import SnapshotInfo


class RollbackTableResult(Frozen):
    """A move of the main branch of one table.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param before: the snapshot of main before it; ``None`` where main has none.
    :param after: the snapshot of main after it.
    :param is_forward: whether the new snapshot is newer than the old one.
    :param passed: number of snapshots between both, with the newer of both.
    :param has_other_schema: whether the snapshot was written with another schema than the current one, which
        stays.
    :param done: whether main was moved.
    """

    table: str
    name: str
    before: SnapshotInfo | None
    after: SnapshotInfo
    is_forward: bool = False
    passed: Count = 0
    has_other_schema: bool = False
    done: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether main has the snapshot already."""
        return self.before is not None and self.before.snapshot_id == self.after.snapshot_id

    def finished(self) -> RollbackTableResult:
        """The result after the commit."""
        return replace(self, done=True)


class KeptSnapshots(Frozen):
    """Snapshots that are old enough to expire, and stay.

    :param reason: what needs them, such as a tag.
    :param snapshots: their number.
    """

    reason: str
    snapshots: Count


class ExpireResult(Frozen):
    """The snapshots of one table that expire.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param older_than: snapshots from before this time expire, in UTC.
    :param expired: their ids, the oldest first.
    :param refs: tags and branches whose own age limit is over, which are removed with them.
    :param kept: what stays although it is old enough.
    :param remaining: number of snapshots that stay.
    :param data_files: number of data files and delete files that only expired snapshots need.
    :param metadata_files: number of manifests, manifest lists and statistics files that only they need.
    :param size_bytes: of these data files and delete files, and manifests.
    :param done: whether the snapshots are expired and the files deleted.
    """

    table: str
    name: str
    older_than: datetime
    expired: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    kept: tuple[KeptSnapshots, ...] = ()
    remaining: Count = 0
    data_files: Count = 0
    metadata_files: Count = 0
    size_bytes: Count = 0
    done: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing expires."""
        return not self.expired and not self.refs


class CompactResult(Frozen):
    """A compaction of the data files of one table.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param statement: the statement that Spark runs.
    :param data_files: number of data files before it.
    :param delete_files: number of delete files before it.
    :param rewritten_files: number of data files that were replaced.
    :param added_files: number of data files that replace them.
    :param rewritten_bytes: the size of the replaced files.
    :param snapshot_id: the snapshot of main after it; ``None`` where it did not run.
    :param done: whether it ran.
    """

    table: str
    name: str
    statement: str
    data_files: Count = 0
    delete_files: Count = 0
    rewritten_files: Count = 0
    added_files: Count = 0
    rewritten_bytes: Count = 0
    snapshot_id: int | None = None
    done: bool = False
