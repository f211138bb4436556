"""Snapshots that Python writes beside those that Java writes of the same table, field by field."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from icemigrate.catalog.metadata_files import read_local
from icemigrate.files.version_number import Version
from icemigrate.history.history_record import SCHEMA, HistoryRecord, RunOutcome
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.history_rows import write_rows
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from icemigrate.spark.append_snapshot import _data_file, stage_marker_snapshot
from icemigrate.spark.spark_engine import SparkEngine
from tests.support.metadata_tables import LocalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

SUMMARY = {"icemigrate.note": "x"}
ENGINE_KEYS = frozenset({"engine-name", "engine-version", "iceberg-version", "app-id", "app-name"})
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)
ROW = {
    **{"id": 10, "region": "a region of more characters", "at": AT, "tags": ["x", "y"], "i": 7, "bo": True},
    "x": 2.5,
}
OTHER_TYPES = {
    **{"f": 1.5, "d": "2026-01-02", "b": "00ff", "y": "-12.30", "m": {"k": 1}, "s": {"p": 0.5, "q": "z"}},
    "n": "2026-01-02 03:04:05.5",
}


class JavaTable:
    """A table as Java's library has it, with a commit of its metadata in progress.

    :ivar base: Java's metadata.
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name, self._spark, self._jvm = name, spark, spark._jvm
        assert self._jvm is not None
        session: Any = spark
        util = self._jvm.org.apache.iceberg.spark.Spark3Util
        self.table = util.loadIcebergTable(session._jsparkSession, name)
        self.base = self.table.operations().current()
        self.json: dict[str, Any] = json.loads(self._iceberg.TableMetadataParser.toJson(self.base))

    @property
    def _iceberg(self) -> Any:
        assert self._jvm is not None
        return self._jvm.org.apache.iceberg

    def snapshot(self, rows: Sequence[Mapping[str, Any]] = ()) -> Json:
        """The JSON of a snapshot whose files Java writes; nothing is committed."""
        transaction = self.table.newTransaction()
        if rows:
            append = transaction.newFastAppend()
            append.appendFile(_data_file(self._jvm, self.table, rows))
            for key, value in SUMMARY.items():
                append.set(key, value)
            append.commit()
            made = transaction.table().currentSnapshot()
        else:
            made = stage_marker_snapshot(transaction, SUMMARY)
        found: Json = json.loads(self._iceberg.SnapshotParser.toJson(made))
        return found

    def commit(self, snapshot: Json, branch: str | None = None) -> None:
        """Commit a snapshot of Python's through Java, which checks it."""
        made = self._iceberg.SnapshotParser.fromJson(json.dumps(snapshot))
        builder = self._iceberg.TableMetadata.buildFrom(self.base)
        built = builder.addSnapshot(made) if branch is None else builder.setBranchSnapshot(made, branch)
        self.table.operations().commit(self.base, built.build())
        self._spark.sql(f"REFRESH TABLE {self.name}")


def python_snapshot(table: JavaTable, rows: Sequence[Mapping[str, Any]] = ()) -> Json:
    files = LocalFiles()
    data = (write_rows(table.json, files, rows),) if rows else ()
    head = table.json["refs"]["main"]["snapshot-id"] if "main" in table.json["refs"] else None
    return append_snapshot(table.json, files, SUMMARY, data=data, parent_id=head, now_ms=1).json


def avro(location: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The records of an Avro file and its header, with JSON parsed."""
    reader = fastavro.reader(io.BytesIO(read_local(location)))
    records = [dict(record) for record in reader]
    header = {
        key: json.loads(text) if text[:1] in ("{", "[") else text for key, text in reader.metadata.items()
    }
    return records, header


def contents(snapshot: Json) -> dict[str, Any]:
    """All that a snapshot's files contain, without ids, names, times and sizes of new files."""
    number = snapshot["snapshot-id"]
    listed, header = avro(snapshot["manifest-list"])
    manifests = []
    for entry in listed:
        if entry["added_snapshot_id"] == number:
            entries, of_manifest = avro(entry["manifest_path"])
            for each in entries:
                assert each.pop("snapshot_id") == number
                file = each["data_file"]
                assert len(read_local(file.pop("file_path"))) == file.pop("file_size_in_bytes")
                for key, values in file.items():
                    if isinstance(values, list) and key != "split_offsets":
                        file[key] = {pair["key"]: pair["value"] for pair in values}
                file["column_sizes"] = file["column_sizes"].keys()
            assert entry.pop("manifest_length") == len(read_local(entry.pop("manifest_path")))
            del entry["added_snapshot_id"]
            manifests.append((entries, of_manifest))
    assert header.pop("snapshot-id") == str(number)
    summary = {key: text for key, text in snapshot["summary"].items() if key not in ENGINE_KEYS}
    size = int(summary.pop("added-files-size", "0"))
    summary["total-files-size"] = str(int(summary["total-files-size"]) - size)
    varying = ("snapshot-id", "timestamp-ms", "manifest-list")
    rest = {key: value for key, value in snapshot.items() if key not in varying}
    return {**rest, "summary": summary, "list": (listed, header), "manifests": manifests}


def make_table(spark: SparkSession, name: str, version: int) -> None:
    """A table with three live specs and deletes; one of version 3 was upgraded, and has rows without ids."""
    created = min(version, 2)
    deletes = "copy-on-write" if created == 1 else "merge-on-read"
    columns = (
        "id bigint, region string, at timestamp, tags array<string>, i int, bo boolean, x double, f float, "
        "d date, b binary, y decimal(9, 2), m map<string, int>, s struct<p: double, q: string>, "
        "n timestamp_ntz"
    )
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{created}', 'write.delete.mode' = '{deletes}')"
    )
    insert = f"INSERT INTO {name} (id, region) VALUES"
    spark.sql(f"{insert} (1, 'a'), (2, 'b'), (3, 'b')")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD region")
    spark.sql(f"{insert} (4, 'a'), (5, NULL)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    spark.sql(f"{insert} (7, 'a'), (8, 'b')")
    spark.sql(f"DELETE FROM {name} WHERE id IN (2, 8)")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD bucket(4, id)")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD region")
    if version > created:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '{version}')")


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_python_writes_the_snapshots_that_java_writes(
    spark: SparkSession, namespace: str, version: int
) -> None:
    name = f"local.{namespace}.t"
    make_table(spark, name, version)
    before = [1, 3, 4, 5, 7]

    table = JavaTable(spark, name)
    staged = python_snapshot(table)
    assert contents(staged) == contents(table.snapshot())
    assert staged.get("added-rows", 0) == (7 if version == 3 else 0), "rows of an upgraded table get ids"
    table.commit(staged)
    assert ids(spark, name) == ids(spark, f"{name} VERSION AS OF {staged['snapshot-id']}") == before

    table = JavaTable(spark, name)
    appended = python_snapshot(table, [ROW, {**ROW, "region": None}])
    assert contents(appended) == contents(table.snapshot([ROW, {**ROW, "region": None}]))
    table.commit(appended, "main")
    table = JavaTable(spark, name)
    table.commit(python_snapshot(table, [{"id": 11, **OTHER_TYPES}]), "main")
    assert ids(spark, name) == [*before, 10, 10, 11]
    where = "id = 11 AND d = DATE '2026-01-02' AND y < 0 AND s.p > 0 AND b = X'00ff'"
    (found,) = spark.sql(f"SELECT f, d, y, m, s, n, x FROM {name} WHERE {where}").collect()
    assert [str(value) for value in found] == [
        *("1.5", "2026-01-02", "-12.30", "{'k': 1}", "Row(p=0.5, q='z')"),
        *("2026-01-02 03:04:05.500000", "None"),
    ]

    spark.sql(f"INSERT INTO {name} (id) VALUES (12)")
    spark.sql(f"DELETE FROM {name} WHERE id = 10 AND region IS NULL")
    spark.sql(f"CALL local.system.rewrite_manifests('{namespace}.t')")
    assert ids(spark, name) == [*before, 10, 11, 12]
    if version == 3:
        rows = spark.sql(f"SELECT _row_id FROM {name}").collect()
        assert len({row._row_id for row in rows} - {None}) == len(rows)
    rewritten = JavaTable(spark, name)
    rewritten.commit(python_snapshot(rewritten), "main")
    assert ids(spark, name) == [*before, 10, 11, 12]


def test_rows_of_the_history_have_the_metrics_that_java_writes(
    spark: SparkSession, warehouse: Warehouse, namespace: str
) -> None:
    name = TableName((namespace,), "history")
    last = max(field.id for _, field in SCHEMA.walk())
    SparkEngine(spark, warehouse.catalog).create(Table(name, SCHEMA, last_column_id=last))
    record = HistoryRecord(
        version=Version(1, "0001"),
        description="Create the table of “events”, described at some length",
        checksum="c" * 64,
        project="p",
        environment="e",
        outcome=RunOutcome.APPLIED,
        started_at=AT,
        finished_at=None,
        user="ann",
        host="h",
        tool_version="1",
        tables=("demo.events",),
        statements=("CREATE TABLE demo.events", "x" * 10_000),
    )
    rows = [record.row(), {**record.row(), "version": None, "version_text": None}]
    table = JavaTable(spark, f"local.{name}")
    appended = python_snapshot(table, rows)
    assert contents(appended) == contents(table.snapshot(rows))
    table.commit(appended, "main")
    (first, second) = spark.sql(f"SELECT * FROM local.{name} ORDER BY version NULLS LAST").collect()
    assert first.statements == list(record.statements)
    assert (first.started_at.timestamp(), second.version) == (AT.timestamp(), None)
