"""The fence: a check in every commit that refuses a process whose lock another process took over.

A process can be paused between its last check of the lock and its commit.  So every commit does three steps:
read the table, check the lock, commit on the metadata that was read. A process that takes a lock over moves
every table of the interrupted migration first (:func:`fence`).  A commit that began earlier is refused: a SQL
catalog compares the complete metadata, and on a REST catalog every commit of ours asserts the snapshot of the
fence tag (:func:`assert_fence_tag`).  A commit that begins later reads the fence, and finds a later epoch
than its own.

The same commits decide the owner of a table: two projects that adopt one table at the same time both read
that it has no owner, and one of the two commits is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from icemigrate.errors import ConflictError, LockLost
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import FENCE_TAG
from icemigrate.iceberg.table import CREATED_BY_PROPERTY
from icemigrate.iceberg.table_properties import (
    FENCE_PROPERTY,
    OWNER_PROPERTY,
    SUMMARY_PREFIX,
    whole_number,
)
from icemigrate.spark import append_snapshot

_OF_REST = "RESTTableOperations"
LONGEST_PAUSE = timedelta(days=7)


class Fence(Frozen):
    """The conditions of every commit of one holder of the lock.

    :param project: the project that holds the lock.
    :param history: id of its history table, in which epochs count.
    :param epoch: increases with every holder of the lock.
    :param require: raises where this process does not hold the lock any more.
    :param run: id of its run, for names that only this run uses.
    """

    project: str
    history: str
    epoch: int
    require: Callable[[], None]
    run: str = ""

    @property
    def fence(self) -> str:
        """The fence that this holder writes on a table."""
        return f"{self.history}/{self.epoch}"

    def require_access(self, name: TableName, metadata: Mapping[str, Any]) -> None:
        """Require that the table is ours, and that no later holder of the lock has fenced it.

        :param metadata: the JSON of the table's metadata, read before the lock is checked.
        :raises LockLost: this process does not hold the lock any more.
        :raises ConflictError: the table belongs to another project.
        """
        properties = metadata.get("properties") or {}
        owner = owner_from_properties(properties)
        if owner not in (None, self.project):
            raise ConflictError(*foreign_owner(name, str(owner), self.project))
        history, _, epoch = properties.get(FENCE_PROPERTY, "").partition("/")
        if history == self.history and (whole_number(epoch) or 0) > self.epoch:
            raise LockLost(
                f"another process took the lock over and fenced table `{name}`",
                "wait until it has finished, then run the command again",
            )
        self.require()


def owner_from_properties(properties: Mapping[str, str]) -> str | None:
    """The project that owns a table; ``None`` without one.

    :param properties: of the table's metadata.
    """
    creator = properties.get(CREATED_BY_PROPERTY)
    made_by = None if creator is None else creator.rpartition("/")[0]
    return properties.get(OWNER_PROPERTY) or made_by or None


def foreign_owner(name: TableName, owner: str, project: str) -> tuple[str, str]:
    """A message and a hint for a table that another project owns."""
    return (
        f"table `{name}` belongs to project `{owner}`, and this is project `{project}`",
        f"change it in project `{owner}`; or transfer it: "
        f"`ALTER TABLE … SET TBLPROPERTIES ('{OWNER_PROPERTY}'='{project}')`",
    )


def is_rest(operations: Any) -> bool:
    """Whether Java's ``TableOperations`` are those of a REST catalog."""
    return bool(operations.getClass().getSimpleName() == _OF_REST)


def assert_fence_tag(iceberg: Any, operations: Any, built: Any) -> Any:
    """The same metadata, with updates for which a REST catalog asserts the fence tag as well.

    Only an update that sets a reference asserts it (``UpdateRequirements``).  So an existing tag gets another
    age and then its own, and a missing one is created and removed again.

    :param operations: Java's ``TableOperations`` for the commit; those of other catalogs assert all metadata.
    :param built: Java's ``TableMetadata`` to commit.
    """
    if not is_rest(operations) or _is_moved(built):
        return built
    builder = iceberg.TableMetadata.buildFrom(built)
    tag = built.ref(FENCE_TAG)
    if tag is not None:
        other = iceberg.SnapshotRef.builderFrom(tag).maxRefAgeMs(append_snapshot.FOR_EVER_MS - 1).build()
        return builder.setRef(FENCE_TAG, other).setRef(FENCE_TAG, tag).build()
    snapshots = built.snapshots()
    if snapshots.isEmpty():
        return built
    any_one = snapshots[-1].snapshotId()
    made = iceberg.SnapshotRef.tagBuilder(any_one).build()
    return builder.setRef(FENCE_TAG, made).removeRef(FENCE_TAG).build()


def _is_moved(built: Any) -> bool:
    """Whether the commit sets the fence tag already."""
    for change in built.changes():
        if change.getClass().getSimpleName() == "SetSnapshotRef" and change.name() == FENCE_TAG:
            return True
    return False


def stage_fence_snapshot(transaction: Any, guard: Fence) -> Any:
    """Add a snapshot that the fence tag can refer to; Java's ``Snapshot``."""
    summary = {f"{SUMMARY_PREFIX}project": guard.project, f"{SUMMARY_PREFIX}fence": guard.fence}
    return append_snapshot.stage_marker_snapshot(transaction, summary)


def move_tag(
    transaction: Any, guard: Fence, snapshot_id: int | None = None, keep: timedelta | None = None
) -> None:
    """Let a transaction move the fence tag, to a new snapshot unless one is given.

    :param keep: how long the tag is kept, at least for a week; ``None`` for ever.
    """
    if snapshot_id is None:
        snapshot_id = int(stage_fence_snapshot(transaction, guard).snapshotId())
    manage = transaction.manageSnapshots()
    if transaction.table().refs().containsKey(FENCE_TAG):
        manage.replaceTag(FENCE_TAG, snapshot_id)
    else:
        manage.createTag(FENCE_TAG, snapshot_id)
    age = append_snapshot.max_ref_age_ms(None if keep is None else max(keep, LONGEST_PAUSE), 0)
    manage.setMaxRefAgeMs(FENCE_TAG, age)
    manage.commit()


def set_property(transaction: Any, key: str, value: str | None) -> None:
    """Have a transaction set a property, or remove it."""
    update = transaction.updateProperties()
    update = update.remove(key) if value is None else update.set(key, value)
    update.commit()


def drop_branches(transaction: Any, names: Collection[str]) -> None:
    """Have a transaction drop branches."""
    if names:
        manage = transaction.manageSnapshots()
        for name in names:
            manage.removeBranch(name)
        manage.commit()
