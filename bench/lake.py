"""Makes a lake to measure on: a SQLite catalog of many tables, their metadata written directly.

The files are what Spark writes after two hundred commits, without blanks: valid for every reader, with no
data behind them.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CATALOG_NAME = "lake"
NAMESPACE = "bench"

_TYPES = (
    "long",
    "string",
    "double",
    "timestamptz",
    "decimal(18, 6)",
    "int",
    "date",
    "boolean",
    "string",
    "long",
)
Fields = list[dict[str, Any]]

_BEGINNING_MS = 1_700_000_000_000


def make(
    folder: Path, tables: int, columns: int = 60, snapshots: int = 200, fields: Fields | None = None
) -> Path:
    """Make a lake.

    :param folder: where; made if it is not there.
    :param fields: the columns of each table in Iceberg's form, instead of ``columns`` plain ones; the
        fifth id is a timestamp's.
    :returns: the SQLite file of the catalog, whose name is :data:`CATALOG_NAME`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "catalog.db"
    rows = []
    for number in range(tables):
        name = f"t{number:05}"
        location = folder / "warehouse" / NAMESPACE / name
        (location / "metadata").mkdir(parents=True, exist_ok=True)
        file = location / "metadata" / f"{snapshots:05}-{_uuid(number)}.gz.metadata.json"
        metadata = table_metadata(number, location.as_uri(), columns, snapshots)
        if fields is not None:
            metadata["schemas"][0]["fields"] = fields
            metadata["last-column-id"] = highest_id(fields)
        file.write_bytes(gzip.compress(json.dumps(metadata, separators=(",", ":")).encode(), mtime=0))
        rows.append((CATALOG_NAME, NAMESPACE, name, file.as_uri(), None, "TABLE"))
    _write_catalog(database, rows)
    return database


def highest_id(fields: Fields) -> int:
    """The highest field id in a struct."""
    below = (f["type"] for f in fields if isinstance(f["type"], dict))
    return max(*(f["id"] for f in fields), 0, *(highest_id(t["fields"]) for t in below))


def table_metadata(number: int, location: str, columns: int, snapshots: int) -> dict[str, Any]:
    """Format version 2, one schema, partitioned by day and sorted, a snapshot every ten minutes."""
    last_id = _snapshot_id(number, snapshots)
    last_ms = _timestamp_ms(snapshots)
    return {
        "format-version": 2,
        "table-uuid": _uuid(number),
        "location": location,
        "last-sequence-number": snapshots,
        "last-updated-ms": last_ms,
        "last-column-id": columns,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [_column(i) for i in range(columns)]}],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [{"name": "at_day", "transform": "day", "source-id": 4, "field-id": 1000}],
            }
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 1,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {
                "order-id": 1,
                "fields": [
                    {"transform": "identity", "source-id": 4, "direction": "asc", "null-order": "nulls-first"}
                ],
            },
        ],
        "properties": {
            "owner": "bench",
            "write.parquet.compression-codec": "zstd",
            "write.metadata.compression-codec": "gzip",
            "write.distribution-mode": "range",
        },
        "current-snapshot-id": last_id,
        "refs": {"main": {"snapshot-id": last_id, "type": "branch"}},
        "snapshots": [_snapshot(number, i, location) for i in range(1, snapshots + 1)],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [
            {"timestamp-ms": _timestamp_ms(i), "snapshot-id": _snapshot_id(number, i)}
            for i in range(1, snapshots + 1)
        ],
        "metadata-log": [
            {"timestamp-ms": _timestamp_ms(i), "metadata-file": f"{location}/metadata/{i:05}-{_uuid(i)}.json"}
            for i in range(max(1, snapshots - 99), snapshots + 1)
        ],
    }


def _column(index: int) -> dict[str, Any]:
    column: dict[str, Any] = {
        "id": index + 1,
        "name": f"column_{index:03}",
        "required": index < 4,
        "type": _TYPES[index % len(_TYPES)],
    }
    return column | ({"doc": f"What column {index} holds"} if index % 3 == 0 else {})


def _snapshot(number: int, index: int, location: str) -> dict[str, Any]:
    out: dict[str, Any] = {
        "sequence-number": index,
        "snapshot-id": _snapshot_id(number, index),
        "timestamp-ms": _timestamp_ms(index),
        "summary": {
            "operation": "append",
            "spark.app.id": "application_1700000000000_0042",
            "added-data-files": "4",
            "added-records": "100000",
            "added-files-size": "4096000",
            "changed-partition-count": "1",
            "total-records": str(100_000 * index),
            "total-files-size": str(4_096_000 * index),
            "total-data-files": str(4 * index),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
            "engine-version": "4.1.4",
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.12.0",
        },
        "manifest-list": f"{location}/metadata/snap-{_snapshot_id(number, index)}-1-{_uuid(index)}.avro",
        "schema-id": 0,
    }
    return out | ({"parent-snapshot-id": _snapshot_id(number, index - 1)} if index > 1 else {})


def _snapshot_id(number: int, index: int) -> int:
    """Nineteen digits, as the Java library draws them."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{number}/{index}").int >> 65


def _timestamp_ms(index: int) -> int:
    return _BEGINNING_MS + index * 600_000


def _uuid(number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def _write_catalog(database: Path, rows: Iterable[tuple[str | None, ...]]) -> None:
    """The tables as Java's ``JdbcCatalog`` makes them in its schema V1."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,"
            " table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,"
            " metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
            " iceberg_type VARCHAR(5),"
            " PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
        connection.execute(
            "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,"
            " namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000),"
            " PRIMARY KEY (catalog_name, namespace, property_key))"
        )
        connection.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute(
            "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
            (CATALOG_NAME, NAMESPACE),
        )
    connection.close()
