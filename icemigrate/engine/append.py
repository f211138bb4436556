"""Append a few rows to a table without a Spark job: one data file by Iceberg's generic writer.

A job costs a second and needs executors; the history gets one row per migration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def append_rows(
    jvm: Any,
    table: Any,
    rows: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    remove: Sequence[str],
) -> None:
    """Append rows, set properties and remove others, all in one commit.

    :param jvm: Py4J's view of the JVM.
    :param table: Java's ``Table``, freshly loaded; unpartitioned.
    :param rows: values by column; ``datetime`` with a time zone for ``timestamptz``, JSON's values else.
    """
    transaction = table.newTransaction()
    if rows:
        append = transaction.newAppend()
        append.appendFile(_data_file(jvm, table, rows))
        append.commit()
    if properties or remove:
        update = transaction.updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        for key in remove:
            update.remove(key)
        update.commit()
    transaction.commitTransaction()


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
