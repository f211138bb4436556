"""Makes a project over a lake: every table declared and applied, and one migration pending on all."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from bench import lake
from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.files.migration_folder import load_migrations
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.frozen import replace
from icemigrate.history.head_snapshot import head_summary
from icemigrate.history.history_properties import AppliedVersion, History, encode_history
from icemigrate.history.history_record import SCHEMA
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.iceberg.table import Table

PROJECT = "bench"
_PER_FILE = 50
_PROJECT_FILE = f"""\
project: {PROJECT}
environments:
  local: {{catalog: {{name: {lake.CATALOG_NAME}, type: sqlite, uri: catalog.db, warehouse: warehouse}}}}
"""
_PENDING = """\
description: A column and a property for every table
tables:
  - match: "bench.*"
    columns: [{name: added, type: string}]
    properties: {write.target-file-size-bytes: 268435456}
"""


def make(folder: Path, tables: int, fields: lake.Fields | None = None, pending: str = _PENDING) -> Path:
    """Make a lake with a project over it.

    :param fields: the columns of each table in Iceberg's form.
    :param pending: the migration that waits.
    :returns: the SQLite file of the catalog.
    """
    database = lake.make(folder, tables, fields=fields)
    declared = [_declared(table) for table in _read(database)]
    migrations = folder / "migrations"
    migrations.mkdir()
    (folder / "icemigrate.yaml").write_text(_PROJECT_FILE, encoding="utf-8")
    versions = list(_write_files(migrations, declared))
    (migrations / f"{versions[-1] + 1:04}_touch_all.yaml").write_text(pending, encoding="utf-8")
    _write_history(folder, database, declared)
    return database


def _read(database: Path) -> list[Table]:
    catalog = open_catalog(CatalogSettings(lake.CATALOG_NAME, "sqlite", str(database)))
    found = catalog.load(catalog.tables())
    catalog.close()
    return [table for table in found.values() if table is not None]


def _declared(table: Table) -> Table:
    """What a file would have said of the table: without what engines add by themselves."""
    properties = {key: value for key, value in table.properties.items() if key != "owner"}
    return replace(table, properties=properties, snapshot=None, refs={}, older_orders=(), location=None)


def _write_files(folder: Path, tables: Sequence[Table]) -> Iterator[int]:
    for number, at in enumerate(range(0, len(tables), _PER_FILE), start=1):
        text = format_migration_file([creation_entry(table) for table in tables[at : at + _PER_FILE]])
        (folder / f"{number:04}_tables.yaml").write_text(text, encoding="utf-8")
        yield number


def _write_history(folder: Path, database: Path, tables: Sequence[Table]) -> None:
    files = load_migrations(folder / "migrations", {}).migrations[:-1]
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    history = History(
        PROJECT,
        tuple(AppliedVersion(f.version, f.checksum, "", now, fingerprint=f.fingerprint) for f in files),
        DeclaredState({table.name: table for table in tables}, frozenset({(lake.NAMESPACE,)})),
    )
    location = (folder / "warehouse" / "icemigrate" / "history").as_uri()
    metadata = lake.table_metadata(10_000_000, location, 1, 1) | {
        "schemas": [schema_to_json(SCHEMA)],
        "last-column-id": max(f.id for _, f in SCHEMA.walk()),
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": encode_history(history),
    }
    metadata["snapshots"][0]["summary"] |= head_summary("applied", None)
    file = folder / "history.gz.metadata.json"
    file.write_bytes(gzip.compress(json.dumps(metadata).encode(), mtime=0))
    row = (lake.CATALOG_NAME, "icemigrate", "history", file.as_uri(), None, "TABLE")
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.close()
