"""One commit that brings a table to what was made of its copy, the migration's marker included.

What Iceberg's own transaction would do at its end is left out: it loads the table again and applies its
updates to whatever is there.  Here the commit asserts the metadata that the difference was made on.
"""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any

from icemigrate.engine import guard, markers, metadata_commit
from icemigrate.engine.explain import is_commit_conflict, is_state_unknown
from icemigrate.engine.partition_restore import Restoring, returning
from icemigrate.engine.port import Marker
from icemigrate.frozen import Frozen, replace
from icemigrate.model.marks import FENCE_TAG, is_branch_of
from icemigrate.model.metadata import table_from_json
from icemigrate.model.metadata_check import read_schema
from icemigrate.model.names import TableName
from icemigrate.model.reserved import FENCE_PROPERTY, OWNER_PROPERTY
from icemigrate.model.schema import Schema
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Table

if TYPE_CHECKING:
    from icemigrate.engine.spark import SparkEngine


class Base(Frozen):
    """A table at the moment from which a commit starts.

    :param transaction: Java's ``Transaction``, begun on ``metadata``.
    :param metadata: Java's ``TableMetadata``.
    :param json: the same as the JSON of a metadata file.
    :param table: the same as a plan sees it.
    """

    operations: Any
    transaction: Any
    metadata: Any
    json: dict[str, Any]
    table: Table


def open_base(engine: SparkEngine, name: TableName) -> Base:
    """The table as it is now, which the holder of the lock may change.

    :raises EngineError: there is none.
    :raises LockLost: the lock is not ours any more.
    :raises ConflictError: it belongs to another project.
    """
    java = engine.java.table(name)
    # Loads the table once more: the metadata below is what this transaction begins on.
    transaction = java.newTransaction()
    operations = java.operations()
    metadata = operations.current()
    json = engine.java.read(metadata)
    if engine.guard is not None:
        engine.guard.admit(name, json)
    return Base(operations, transaction, metadata, json, table_from_json(json, name))


def land(
    engine: SparkEngine, base: Base, after: Table, marker: Marker | None, holds_rows: bool = False
) -> Schema | None:
    """Commit the difference between a base and what the table shall be, and the marker.

    :param holds_rows: as in :meth:`~icemigrate.engine.port.Engine.commit`.
    :param marker: ``None`` where the table gets none.
    :returns: the schema that the commit produced; ``None`` where there was nothing to commit.
    :raises py4j.protocol.Py4JJavaError: Java's fault; where another writer was faster, nothing was written
        (:func:`~icemigrate.engine.explain.is_commit_conflict`).
    """
    after, branches = _without_new_snapshots(base.table, after)
    built = metadata_commit.build(engine.java.iceberg, base.metadata, base.table, after)
    inside = base.transaction.table().operations()
    changed = not built.changes().isEmpty()
    if changed:
        if holds_rows:
            built = metadata_commit.holding_main(engine.java.iceberg, base.operations, built)
        inside.commit(inside.current(), built)
    restoring = Restoring(
        engine.java,
        base.transaction,
        lambda: engine.java.table(base.table.name).newTransaction(),
        base.json,
        returning(base.table, after),
    )
    restoring.run()
    for name, ref in branches.items():
        _branch(base.transaction, name, ref)
    if marker is not None and marker.is_begun and marker.before is None:
        marker = None  # there are no rows to keep
    snapshot = None if marker is None else markers.add(base.transaction, marker)
    if not changed and not branches and marker is None:
        return None
    if engine.guard is not None:
        _keep_out(engine.guard, base, snapshot, marker)
    built = _commit(engine, base, snapshot, restoring)
    # Not what the catalog has by now: that may hold what others committed since.
    return base.table.schema if built.schema().sameSchema(base.metadata.schema()) else _schema(engine, built)


def _schema(engine: SparkEngine, metadata: Any) -> Schema:
    """The current schema of Java's ``TableMetadata``."""
    json: str = engine.java.iceberg.SchemaParser.toJson(metadata.schema())
    return read_schema("schema", loads(json))


def _keep_out(by: guard.Guard, base: Base, snapshot: Any | None, marker: Marker | None) -> None:
    """Have the transaction claim the table, and give the commit something that it can assert on REST.

    :param snapshot: Java's ``Snapshot`` that the commit adds; ``None`` where it adds none.
    """
    claims = marker is not None and base.table.owner is None
    if claims:
        guard.set_property(base.transaction, OWNER_PROPERTY, by.project)
    if not guard.is_rest(base.operations):
        return
    new = None if snapshot is None else int(snapshot.snapshotId())
    if claims or (new is not None and base.transaction.table().refs().containsKey(FENCE_TAG)):
        guard.move_tag(base.transaction, by, new, None if marker is None else marker.keep)
    elif base.transaction.table().currentSnapshot() is None and new is None:
        guard.stage(base.transaction, by)


def set_owner(engine: SparkEngine, name: TableName, owner: str | None) -> None:
    """Claim a table, or give it free, in a commit of its own."""
    base = open_base(engine, name)
    if engine.guard is None or base.table.owner == owner:
        return
    guard.set_property(base.transaction, OWNER_PROPERTY, owner)
    if guard.is_rest(base.operations):
        guard.move_tag(base.transaction, engine.guard)
    _commit(engine, base, None)


def fence(engine: SparkEngine, name: TableName, version: str) -> bool:
    """Move a table, so that every commit to it that was begun before is refused.

    The branches go that earlier runs of the migration have written rows to: none of them can be published.

    :param version: of the migration that was interrupted.
    :returns: ``False`` where there is no such table, or another project owns it.
    """
    by, table = engine.guard, engine.java.find(name)
    assert by is not None, "only a holder of the lock fences"
    if table is None or guard.owner_in(dict(table.properties())) not in (None, by.project):
        return False
    base = open_base(engine, name)
    guard.set_property(base.transaction, FENCE_PROPERTY, by.fence)
    left = [
        n for n, r in base.table.refs.items() if r.kind == "branch" and is_branch_of(n, by.project, version)
    ]
    guard.drop_branches(base.transaction, left)
    if guard.is_rest(base.operations):
        guard.move_tag(base.transaction, by)
    _commit(engine, base, None)
    return True


def _without_new_snapshots(before: Table, after: Table) -> tuple[Table, dict[str, Ref]]:
    """The table without the branches that a snapshot is made for, and those branches.

    A table that was never written to has no snapshot that they could point at.
    """
    if before.snapshot is not None:
        return after, {}
    new = {
        name: ref
        for name, ref in after.refs.items()
        if ref.kind == "branch" and ref.snapshot_id == CURRENT_SNAPSHOT
    }
    return replace(after, refs={k: v for k, v in after.refs.items() if k not in new}), new


def _branch(transaction: Any, name: str, ref: Ref) -> None:
    manage = transaction.manageSnapshots()
    manage.createBranch(name)  # with an empty snapshot, as Spark's CREATE BRANCH makes one
    if ref.max_ref_age_ms is not None:
        manage.setMaxRefAgeMs(name, ref.max_ref_age_ms)
    if ref.max_snapshot_age_ms is not None:
        manage.setMaxSnapshotAgeMs(name, ref.max_snapshot_age_ms)
    if ref.min_snapshots_to_keep is not None:
        manage.setMinSnapshotsToKeep(name, ref.min_snapshots_to_keep)
    manage.commit()


def _commit(engine: SparkEngine, base: Base, marker: Any | None, restoring: Restoring | None = None) -> Any:
    """Commit what the transaction has built, on the base that was read before this look at the lock.

    :returns: Java's ``TableMetadata`` that was committed.
    """
    built = base.transaction.table().operations().current()
    if engine.guard is not None:
        built = guard.asserting(engine.java.iceberg, base.operations, built)
        engine.guard.require()
    try:
        base.operations.commit(base.metadata, built)
    except Exception as error:  # known by its Java cause alone
        if is_state_unknown(error) and _is_there(base, built, marker):
            return built
        if is_commit_conflict(error):
            if restoring is not None:
                restoring.clean_up()
            if marker is not None:
                # The list of its manifests was written already, and nothing refers to it.
                base.operations.io().deleteFile(marker.manifestListLocation())
        raise
    return built


def _is_there(base: Base, built: Any, marker: Any | None) -> bool:
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
