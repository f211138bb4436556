"""Tries, before a plan changes anything, whether the storage takes the files that its refills write.

A refill follows the commit of its table, and not every storage takes its files: a table bucket checks names,
and a policy may allow reads alone.  So one file of each kind is written beside the table's own, and deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table_properties import MERGE_MODE, MERGE_ON_READ
from icemigrate.planning.plan import MigrationPlan
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.refill import AS_THEY_ARE
from icemigrate.spark.spark_engine import SparkEngine

_SCHEMA = '{"type": "struct", "fields": [{"id": 1, "name": "id", "required": true, "type": "int"}]}'


def require_refill_writes(engine: SparkEngine, migrations: Sequence[MigrationPlan]) -> None:
    """Require that the storage takes the files of all refills.

    :raises EngineError: it does not; no table was changed.
    """
    refills: dict[TableName, list[RefillColumns]] = {}
    for plan in (plan for migration in migrations for plan in migration.tables):
        for planned in plan.changes():
            if isinstance(planned.change, RefillColumns):
                refills.setdefault(plan.name, []).append(planned.change)
    for name, changes in refills.items():
        with convert_java_errors():
            table = engine.java.find(name)
            if table is None:
                continue  # an earlier migration of the plan creates it
            properties = table.properties()
            data = properties.getOrDefault("write.format.default", "parquet")
            is_on_read = properties.get(MERGE_MODE) == MERGE_ON_READ
            has_vectors = int(table.operations().current().formatVersion()) > 2
        _try_write(engine, name, table, data, "")
        if is_on_read or any(change.by_row_id or change.by_lineage for change in changes):
            _try_write(engine, name, table, "puffin" if has_vectors else data, "deletes")


def _try_write(engine: SparkEngine, name: TableName, table: Any, kind: str, suffix: str) -> None:
    """Write a file, and delete it.

    :param kind: Iceberg's name of the file's format.
    :param suffix: of the file's name, before the extension; as Iceberg's writers set it.
    """
    iceberg = engine.java.iceberg
    try:
        with convert_java_errors():
            files = iceberg.io.OutputFileFactory.builderFor(table, 1, 1)
            files = files.format(iceberg.FileFormat.fromString(kind)).suffix(suffix or None)
            file = files.build().newOutputFile()
            try:
                (_write_puffin if kind == "puffin" else _write_row)(iceberg, table, file)
            finally:
                with suppress(Exception):  # what may not be deleted is an orphan file, as of any failed write
                    table.io().deleteFile(file.encryptingOutputFile().location())
    except EngineError as error:
        raise EngineError(
            f"the storage rejects `.{kind}` files, which the refill of `{name}` writes: {error.message}",
            AS_THEY_ARE,
        ) from error


def _write_puffin(iceberg: Any, _table: Any, file: Any) -> None:
    writer = iceberg.puffin.Puffin.write(file.encryptingOutputFile()).createdBy("icemigrate").build()
    try:
        writer.finish()
    finally:
        writer.close()


def _write_row(iceberg: Any, table: Any, file: Any) -> None:
    schema = iceberg.SchemaParser.fromJson(_SCHEMA)
    record = iceberg.data.GenericRecord.create(schema)
    record.setField("id", 1)
    factory = iceberg.data.GenericFileWriterFactory.Builder(table).dataSchema(schema).build()
    writer = factory.newDataWriter(file, iceberg.PartitionSpec.unpartitioned(), None)
    try:
        writer.write(record)  # without a row, Iceberg creates no file
    finally:
        writer.close()
