"""Snapshots appended without a Spark job: history rows, and markers of migrations.

A job costs a second and needs executors; the history gets one row per migration.  Markers are staged, so that
no branch moves: readers of main, materialised views and freshness checks see nothing new, while ``VERSION AS
OF '<tag>'`` reads the rows as they were under the migration's schema.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from icemigrate.errors import HeadMoved
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_manifests import iterate_java

MOST_SNAPSHOTS = 100
"""The number of snapshots kept of a table whose head moves at every step; above it the older half expires.

Their rows stay: later snapshots have them too.
"""


def build_append_commit(
    jvm: Any,
    table: Any,
    rows: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    remove: Sequence[str],
    expected_head: int | None,
    summary: Mapping[str, str],
) -> tuple[Any, Any, int]:
    """Build one commit with a new snapshot and changed properties.

    A transaction collects the changes and is never committed itself: it would refresh and try again on top of
    any concurrent commit.  The caller commits the result, on the base that was read.

    :param jvm: Py4J's view of the JVM.
    :param table: Java's ``Table``, freshly loaded; unpartitioned.
    :returns: Java's metadata before and after, for ``TableOperations.commit``; and the new snapshot's id.
    :raises HeadMoved: the table's head is not ``expected_head``.
    """
    transaction = table.newTransaction()
    base = transaction.startMetadata()
    if head_of(base) != expected_head:
        raise head_moved(table.name())
    append = transaction.newAppend()
    for key, value in summary.items():
        append.set(key, value)
    if rows:
        append.appendFile(_data_file(jvm, table, rows))
    append.commit()
    if properties or remove:
        update = transaction.updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        for key in remove:
            update.remove(key)
        update.commit()
    if base.snapshots().size() >= MOST_SNAPSHOTS:
        _forget(transaction)
    built = transaction.table().operations().current()
    head = head_of(built)
    assert head is not None, "an append makes a snapshot"
    return base, built, head


def _forget(transaction: Any) -> None:
    expire = transaction.expireSnapshots()
    expire.expireOlderThan(time.time_ns() // 1_000_000)
    expire.retainLast(MOST_SNAPSHOTS // 2)
    expire.cleanExpiredFiles(False)  # the commit may yet be refused
    expire.commit()


def delete_expired(table: Any, base: Any, built: Any) -> None:
    """Delete the files that only snapshots need which a successful commit removed.

    As :func:`icemigrate.metadata_engine.expired_files.files_of_expired`: manifest lists, and manifests that
    were merged.  A failure is no error, because nothing refers to the files.

    :param table: Java's ``Table``.
    :param base: Java's metadata before the commit.
    :param built: Java's metadata after it.
    """
    snapshots = list(iterate_java(base.snapshots()))
    kept = {int(s.snapshotId()) for s in iterate_java(built.snapshots())}
    gone = {i: s for s in snapshots if (i := int(s.snapshotId())) not in kept}
    if not gone:
        return
    io, locations = table.io(), [str(s.manifestListLocation()) for s in gone.values()]
    with suppress(Exception):  # a manifest list that cannot be read
        if int(base.refs().size()) == 1 and _is_line(snapshots):
            first = next((s for s in snapshots if int(s.snapshotId()) in kept), None)
            locations += _merged(io, gone, [*gone.values(), *([] if first is None else [first])])
    for location in locations:
        with suppress(Exception):
            io.deleteFile(location)


def _is_line(snapshots: Sequence[Any]) -> bool:
    """Whether each snapshot is the child of the one before it."""
    return all(int(new.parentId() or -1) == int(old.snapshotId()) for old, new in pairwise(snapshots))


def _merged(io: Any, gone: Mapping[int, Any], snapshots: Sequence[Any]) -> Iterator[str]:
    """The manifests of expired snapshots that the next snapshot replaced."""
    for snapshot in snapshots:
        parent = gone.get(int(snapshot.parentId() or -1))
        if parent is not None and snapshot.summary().get("manifests-replaced") not in (None, "0"):
            yield from _manifests(parent, io) - _manifests(snapshot, io)


def _manifests(snapshot: Any, io: Any) -> set[str]:
    return {str(manifest.path()) for manifest in iterate_java(snapshot.allManifests(io))}


def head_of(metadata: Any) -> int | None:
    """Id of the current snapshot of Java's ``TableMetadata``."""
    current = metadata.currentSnapshot()
    return None if current is None else int(current.snapshotId())


def head_moved(name: object) -> HeadMoved:
    """The error of the slower of two writers.

    :param name: of the table.
    """
    return HeadMoved(f"another writer changed table `{name}`", "try again")


def _data_file(jvm: Any, table: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    iceberg = jvm.org.apache.iceberg
    target = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).build().newOutputFile()
    factory = iceberg.data.GenericFileWriterFactory.Builder(table).build()
    writer = factory.newDataWriter(target, table.spec(), None)
    schema = table.schema()
    try:
        for record in build_records(jvm, schema, rows):
            writer.write(record)
    finally:
        writer.close()
    return writer.toDataFile()


def build_records(jvm: Any, schema: Any, rows: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Java's ``GenericRecord`` of each row.

    The number of calls to the JVM does not depend on the number of columns.

    :param schema: Java's ``Schema`` of the table.
    :param rows: values by column; a missing column is null.
    """
    # Py4J unboxes every Java number on its way through Python and sends a small one back as an `Integer`,
    # which the writer of a long refuses. So all other numbers are sent as JSON and parsed in the JVM.
    fields = json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(schema))["fields"]
    ints = {field["name"] for field in fields if field["type"] == "int"}
    databind = jvm.com.fasterxml.jackson.databind
    mapper = databind.ObjectMapper().enable(databind.DeserializationFeature.USE_LONG_FOR_INTS)
    java_map = jvm.java.lang.Class.forName("java.util.Map")
    for row in rows:
        objects = {
            name: jvm.java.time.OffsetDateTime.parse(value.isoformat())
            if isinstance(value, datetime)
            else value
            for name, value in row.items()
            if isinstance(value, datetime) or (name in ints and value is not None)
        }
        plain = {name: value for name, value in row.items() if name not in objects}
        values = mapper.readValue(json.dumps(plain), java_map)
        record = jvm.org.apache.iceberg.data.GenericRecord.create(schema).copy(values)
        for name, value in objects.items():
            record.setField(name, value)
        yield record


FOR_EVER_MS = 2**63 - 1
"""Java's ``Long.MAX_VALUE``.  Written out, since without it ``history.expire.max-ref-age-ms`` decides."""


def add_marker_snapshot(transaction: Any, marker: Marker) -> Any:
    """Add the marker and its tags to a transaction on a table.

    The marker has the current schema of the transaction's table.

    :param transaction: Java's ``Transaction``.
    :returns: Java's ``Snapshot`` of the marker; ``None`` where the migration continues with the rows.
    """
    snapshot = None if marker.is_started else stage_marker_snapshot(transaction, marker.summary)
    now_ms = time.time_ns() // 1_000_000
    refs = transaction.table().refs()
    manage = transaction.manageSnapshots()
    own = None if snapshot is None else int(snapshot.snapshotId())
    there = {name: int(refs.get(name).snapshotId()) for name in iterate_java(refs.keySet())}
    for tag, snapshot_id in marker.tags(own, there):
        known = transaction.table().snapshot(snapshot_id)
        if known is None:
            continue  # expired meanwhile: no rows remain to keep
        if tag in there:
            manage.replaceTag(tag, snapshot_id)
        else:
            manage.createTag(tag, snapshot_id)
        manage.setMaxRefAgeMs(tag, max_ref_age_ms(marker.keep, now_ms - known.timestampMillis()))
    manage.commit()
    return snapshot


def max_ref_age_ms(keep: timedelta | None, age_ms: int) -> int:
    """A tag's age limit in milliseconds that keeps it for ``keep`` from now.

    A reference's age is that of its snapshot (specification, "Snapshot Retention Policy"), so the snapshot's
    current age is added.
    """
    if keep is None:
        return FOR_EVER_MS
    return max(1, max(0, age_ms) + keep // timedelta(milliseconds=1))


def stage_marker_snapshot(transaction: Any, summary: dict[str, str]) -> Any:
    """Add a snapshot without rows of its own and outside all branches; Java's ``Snapshot``."""
    # A fast one: the other kind may merge manifests, which reads them.
    append = transaction.newFastAppend()
    for key, value in summary.items():
        append.set(key, value)
    append.stageOnly()
    append.commit()
    # A new snapshot is the list's last; reading the ids of thousands would take seconds.
    staged = transaction.table().snapshots()[-1]
    assert all(staged.summary().get(key) == value for key, value in summary.items())
    return staged
