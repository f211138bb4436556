"""``table snapshots``: the snapshots of a table; read-only."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.table_results import SnapshotsResult
from icemigrate.table_data.snapshot_list import list_snapshots
from icemigrate.table_data.table_session import open_tables


def table_snapshots(
    project: Project,
    environment: str | None,
    table: str,
    *,
    limit: int | None = None,
    is_graph: bool = False,
) -> SnapshotsResult:
    """The snapshots of a table, the oldest first.

    :param limit: number of the newest ones that the result has; ``None`` for all.
    :param is_graph: whether text draws a graph.
    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog cannot be read.
    """
    with open_tables(project, environment) as tables:
        found = tables.load(table)
        entries = list_snapshots(found)
        shown = entries if limit is None else entries[-limit:]
        return SnapshotsResult(str(found.declared), str(found.name), shown, len(entries), is_graph)
