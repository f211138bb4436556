"""A project on the embedded catalog, applied without Java.

Real files, a real SQLite catalog with real metadata files; only the engine keeps its tables in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from icemigrate.commands.plan import plan
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.views import View
from icemigrate.project import open_project
from tests.support.recording_engine import RecordingEngine

HISTORY = TableName(("icemigrate",), "history")
_TABLES = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
  PRIMARY KEY (catalog_name, table_namespace, table_name))
"""
_NAMESPACES = """
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key))
"""


@dataclass
class Embedded:
    """A project's folder; its environment is the default one, ``local``."""

    folder: Path
    engine: RecordingEngine = field(default_factory=lambda: RecordingEngine(catalog_name="local"))

    @property
    def database(self) -> Path:
        """The catalog's SQLite file."""
        return self.folder / ".icemigrate" / "catalog.db"

    def write(self, name: str, text: str) -> Path:
        """Write a migration file."""
        path = self.folder / "migrations" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def apply(self) -> None:
        """Apply what is pending."""
        project = open_project(self.folder)
        todo = plan(project).plan
        self.engine.expect(todo)
        run_plan(todo, self.engine, Journal(HistoryWriter(self.engine, HISTORY, project.name)))
        self.save()

    def save(self) -> None:
        """Write the engine's tables and views where the catalog's reader finds them."""
        self.engine.tables = {name: _complete(t, self.folder) for name, t in self.engine.tables.items()}
        self.database.parent.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute(_TABLES)
            connection.execute(_NAMESPACES)
            connection.execute("DELETE FROM iceberg_tables")
            for name, table in self.engine.tables.items():
                file = self.metadata_file(name)
                file.write_text(json.dumps(_metadata(table)), encoding="utf-8")
                row = ("local", ".".join(name.namespace), name.name, str(file), None, "TABLE")
                connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
            for name, view in self.engine.views.items():
                file = self.metadata_file(name)
                file.write_text(json.dumps(_view_metadata(view)), encoding="utf-8")
                row = ("local", ".".join(name.namespace), name.name, str(file), None, "VIEW")
                connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)

    def metadata_file(self, name: TableName) -> Path:
        """Where a table's metadata is."""
        return self.database.parent / f"{name}.metadata.json"

    def edit(self, name: str, properties: Mapping[str, str]) -> None:
        """Set properties by hand, as another tool would."""
        key = TableName.parse(name)
        table = self.engine.tables[key]
        self.engine.tables[key] = replace(table, properties={**table.properties, **properties})
        self.save()

    def drop(self, name: str) -> None:
        """Drop a table by hand."""
        del self.engine.tables[TableName.parse(name)]
        self.save()


def _complete(table: Table, folder: Path) -> Table:
    """What a catalog gives a new table."""
    location = table.location or str(folder / ".icemigrate" / "warehouse" / str(table.name))
    return replace(table, uuid=table.uuid or str(uuid4()), location=location)


def _metadata(table: Table) -> dict[str, object]:
    """A metadata file of the table, without snapshots."""
    assert table.location is not None
    return {
        "format-version": table.format_version,
        "table-uuid": table.uuid,
        "location": table.location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": table.last_column_id,
        "schemas": [schema_to_json(table.schema)],
        "current-schema-id": table.schema.id,
        "partition-specs": [spec_to_json(spec) for spec in (table.spec, *table.older_specs)],
        "default-spec-id": table.spec.id,
        "last-partition-id": table.last_partition_id,
        "sort-orders": [order_to_json(order) for order in (table.sort_order, *table.older_orders)],
        "default-sort-order-id": table.sort_order.id,
        "properties": dict(table.properties),
        "snapshots": [],
        "refs": {},
        "next-row-id": 0,
    }


def _view_metadata(view: View) -> dict[str, object]:
    """A metadata file of the view, with one version."""
    version = {
        "version-id": 1,
        "timestamp-ms": view.created_ms,
        "default-namespace": [],
        "representations": [{"type": "sql", "dialect": q.dialect, "sql": q.sql} for q in view.queries],
    }
    return {"current-version-id": 1, "versions": [version], "properties": dict(view.properties)}


def applied(folder: Path, first: str) -> Embedded:
    """A project `market` whose first migration is applied.

    :param first: its file's text.
    """
    (folder / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(folder)
    made.write("0001_make.yaml", first)
    made.apply()
    return made
