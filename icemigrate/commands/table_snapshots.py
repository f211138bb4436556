"""``table snapshots``: the snapshots of a table; read-only."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.table_results import SnapshotsResult
from icemigrate.table_data.snapshot_entries import list_snapshots
from icemigrate.table_data.table_session import open_tables


def table_snapshots(project: Project, environment: str | None, table: str) -> SnapshotsResult:
    """The snapshots of a table, the oldest first.

    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog cannot be read.
    """
    with open_tables(project, environment) as tables:
        found = tables.load(table)
        return SnapshotsResult(str(found.declared), str(found.name), list_snapshots(found))
