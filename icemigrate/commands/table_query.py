"""``table query``: the rows of a table, now or earlier; read-only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from icemigrate.project import Project
from icemigrate.system.activity import activity
from icemigrate.table_data.query_tables import OpenQuery, open_table_query
from icemigrate.table_data.table_points import CURRENT, ReadPoint
from icemigrate.table_data.table_session import TableSession, open_tables

_Result = TypeVar("_Result")


def table_query(
    project: Project,
    environment: str | None,
    table: str,
    use: Callable[[TableSession, OpenQuery], _Result],
    *,
    where: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    at: ReadPoint = CURRENT,
) -> _Result:
    """Query one table.

    :param use: reads the rows, or explains the query; its result is returned.
    :param where: a condition in DuckDB's SQL.
    :param columns: names of columns, or paths of nested fields; all columns without one.
    :raises UsageError: there is no such environment, table, column, snapshot, tag or branch, or the condition
        is wrong.
    :raises IcemigrateError: the table cannot be read.
    """
    with (
        open_tables(project, environment) as tables,
        activity(f"Reading {table}"),
        open_table_query(tables, table, where, columns, limit, at) as query,
    ):
        return use(tables, query)
