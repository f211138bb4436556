"""Small lakes on a SQLite catalog for tests: rows of the catalog, and the sample files behind them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from icemigrate.catalog import CatalogSettings
from icemigrate.iceberg.names import TableName
from tests.support.metadata_samples import FILES, VIEW

CATALOG = "lake"

TABLES: Mapping[TableName, str] = {
    TableName(("db",), "events"): "spark-v1",
    TableName(("db",), "trades"): "spark-v2",
    TableName(("db",), "quotes"): "spark-v3",
    TableName(("db", "deep"), "flexible"): "spark-v3-variant",
    TableName(("db",), "odd name"): "pyiceberg-v1-rows",
    TableName(("other",), "trades"): "pyiceberg-v2",
}
"""Tables of the lake, and the sample that each one's metadata is."""

VIEW_NAME = TableName(("db",), "seen")

_V1 = ", iceberg_type VARCHAR(5)"
_TABLES = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,"
    " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
    " previous_metadata_location VARCHAR(1000){}, PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
_NAMESPACES = (
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255)"
    " NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000),"
    " PRIMARY KEY (catalog_name, namespace, property_key))"
)


@dataclass(frozen=True, slots=True)
class Lake:
    """A catalog's file and where each table's metadata lies."""

    database: Path
    files: Mapping[TableName, Path] = field(default_factory=dict)

    def settings(self, type_: str = "sqlite", name: str = CATALOG) -> CatalogSettings:
        """How to open it."""
        warehouse = (self.database.parent / "warehouse").as_uri()
        return CatalogSettings(name, type_, f"sqlite:///{self.database}", warehouse)

    def execute(self, *statements: str) -> None:
        """Change the catalog by hand."""
        connection = sqlite3.connect(self.database)
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()


def make(folder: Path, tables: Mapping[TableName, str] = TABLES, *, typed: bool = True) -> Lake:
    """A lake of sample tables and, where rows are typed (Java's schema V1), one view."""
    files = {}
    for number, (name, sample) in enumerate(tables.items()):
        files[name] = folder / f"{number}-{FILES[sample].name}"
        shutil.copy(FILES[sample], files[name])
    # Each writer has its own way of naming a file.
    spellings = ("file:{}", "file://{}", "{}")
    rows = [
        (CATALOG, ".".join(name.namespace), name.name, spellings[number % 3].format(file), None, "TABLE")
        for number, (name, file) in enumerate(files.items())
    ]
    if typed:
        rows.append((CATALOG, "db", VIEW_NAME.name, f"file:{FILES[VIEW]}", None, "VIEW"))
    lake = Lake(folder / "catalog.db", files)
    lake.execute(_TABLES.format(_V1 if typed else ""), _NAMESPACES)
    _insert(lake.database, "iceberg_tables", (row if typed else row[:-1] for row in rows))
    spaces = sorted({".".join(name.namespace) for name in tables} | {"empty"})
    _insert(
        lake.database,
        "iceberg_namespace_properties",
        [(CATALOG, space, key, "x") for space in spaces for key in ("exists", "owner")],
    )
    return lake


def _insert(database: Path, table: str, rows: Iterable[tuple[str | None, ...]]) -> None:
    connection = sqlite3.connect(database)
    with connection:
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
