"""``table describe``: what a table is and contains; read-only."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.describe_results import DescribeResult
from icemigrate.table_data.table_description import describe_table
from icemigrate.table_data.table_session import open_tables


def table_describe(
    project: Project, environment: str | None, table: str, *, is_plot: bool = False
) -> DescribeResult:
    """The schema, the layout, the sizes and the health of a table.

    :param is_plot: whether text draws the growth.
    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog or a manifest cannot be read.
    """
    with open_tables(project, environment) as tables:
        return describe_table(tables, table, is_plot=is_plot)
