"""``table sql``: a SELECT on several tables, each now or earlier; read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from icemigrate.project import Project
from icemigrate.system.activity import activity
from icemigrate.table_data.query_tables import OpenQuery, open_sql_query
from icemigrate.table_data.table_session import TableSession, open_tables

_Result = TypeVar("_Result")


def table_sql(
    project: Project, environment: str | None, text: str, use: Callable[[TableSession, OpenQuery], _Result]
) -> _Result:
    """Run a SELECT.

    :param use: reads the rows, or explains the query; its result is returned.
    :raises UsageError: there is no such environment or table, or the text is no SELECT.
    :raises IcemigrateError: a table cannot be read.
    """
    with (
        open_tables(project, environment) as tables,
        activity("Reading tables"),
        open_sql_query(tables, text) as query,
    ):
        return use(tables, query)
