"""Rows of a table on a SQLite catalog, written by PyIceberg, another client than the one that is tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.table_project import TableProject

Rows = Sequence[Mapping[str, Any]]


def foreign_table(project: TableProject, name: str = "sales.orders") -> Any:
    """PyIceberg's table of a project's catalog."""
    from pyiceberg.catalog.sql import SqlCatalog

    with project.tables() as tables:
        settings = tables.environment.catalog.settings
        uri = str(settings.uri)
    uri = uri if "://" in uri else f"sqlite:///{uri}"
    return SqlCatalog(settings.name, uri=uri, warehouse=str(settings.warehouse)).load_table(name)


def append_rows(project: TableProject, rows: Rows, name: str = "sales.orders") -> int:
    """Append rows, of which columns may be missing; returns the id of the snapshot."""
    import pyarrow as pa

    table = foreign_table(project, name)
    schema = table.schema().as_arrow()
    filled = [{column: row.get(column) for column in schema.names} for row in rows]
    table.append(pa.Table.from_pylist(filled, schema=schema))
    return int(table.refresh().current_snapshot().snapshot_id)


def main_id(project: TableProject, name: str = "sales.orders") -> int | None:
    """The id of main's snapshot."""
    with project.tables() as tables:
        found = tables.load(name).metadata.get("current-snapshot-id")
    return None if found is None else int(found)
