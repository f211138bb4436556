"""Maintenance by Spark and Iceberg's Java library; each action is independent.

A process can be paused before any of these calls and replaced by another one meanwhile.  So no act does on
waking what its process decided before: a commit goes behind the fence (:mod:`icemigrate.spark.commit_fence`),
a table is dropped under a name of the run's own, and only files are deleted that no later process can need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.errors import ConflictError, EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import purge_name
from icemigrate.spark import commit, metadata_commit
from icemigrate.spark.commit_fence import Fence, is_rest
from icemigrate.spark.commit_ports import CommittingEngine
from icemigrate.spark.java_errors import convert_java_errors, retry_on_conflict
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark.storage_deletes import delete_files
from icemigrate.spark_sql.identifiers import path_sql
from icemigrate.spark_sql.literals import string_sql

_LISTED_BY_SPARK = ("", "file", "hdfs")
"""Schemes whose folders Hadoop can list; others are listed by the table's own ``FileIO``."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LONGEST_PAUSE_S = 0.1


def purge_text(name: TableName) -> str:
    """How :func:`purge_table` is shown."""
    return f"catalog.dropTable({name}, purge = true)"


def purge_table(engine: SparkEngine, name: TableName, uuid: str | None) -> None:
    """Drop a table for good, with its files.

    The catalog itself does it: SQL catalogs delete every file of the table's metadata, a REST server is asked
    to do so (``purgeRequested``).

    No catalog drops a table by compare-and-swap.  So the table first gets a name that only this run uses, and
    is checked under that name.  A table that another process restored or dropped anew has another name.

    :param uuid: of the table that was shown; ``None`` where it has none.
    :raises LockLost: this process does not hold the lock any more; nothing was dropped.
    :raises ConflictError: another process has restored or dropped the table; nothing was dropped here.
    :raises EngineError: the catalog failed, and the table has its old name again where that was possible; or
        the storage did not delete the files.
    """
    own = purge_name(name, guard_of(engine).run)
    require_same(engine, name, uuid)
    engine.rename(name, own)
    try:
        require_same(engine, own, uuid)
        with convert_java_errors():
            table = engine.java.find(own)
            operations = None if table is None else table.operations()
            file = None if operations is None else operations.current().metadataFileLocation()
            is_dropped = bool(engine.java.catalog.dropTable(engine.java.identifier(own), True))
        if engine.metadata_location(own) is not None:
            raise EngineError(f"table `{name}` still exists, as `{own}`, after the catalog dropped it")
        if not is_dropped:
            raise ConflictError(
                f"another process has restored or dropped table `{name}`", "run `icemigrate maintain` again"
            )
    except Exception:
        with suppress(Exception):  # another process may have dropped it, or created another one with its name
            engine.java.catalog.renameTable(engine.java.identifier(own), engine.java.identifier(name))
        raise
    with convert_java_errors():
        # It is the last file that a SQL catalog deletes, and a failure is only logged.
        is_left = False
        if operations is not None and not is_rest(operations):
            is_left = bool(operations.io().newInputFile(file).exists())
    if is_left:
        raise EngineError(
            f"the catalog dropped table `{name}`, but the storage did not delete all of its files",
            f"delete by hand the files that only this table used; its metadata file is {file}",
        )


def require_same(engine: CommittingEngine, name: TableName, uuid: str | None) -> None:
    """Require that it is the table that was shown, and that this process holds the lock."""
    metadata = engine.metadata_json(name)
    if metadata is not None and uuid in (None, metadata.get("table-uuid")):
        guard_of(engine).require_access(name, metadata)
        return
    guard_of(engine).require()
    raise ConflictError(
        f"another table now has the name `{name}`" if metadata else f"table `{name}` no longer exists",
        "run `icemigrate maintain` again",
    )


def guard_of(engine: CommittingEngine) -> Fence:
    assert engine.guard is not None, "only a holder of the lock maintains"
    return engine.guard


def expire_text(name: TableName, before: datetime) -> str:
    """The text of :func:`expire_snapshots` in a plan.

    :param before: newer snapshots stay.  Iceberg would compute the age at the time of the call, and so expire
        more than was shown.
    """
    return f"metadata commit on {name}: expireSnapshots().expireOlderThan({_timestamp_sql(before)})"


def expire_snapshots(
    engine: SparkEngine, name: TableName, uuid: str | None, before: datetime, shown: frozenset[int]
) -> str:
    """Expire snapshots by the table's own properties, and delete the files that only they need.

    Spark's procedure loads the table itself and commits on its current state.  Here the commit asserts the
    table that was read before the lock was checked; the files are found and deleted after it.

    :param before: newer snapshots stay.
    :param shown: ids of the snapshots that may expire.
    :returns: the number of deleted files.
    :raises LockLost: this process does not hold the lock any more; nothing was deleted.
    :raises ConflictError: the table changed, so that other snapshots would expire; nothing was deleted.
    :raises EngineError: Java failed, or the storage deleted none of the files.
    """
    with convert_java_errors():
        base, gone = retry_on_conflict(lambda: _expire(engine, name, uuid, before, shown), _LONGEST_PAUSE_S)
        engine.java.refresh(name)
        files = _files_of_expired(engine, base, before, gone)
    return delete_files(base.operations.io(), files)


def _expire(
    engine: SparkEngine, name: TableName, uuid: str | None, before: datetime, shown: frozenset[int]
) -> tuple[commit.CommitBase, frozenset[int]]:
    """Commit the expiry; returns its base, and the ids of the removed snapshots."""
    base = commit.open_commit_base(engine, name)
    if uuid not in (None, base.table.uuid):
        raise ConflictError(f"another table now has the name `{name}`", "run `icemigrate maintain` again")
    inside = base.transaction.table().operations()
    # A REST server removes every reference to a removed snapshot, and asserts none of them.
    asserted = metadata_commit.assert_references_unmoved(engine.java.iceberg, base.operations, base.metadata)
    if asserted is not base.metadata:
        inside.commit(inside.current(), asserted)
    _prepare_expiry(base.transaction, before).cleanExpiredFiles(False).commit()
    gone = _snapshot_ids(base.json) - _snapshot_ids(engine.java.read(inside.current()))
    if not gone <= shown:
        raise ConflictError(
            f"table `{name}` changed, and more of its snapshots would expire than were shown",
            "run `icemigrate maintain` again",
        )
    commit.commit_fenced(engine, base, lambda: _require_no_new_reference(engine, base))
    return base, gone


def _prepare_expiry(transaction: Any, before: datetime) -> Any:
    """Java's ``ExpireSnapshots``."""
    return transaction.expireSnapshots().expireOlderThan((before - _EPOCH) // timedelta(milliseconds=1))


def _snapshot_ids(metadata: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots") or ())


def _require_no_new_reference(engine: SparkEngine, base: commit.CommitBase) -> None:
    """Require that a REST catalog has no reference that the base does not have.

    No requirement of the REST protocol refuses a commit because of a new reference of any name.
    """
    if not is_rest(base.operations):
        return
    name = base.table.name
    now = (engine.metadata_json(name) or {}).get("refs") or {}
    if new := sorted(now.keys() - (base.json.get("refs") or {}).keys()):
        raise ConflictError(
            f"table `{name}` has a new tag or branch, `{new[0]}`", "run `icemigrate maintain` again"
        )


def _files_of_expired(
    engine: SparkEngine, base: commit.CommitBase, before: datetime, gone: frozenset[int]
) -> Any:
    """Java's ``List`` of the files that only removed snapshots need: the same expiry, in memory.

    Empty where that would remove other snapshots, or where no file has the metadata: the files are orphans
    then.
    """
    java, file = engine.java, base.metadata.metadataFileLocation()
    if file is None:
        return java.jvm.java.util.ArrayList()
    alone = java.iceberg.StaticTableOperations(file, base.operations.io())
    transaction = java.iceberg.Transactions.newTransaction(str(base.table.name), alone)
    # `Stream.Builder` is the only class of Java that accepts the values of a `Consumer`.
    collected = java.jvm.java.util.stream.Stream.builder()
    _prepare_expiry(transaction, before).deleteWith(collected).commit()
    again = _snapshot_ids(base.json) - _snapshot_ids(java.read(transaction.table().operations().current()))
    return _built(engine, collected) if again == gone else java.jvm.java.util.ArrayList()


def _built(engine: SparkEngine, builder: Any) -> Any:
    """Java's ``List`` of the values of a ``Stream.Builder``."""
    # Its class is not public: its methods are found through its interfaces.
    java = engine.java.jvm.java
    no_classes, nothing = engine.java.array(java.lang.Class, ()), engine.java.array(java.lang.Object, ())

    def called(interface: str, method: str, on: Any) -> Any:
        found = java.lang.Class.forName(interface).getMethod(method, no_classes)
        return found.invoke(on, nothing)

    stream = called("java.util.stream.Stream$Builder", "build", builder)
    return java.util.Arrays.asList(called("java.util.stream.Stream", "toArray", stream))


def orphans_sql(catalog: str, name: TableName, before: datetime, location: str) -> str:
    """The call that finds files that the table does not use.

    :param before: newer files are not orphans.
    :param location: of the table; object stores are listed by the table's own ``FileIO``.
    """
    parts = [f"table => {_argument(name)}", f"older_than => {_timestamp_sql(before)}"]
    scheme = location.partition(":")[0] if ":" in location else ""
    if scheme not in _LISTED_BY_SPARK:
        parts.append("prefix_listing => true")
    parts.append("dry_run => true")
    return f"CALL {path_sql((catalog,))}.system.remove_orphan_files({', '.join(parts)})"


def remove_orphan_files(
    engine: SparkEngine, name: TableName, before: datetime, location: str
) -> tuple[str, ...]:
    """Find orphan files.

    :returns: where they are.
    :raises EngineError: Spark failed.
    """
    text = orphans_sql(engine.catalog_name, name, before, location)
    return tuple(sorted(str(row["orphan_file_location"]) for row in _rows(engine, text)))


def remove_orphans(
    engine: SparkEngine,
    name: TableName,
    uuid: str | None,
    before: datetime,
    location: str,
    found: Iterable[str],
) -> str:
    """Remove files that the table neither used under this lock nor uses now; returns their number as text.

    Spark's procedure deletes files that the table with the name *then* does not use: under another holder of
    the lock that can be another table, in the folder of one in the trash.

    :param found: the result of :func:`remove_orphan_files` under this lock, in a folder that only this table
        uses.
    :raises LockLost: this process does not hold the lock any more; nothing was removed.
    :raises EngineError: Spark failed, or the storage deleted none of the files.
    """
    require_same(engine, name, uuid)
    both = sorted(set(found).intersection(remove_orphan_files(engine, name, before, location)))
    io = engine.java.table(name).io()
    files = engine.java.jvm.java.util.ArrayList()
    for file in both:
        files.add(file)
    require_same(engine, name, uuid)
    return delete_files(io, files)


def _rows(engine: SparkEngine, text: str) -> list[dict[str, Any]]:
    with convert_java_errors(), engine.pinned():
        return [row.asDict() for row in engine.session.sql(text).collect()]


def _argument(name: TableName) -> str:
    """A table's name in the string that a procedure takes."""
    return string_sql(path_sql((*name.namespace, name.name)))


def _timestamp_sql(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}+00:00'"
