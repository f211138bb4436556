"""Branches on which rows are written: made, published and taken away."""

from __future__ import annotations

from icemigrate.model.names import TableName, format_path
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, table_sql


def branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """The branch, as a statement that reads or writes rows names it."""
    return f"{table_sql(catalog, table)}.{path_sql((f'branch_{branch}',))}"


def create_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Make the branch from what is current, whatever it was before."""
    return f"ALTER TABLE {table_sql(catalog, table)} CREATE OR REPLACE BRANCH {path_sql((branch,))}"


def drop_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Take the branch away, if it is there."""
    return f"ALTER TABLE {table_sql(catalog, table)} DROP BRANCH IF EXISTS {path_sql((branch,))}"


def append_nothing_sql(rows: str) -> str:
    """Make a snapshot under the schema of now, without a row.

    :param rows: the table or its branch, as SQL names it.
    """
    return f"INSERT INTO {rows} SELECT * FROM {rows} WHERE false"


def publish_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Make main what the branch is; refused where main is not among its ancestors."""
    return _forward_sql(catalog, table, "main", branch)


def move_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Make the branch what main is; refused where it is not among main's ancestors."""
    return _forward_sql(catalog, table, branch, "main")


def _forward_sql(catalog: str, table: TableName, branch: str, to: str) -> str:
    name = string_sql(format_path((*table.namespace, table.name)))
    call = f"CALL {path_sql((catalog,))}.system.fast_forward"
    return f"{call}({name}, {string_sql(branch)}, {string_sql(to)})"
