"""Who may commit to a table, and what makes a holder of the lock that was replaced fail: the fence.

A process can be paused between its last look at the lock and its commit.  So every commit goes this way: read
the table, look at the lock, commit on what was read.  Who takes a lock over moves every table of the
interrupted migration first (:func:`fence`).  A commit that was begun before that is refused: a SQL catalog
compares the whole metadata, and on a REST catalog every commit of ours asserts the snapshot of the fence tag
(:func:`asserting`).  A commit that begins later reads the fence, and finds a later epoch than its own.

The owner of a table is settled by the same commits: two projects that adopt one table at once both read that
it has no owner, and one of the two commits is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from icemigrate.engine import markers
from icemigrate.errors import ConflictError, LockLost
from icemigrate.frozen import Frozen
from icemigrate.model.makers import CREATED_BY_PROPERTY
from icemigrate.model.marks import FENCE_TAG
from icemigrate.model.names import TableName
from icemigrate.model.reserved import FENCE_PROPERTY, OWNER_PROPERTY, SUMMARY_PREFIX

_OF_REST = "RESTTableOperations"
_LONGEST_PAUSE = timedelta(days=7)


class Guard(Frozen):
    """What every commit of one holder of the lock has to pass.

    :param project: that holds the lock.
    :param history: the id of its history table, in which epochs count.
    :param epoch: grows with every holder of the lock.
    :param require: raises where the lock is not ours any more.
    """

    project: str
    history: str
    epoch: int
    require: Callable[[], None]

    @property
    def fence(self) -> str:
        """What this holder writes on a table that it fences."""
        return f"{self.history}/{self.epoch}"

    def admit(self, name: TableName, metadata: Mapping[str, Any]) -> None:
        """Go on only with a table that is ours, and that no later holder of the lock has fenced.

        :param metadata: the JSON of the table's metadata, read before this look at the lock.
        :raises LockLost: the lock is not ours any more.
        :raises ConflictError: the table belongs to another project.
        """
        properties = metadata.get("properties") or {}
        owner = owner_in(properties)
        if owner not in (None, self.project):
            raise ConflictError(*foreign_owner(name, str(owner), self.project))
        history, _, epoch = properties.get(FENCE_PROPERTY, "").partition("/")
        if history == self.history and epoch.isdigit() and int(epoch) > self.epoch:
            raise LockLost(
                f"another process took the lock over and fenced table `{name}`",
                "wait until it has finished, then run the command again",
            )
        self.require()


def owner_in(properties: Mapping[str, str]) -> str | None:
    """The project that owns a table; ``None`` where no project does.

    :param properties: as they are in the table's metadata.
    """
    maker = properties.get(CREATED_BY_PROPERTY)
    made_by = None if maker is None else maker.rpartition("/")[0]
    return properties.get(OWNER_PROPERTY) or made_by or None


def foreign_owner(name: TableName, owner: str, project: str) -> tuple[str, str]:
    """A message and a hint for a table that another project owns."""
    return (
        f"table `{name}` belongs to project `{owner}`, and this is project `{project}`",
        f"change it in project `{owner}`; or hand it over: "
        f"`ALTER TABLE … SET TBLPROPERTIES ('{OWNER_PROPERTY}'='{project}')`",
    )


def is_rest(operations: Any) -> bool:
    """Whether Java's ``TableOperations`` are those of a REST catalog."""
    return bool(operations.getClass().getSimpleName() == _OF_REST)


def asserting(iceberg: Any, operations: Any, built: Any) -> Any:
    """The same metadata, by updates of which a REST catalog asserts the fence tag as well.

    Only an update that sets a reference has it asserted (``UpdateRequirements``).  So a tag that is there
    gets another age and then its own, and one that is not there is made and removed again.

    :param operations: Java's ``TableOperations`` that commit it; others than REST's assert all of it anyway.
    :param built: Java's ``TableMetadata`` that is about to be committed.
    """
    if not is_rest(operations) or _is_moved(built):
        return built
    builder = iceberg.TableMetadata.buildFrom(built)
    tag = built.ref(FENCE_TAG)
    if tag is not None:
        other = iceberg.SnapshotRef.builderFrom(tag).maxRefAgeMs(markers.FOR_EVER_MS - 1).build()
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


def stage(transaction: Any, guard: Guard) -> Any:
    """Add a snapshot that the fence tag can refer to; Java's ``Snapshot``."""
    summary = {f"{SUMMARY_PREFIX}project": guard.project, f"{SUMMARY_PREFIX}fence": guard.fence}
    return markers.stage(transaction, summary)


def move_tag(
    transaction: Any, guard: Guard, snapshot_id: int | None = None, keep: timedelta | None = None
) -> None:
    """Have a transaction move the fence tag, to a snapshot of its own unless one is given.

    :param keep: how long the tag is kept, at least for a week; ``None`` for ever.
    """
    if snapshot_id is None:
        snapshot_id = int(stage(transaction, guard).snapshotId())
    manage = transaction.manageSnapshots()
    if transaction.table().refs().containsKey(FENCE_TAG):
        manage.replaceTag(FENCE_TAG, snapshot_id)
    else:
        manage.createTag(FENCE_TAG, snapshot_id)
    age = markers.max_ref_age_ms(None if keep is None else max(keep, _LONGEST_PAUSE), 0)
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
