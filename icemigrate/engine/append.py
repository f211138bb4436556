"""Move a table's head by compare-and-swap, without a Spark job: rows go through Iceberg's generic writer.

A job costs a second and needs executors; the history gets one row per migration.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from icemigrate.errors import HeadMoved

MOST_SNAPSHOTS = 200
"""So many snapshots are kept of a table whose head is moved at every step; then the older half is forgotten.
Its rows stay: a later snapshot has them too."""


def swap_head(
    jvm: Any,
    table: Any,
    rows: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    remove: Sequence[str],
    expected_head: int | None,
    summary: Mapping[str, str],
) -> tuple[Any, Any, int]:
    """Build one commit out of a new snapshot and changed properties.

    A transaction collects the changes and is never committed itself: it would refresh and try again on top
    of whatever it finds.  What it built is committed by the caller, on the base that was looked at.

    :param jvm: Py4J's view of the JVM.
    :param table: Java's ``Table``, freshly loaded; unpartitioned.
    :returns: Java's metadata before and after, for ``TableOperations.commit``; and the new snapshot's id.
    :raises HeadMoved: the table's head is not ``expected_head``.
    """
    transaction = table.newTransaction()
    base = transaction.startMetadata()
    if head_of(base) != expected_head:
        raise head_moved(table)
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


def head_of(metadata: Any) -> int | None:
    """Id of the current snapshot of Java's ``TableMetadata``."""
    current = metadata.currentSnapshot()
    return None if current is None else int(current.snapshotId())


def head_moved(table: Any) -> HeadMoved:
    """The fault of the one who was slower."""
    return HeadMoved(f"table `{table.name()}` was changed by somebody else meanwhile", "try again")


def _data_file(jvm: Any, table: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    iceberg = jvm.org.apache.iceberg
    target = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).build().newOutputFile()
    factory = iceberg.data.GenericFileWriterFactory.Builder(table).build()
    writer = factory.newDataWriter(target, table.spec(), None)
    try:
        for row in rows:
            writer.write(_record(jvm, table, row))
    finally:
        writer.close()
    return writer.toDataFile()


def _record(jvm: Any, table: Any, row: Mapping[str, Any]) -> Any:
    schema = table.schema()
    # Py4J unboxes every Java number on its way through Python and sends a small one back as an `Integer`,
    # which the writer of a long refuses.  So all but those go over as JSON and are read in the JVM.
    objects = {
        name: jvm.java.time.OffsetDateTime.parse(value.isoformat()) if isinstance(value, datetime) else value
        for name, value in row.items()
        if isinstance(value, datetime) or schema.findType(name).typeId().name() == "INTEGER"
    }
    plain = {name: value for name, value in row.items() if name not in objects}
    databind = jvm.com.fasterxml.jackson.databind
    mapper = databind.ObjectMapper().enable(databind.DeserializationFeature.USE_LONG_FOR_INTS)
    values = mapper.readValue(json.dumps(plain), jvm.java.lang.Class.forName("java.util.Map"))
    record = jvm.org.apache.iceberg.data.GenericRecord.create(schema).copy(values)
    for name, value in objects.items():
        record.setField(name, value)
    return record
