"""``table history``: the table history of one table; read-only."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.timeline_results import TimelineResult
from icemigrate.table_data.table_session import open_tables
from icemigrate.table_data.table_timeline import table_timeline


def table_history(
    project: Project, environment: str | None, table: str, *, limit: int | None = None
) -> TimelineResult:
    """Every schema, spec, snapshot, branch and tag of a table's life, the oldest first.

    :param limit: number of the newest entries that the result has; ``None`` for all.
    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog cannot be read.
    """
    with open_tables(project, environment) as tables:
        return table_timeline(tables, table, limit=limit)
