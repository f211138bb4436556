"""Branches on which rows are written: made, published and taken away."""

from __future__ import annotations

from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import has_merge_on_read_updates
from icemigrate.iceberg.types import List, Map
from icemigrate.spark_sql.identifiers import path_sql, quote, table_sql
from icemigrate.spark_sql.literals import string_sql


def branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """The branch, as a statement that reads or writes rows names it."""
    return f"{table_sql(catalog, table)}.{path_sql((f'branch_{branch}',))}"


def create_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Create the branch at the current snapshot, or move it there."""
    return f"ALTER TABLE {table_sql(catalog, table)} CREATE OR REPLACE BRANCH {path_sql((branch,))}"


def drop_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Drop the branch, if it exists."""
    return f"ALTER TABLE {table_sql(catalog, table)} DROP BRANCH IF EXISTS {path_sql((branch,))}"


def append_nothing_sql(rows: str) -> str:
    """Make a snapshot under the schema of now, without a row.

    :param rows: the table or its branch, as SQL names it.
    """
    return f"INSERT INTO {rows} SELECT * FROM {rows} WHERE false"


def publish_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Fast-forward main to the branch; refused where main is not among its ancestors."""
    return _forward_sql(catalog, table, "main", branch)


def move_branch_sql(catalog: str, table: TableName, branch: str) -> str:
    """Fast-forward the branch to main; refused where it is not among main's ancestors."""
    return _forward_sql(catalog, table, branch, "main")


def fill_branch_sql(catalog: str, table: Table, branch: str, field_id: int) -> str:
    """Give the rows of a branch a value (``…``) of an existing field.

    A field in a list or a map cannot be assigned, and where an ``UPDATE`` would not rewrite the files, no
    nested field can be selected: then the whole parent is assigned.
    """
    rows, line = branch_sql(catalog, table.name, branch), table.schema.line_to(field_id)
    if has_merge_on_read_updates(table.properties):
        column = quote(line[0].name)
        return f"INSERT OVERWRITE {rows} BY NAME SELECT * EXCEPT ({column}), … AS {column} FROM {rows}"
    depth = next((n for n, f in enumerate(line) if isinstance(f.type, (List, Map))), len(line) - 1)
    return f"UPDATE {rows} SET {path_sql(tuple(f.name for f in line[: depth + 1]))} = …"


def _forward_sql(catalog: str, table: TableName, branch: str, to: str) -> str:
    name = string_sql(format_path((*table.namespace, table.name)))
    call = f"CALL {path_sql((catalog,))}.system.fast_forward"
    return f"{call}({name}, {string_sql(branch)}, {string_sql(to)})"
