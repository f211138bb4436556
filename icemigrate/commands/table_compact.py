"""``table compact``: fewer and larger data files, written by Spark."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.project import Project
from icemigrate.results.snapshot_results import CompactResult
from icemigrate.table_data.compaction import compact, plan_compaction
from icemigrate.table_data.table_session import open_tables


def plan_table_compact(
    project: Project, environment: str | None, table: str, *, where: str | None = None
) -> CompactResult:
    """What :func:`table_compact` would run; changes nothing.

    :raises UsageError: there is no such environment or table, or the condition is not one expression.
    :raises CatalogError: the catalog or a manifest cannot be read.
    """
    with open_tables(project, environment) as tables:
        return plan_compaction(tables, table, where=where)


def table_compact(
    project: Project,
    environment: str | None,
    table: str,
    *,
    where: str | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> CompactResult:
    """Compact the data files of a table.

    :param where: a condition of Spark SQL.
    :param on_start: called right before Spark is started.
    :raises UsageError: there is no such environment or table, or the condition is not one expression.
    :raises EngineError: Spark failed, or does not understand the condition.
    """
    with open_tables(project, environment) as tables:
        return compact(tables, table, where=where, on_start=on_start)
