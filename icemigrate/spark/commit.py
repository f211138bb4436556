"""One commit that applies the changes of a table's copy to the table, with the migration's marker.

Iceberg's own transaction would load the table again at its end, and apply its updates to the new state. Here
the commit asserts the metadata from which the difference was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import loads
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.metadata_check import read_schema
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import FENCE_TAG, is_branch_of
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.iceberg.table_properties import (
    COMMIT_PROPERTY,
    FENCE_PROPERTY,
    OWNER_PROPERTY,
    SUMMARY_PREFIX,
)
from icemigrate.spark import append_snapshot, commit_fence, metadata_commit
from icemigrate.spark.engine_port import Marker, SchemaRemoval
from icemigrate.spark.java_errors import is_commit_conflict, is_state_unknown
from icemigrate.spark.partition_restore import PartitionRestore, returning_columns

if TYPE_CHECKING:
    from icemigrate.spark.spark_engine import SparkEngine


TAG_SUMMARY_KEY = f"{SUMMARY_PREFIX}tag"
"""Names the tag for which an empty snapshot was made."""


class CommitBase(Frozen):
    """A table at the start of a commit.

    :param transaction: Java's ``Transaction``, begun on ``metadata``.
    :param metadata: Java's ``TableMetadata``.
    :param json: the same as the JSON of a metadata file.
    :param table: the same as a plan's table.
    """

    operations: Any
    transaction: Any
    metadata: Any
    json: dict[str, Any]
    table: Table


def open_commit_base(engine: SparkEngine, name: TableName) -> CommitBase:
    """The current table, if the holder of the lock may change it.

    :raises EngineError: the table does not exist.
    :raises LockLost: this process does not hold the lock any more.
    :raises ConflictError: it belongs to another project.
    """
    java = engine.java.table(name)
    # Loads the table once more: this transaction begins on the metadata below.
    transaction = java.newTransaction()
    operations = java.operations()
    metadata = operations.current()
    json = engine.java.read(metadata)
    if engine.guard is not None:
        engine.guard.require_access(name, json)
    return CommitBase(operations, transaction, metadata, json, table_from_json(json, name))


def commit_changes(
    engine: SparkEngine,
    base: CommitBase,
    after: Table,
    marker: Marker | None,
    holds_rows: bool = False,
    run: str = "",
) -> Schema | None:
    """Commit the difference between a base and the target table, and the marker.

    :param holds_rows: as in :meth:`~icemigrate.spark.engine_port.Engine.commit`.
    :param marker: ``None`` where the table gets none.
    :param run: id that the commit records where no marker of the migration does; empty elsewhere.
    :returns: the schema that the commit produced; ``None`` without a difference.
    :raises py4j.protocol.Py4JJavaError: Java's error; if another writer was faster, nothing was written
        (:func:`~icemigrate.spark.java_errors.is_commit_conflict`).
    """
    after, on_empty = _without_new_snapshots(base.table, after)
    built = metadata_commit.build_metadata(engine.java.iceberg, base.metadata, base.table, after)
    inside = base.transaction.table().operations()
    changed = not built.changes().isEmpty()
    if changed:
        if holds_rows:
            built = metadata_commit.assert_main_unmoved(engine.java.iceberg, base.operations, built)
        inside.commit(inside.current(), built)
        if run:
            commit_fence.set_property(base.transaction, COMMIT_PROPERTY, f"{run}/{uuid4().hex[:8]}")
    restoring = PartitionRestore(
        engine.java,
        base.transaction,
        lambda: engine.java.table(base.table.name).newTransaction(),
        base.json,
        returning_columns(base.table, after),
    )
    restoring.run()
    for name, ref in on_empty.items():
        _create_on_empty_snapshot(base.transaction, name, ref)
    if marker is not None and marker.is_empty:
        marker = None
    snapshot = None if marker is None else append_snapshot.add_marker_snapshot(base.transaction, marker)
    if not changed and not on_empty and marker is None:
        return None
    if engine.guard is not None:
        _claim_and_fence(engine.guard, base, snapshot, marker)
    built = _commit(engine, base, snapshot, restoring)
    # Not the catalog's current schema: other clients may have committed since.
    return base.table.schema if built.schema().sameSchema(base.metadata.schema()) else _schema(engine, built)


def _schema(engine: SparkEngine, metadata: Any) -> Schema:
    """The current schema of Java's ``TableMetadata``."""
    json: str = engine.java.iceberg.SchemaParser.toJson(metadata.schema())
    return read_schema("schema", loads(json))


def _claim_and_fence(
    by: commit_fence.Fence, base: CommitBase, snapshot: Any | None, marker: Marker | None
) -> None:
    """Have the transaction claim the table, and give the commit something that it can assert on REST.

    :param snapshot: Java's ``Snapshot`` that the commit adds; ``None`` where it adds none.
    """
    claims = marker is not None and base.table.owner is None
    if claims:
        commit_fence.set_property(base.transaction, OWNER_PROPERTY, by.project)
    if not commit_fence.is_rest(base.operations):
        return
    new = None if snapshot is None else int(snapshot.snapshotId())
    if claims or (new is not None and base.transaction.table().refs().containsKey(FENCE_TAG)):
        commit_fence.move_tag(base.transaction, by, new, None if marker is None else marker.keep)
    elif base.transaction.table().currentSnapshot() is None and new is None:
        commit_fence.stage_fence_snapshot(base.transaction, by)


def set_owner(engine: SparkEngine, name: TableName, owner: str | None) -> None:
    """Claim or release a table, in a separate commit."""
    base = open_commit_base(engine, name)
    if engine.guard is None or base.table.owner == owner:
        return
    commit_fence.set_property(base.transaction, OWNER_PROPERTY, owner)
    if commit_fence.is_rest(base.operations):
        commit_fence.move_tag(base.transaction, engine.guard)
    _commit(engine, base, None)


def fence_table(engine: SparkEngine, name: TableName, version: str) -> bool:
    """Move a table, so that every commit to it that began earlier is refused.

    Branches with rows of earlier runs of the migration are dropped: none of them can be published.

    :param version: of the interrupted migration.
    :returns: ``False`` where there is no such table, or another project owns it.
    """
    by, table = engine.guard, engine.java.find(name)
    assert by is not None, "only a holder of the lock fences"
    if table is None or commit_fence.owner_from_properties(dict(table.properties())) not in (
        None,
        by.project,
    ):
        return False
    base = open_commit_base(engine, name)
    commit_fence.set_property(base.transaction, FENCE_PROPERTY, by.fence)
    left = [
        n for n, r in base.table.refs.items() if r.kind == "branch" and is_branch_of(n, by.project, version)
    ]
    commit_fence.drop_branches(base.transaction, left)
    if commit_fence.is_rest(base.operations):
        commit_fence.move_tag(base.transaction, by)
    _commit(engine, base, None)
    return True


def commit_fenced(engine: SparkEngine, base: CommitBase, check: Callable[[], None] = lambda: None) -> None:
    """Commit the changes of a transaction on its base.

    :param check: called right before the commit; raises where it must not continue.
    :raises py4j.protocol.Py4JJavaError: Java's error; if another writer was faster, nothing was written.
    """
    assert engine.guard is not None, "only a holder of the lock changes tables"
    _claim_and_fence(engine.guard, base, None, None)
    check()
    _commit(engine, base, None)


def _without_new_snapshots(before: Table, after: Table) -> tuple[Table, dict[str, Ref]]:
    """The table without references that need a snapshot, and those references.

    A table without a snapshot has none that they could refer to.
    """
    if before.snapshot is not None:
        return after, {}
    new = {name: ref for name, ref in after.refs.items() if ref.snapshot_id == CURRENT_SNAPSHOT}
    return replace(after, refs={k: v for k, v in after.refs.items() if k not in new}), new


def _create_on_empty_snapshot(transaction: Any, name: str, ref: Ref) -> None:
    if ref.kind == "tag":
        empty = append_snapshot.stage_marker_snapshot(transaction, {TAG_SUMMARY_KEY: name})
        manage = transaction.manageSnapshots()
        manage.createTag(name, int(empty.snapshotId()))
    else:
        manage = transaction.manageSnapshots()
        manage.createBranch(name)  # with an empty snapshot, as Spark's CREATE BRANCH makes one
    if ref.max_ref_age_ms is not None:
        manage.setMaxRefAgeMs(name, ref.max_ref_age_ms)
    if ref.max_snapshot_age_ms is not None:
        manage.setMaxSnapshotAgeMs(name, ref.max_snapshot_age_ms)
    if ref.min_snapshots_to_keep is not None:
        manage.setMinSnapshotsToKeep(name, ref.min_snapshots_to_keep)
    manage.commit()


def _commit(
    engine: SparkEngine, base: CommitBase, marker: Any | None, restoring: PartitionRestore | None = None
) -> Any:
    """Commit the changes of the transaction, on the base that was read before the lock was checked.

    :returns: Java's committed ``TableMetadata``.
    """
    built = base.transaction.table().operations().current()
    if engine.guard is not None:
        built = commit_fence.assert_fence_tag(engine.java.iceberg, base.operations, built)
        engine.guard.require()
    try:
        base.operations.commit(base.metadata, built)
    except Exception as error:  # identified by its Java cause
        if is_state_unknown(error) and _is_there(base, built, marker):
            return built
        if is_commit_conflict(error):
            if restoring is not None:
                restoring.clean_up()
            if marker is not None:
                # Its manifest list was written already, and no metadata refers to it.
                base.operations.io().deleteFile(marker.manifestListLocation())
        raise
    return built


def _is_there(base: CommitBase, built: Any, marker: Any | None) -> bool:
    """Whether a commit that the catalog did not answer has succeeded after all."""
    now = base.operations.refresh()
    if marker is not None:
        return now.snapshot(marker.snapshotId()) is not None
    return bool(now.lastUpdatedMillis() == built.lastUpdatedMillis()) and _same_parts(now, built)


def _same_parts(now: Any, built: Any) -> bool:
    return all(
        one.equals(other)
        for one, other in (
            (now.schema().asStruct(), built.schema().asStruct()),
            (now.spec(), built.spec()),
            (now.sortOrder(), built.sortOrder()),
            (now.properties(), built.properties()),
            (now.refs(), built.refs()),
        )
    )


class SparkCommits(Frozen):
    """See :class:`~icemigrate.spark.commit_ports.TableCommits`."""

    engine: SparkEngine

    def read_base(self, name: TableName) -> CommitBase:
        """The current table, if the holder of the lock may change it."""
        return open_commit_base(self.engine, name)

    def commit(
        self, base: CommitBase, after: Table, marker: Marker | None, *, holds_rows: bool, run: str
    ) -> Schema | None:
        """Commit the difference between an opened table and a target, and the marker."""
        committed = commit_changes(self.engine, base, after, marker, holds_rows, run)
        if committed is not None:
            self.engine.java.refresh(base.table.name)
        return committed

    def remove_schemas(
        self, name: TableName, uuid: str | None, unneeded: Callable[[Mapping[str, Any]], frozenset[int]]
    ) -> SchemaRemoval:
        """Remove schemas from a table's metadata."""
        from icemigrate.spark.schema_removal import remove_schemas

        return remove_schemas(self.engine, name, uuid, unneeded)

    def is_conflict(self, error: Exception) -> bool:
        """Whether another writer committed first; its Java cause shows it."""
        return is_commit_conflict(error)
