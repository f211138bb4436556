"""Branches on which rows are written: made, published and taken away."""

from __future__ import annotations

from icemigrate.model.names import TableName, format_path
from icemigrate.model.row_modes import leaves_files
from icemigrate.model.table import Table
from icemigrate.model.types import List, Map
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, quote, table_sql


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


def fill_branch_sql(catalog: str, table: Table, branch: str, field_id: int) -> str:
    """Give the rows of a branch a value, which stands as ``…``, of a field that the table has.

    What lies in a list or a map cannot be assigned, and where an ``UPDATE`` would leave the files as they
    are, nothing below a column can be selected: then what holds it is given as a whole.
    """
    rows, line = branch_sql(catalog, table.name, branch), table.schema.line_to(field_id)
    if leaves_files(table.properties):
        column = quote(line[0].name)
        return f"INSERT OVERWRITE {rows} BY NAME SELECT * EXCEPT ({column}), … AS {column} FROM {rows}"
    depth = next((n for n, f in enumerate(line) if isinstance(f.type, (List, Map))), len(line) - 1)
    return f"UPDATE {rows} SET {path_sql(tuple(f.name for f in line[: depth + 1]))} = …"


def _forward_sql(catalog: str, table: TableName, branch: str, to: str) -> str:
    name = string_sql(format_path((*table.namespace, table.name)))
    call = f"CALL {path_sql((catalog,))}.system.fast_forward"
    return f"{call}({name}, {string_sql(branch)}, {string_sql(to)})"
