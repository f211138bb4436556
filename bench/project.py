"""Makes a project over a lake: every table declared and applied, and further versions recorded or pending."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
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
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord

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


_PENDING_NAME = "_touch_all.yaml"
_UNCHANGED = "{write.distribution-mode: range}"
"""What the file of a recorded version declares: what each table has already."""

Recorded = Callable[[Sequence[Table]], tuple[Sequence[Table], Sequence[UndoRecord]]]
"""The recorded tables and the undo records of a history, from the tables of the lake as declared."""


def _as_declared(tables: Sequence[Table]) -> tuple[Sequence[Table], Sequence[UndoRecord]]:
    return tables, ()


def make(
    folder: Path,
    tables: int,
    fields: lake.Fields | None = None,
    pending: str | None = _PENDING,
    recorded: Recorded = _as_declared,
    snapshots: int = 200,
    are_creations_recorded: bool = False,
) -> Path:
    """Make a lake with a project over it.

    :param fields: the columns of each table in Iceberg's form.
    :param pending: the migration that waits; ``None`` for none.
    :param recorded: what the history records; by default the tables as they are, without undo records.
    :param are_creations_recorded: whether the files that create the tables have undo records too, as after
        `apply`.
    :returns: the SQLite file of the catalog.
    """
    database = lake.make(folder, tables, snapshots=snapshots, fields=fields)
    known, undo = recorded([_declared(table) for table in _read(database)])
    migrations = folder / "migrations"
    migrations.mkdir()
    (folder / "icemigrate.yaml").write_text(_PROJECT_FILE, encoding="utf-8")
    last = len(list(_write_files(migrations, known)))
    for record in undo:
        names = "".join(
            f"  - {{name: {table.declared}, properties: {_UNCHANGED}}}\n" for table in record.tables
        )
        (migrations / f"{record.version}_step.yaml").write_text(f"tables:\n{names}", encoding="utf-8")
    last += len(undo)
    if pending is not None:
        (migrations / f"{last + 1:04}{_PENDING_NAME}").write_text(pending, encoding="utf-8")
    created = _created(known) if are_creations_recorded else ()
    _write_history(folder, database, known, [*created, *undo])
    return database


def make_undeclared(folder: Path, tables: int) -> None:
    """Make a lake with a project over it that declares none of its tables."""
    lake.make(folder, tables, snapshots=20)
    (folder / "migrations").mkdir()
    (folder / "icemigrate.yaml").write_text(_PROJECT_FILE, encoding="utf-8")


def use_rest_server(folder: Path, address: str) -> None:
    """Let a project read its lake from a REST catalog, see :mod:`bench.rest_server`."""
    (folder / "icemigrate.yaml").write_text(
        f"project: {PROJECT}\nenvironments:\n  local:\n    catalog:\n"
        f"      {{name: {lake.CATALOG_NAME}, type: rest, uri: '{address}'}}\n",
        encoding="utf-8",
    )


def add_other_namespaces(database: Path, namespaces: int) -> None:
    """Add namespaces with a table each to a catalog; the project does not name them."""
    with sqlite3.connect(database) as connection:
        (file,) = connection.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
        rows = ((lake.CATALOG_NAME, f"other{n:04}", "t", file, None, "TABLE") for n in range(namespaces))
        connection.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()


def stepwise(versions: int, *, baseline: bool = False, drifted: bool = False) -> Recorded:
    """So many versions, each of which changed its own share of the tables.

    :param baseline: whether they were recorded without running.
    :param drifted: whether another client removed a property of each table.
    """

    def recorded(tables: Sequence[Table]) -> tuple[Sequence[Table], Sequence[UndoRecord]]:
        if drifted:
            tables = [replace(t, properties={**t.properties, "bench.removed": "yes"}) for t in tables]
        first = -(-len(tables) // _PER_FILE) + 1
        each = max(1, len(tables) // versions)
        shares = [tables[(each * n) % len(tables) :][:each] for n in range(versions)]
        return tables, [_record(f"{first + n:04}", share, baseline) for n, share in enumerate(shares)]

    return recorded


def _created(tables: Sequence[Table]) -> Iterator[UndoRecord]:
    """The undo records of the files that create the tables."""
    for number, at in enumerate(range(0, len(tables), _PER_FILE), start=1):
        created = (
            TableUndo(
                declared_before=None,
                declared_after=table.name,
                before=None,
                after=table,
                actual_before=None,
                actual_after=table,
            )
            for table in tables[at : at + _PER_FILE]
        )
        yield UndoRecord(f"{number:04}", tuple(created))


def _record(version: str, tables: Sequence[Table], baseline: bool) -> UndoRecord:
    undone = (
        TableUndo(
            declared_before=table.name,
            declared_after=table.name,
            before=table,
            after=table,
            actual_before=table,
            actual_after=table,
        )
        for table in tables
    )
    return UndoRecord(version, tuple(undone), baseline)


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


def _write_history(folder: Path, database: Path, tables: Sequence[Table], undo: Sequence[UndoRecord]) -> None:
    files = load_migrations(folder / "migrations", {}).migrations
    files = tuple(f for f in files if not f.path.endswith(_PENDING_NAME))
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    history = History(
        PROJECT,
        tuple(AppliedVersion(f.version, f.checksum, "", now, fingerprint=f.fingerprint) for f in files),
        DeclaredState({table.name: table for table in tables}, frozenset({(lake.NAMESPACE,)})),
    ).with_undo_records({record.version: record for record in undo})
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
