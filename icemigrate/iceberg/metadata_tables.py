"""Names that read a table's metadata instead of another table: `db.trades.snapshots`.

A table can have such a name only while no table has the name of its namespace: next to a table `db.trades`,
creating `db.trades.snapshots` fails, since Spark finds it already.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from icemigrate.iceberg.names import TableName

_METADATA_TABLES = frozenset(
    {
        "all_data_files",
        "all_delete_files",
        "all_entries",
        "all_files",
        "all_manifests",
        "data_files",
        "delete_files",
        "entries",
        "files",
        "history",
        "manifests",
        "metadata_log_entries",
        "partitions",
        "position_deletes",
        "refs",
        "snapshots",
    }
)
"""``MetadataTableType`` of Iceberg 1.12, in lower case: it is read without regard to case."""
_SELECTOR = re.compile(r"changes|rewrite|(snapshot_id|at_timestamp)_[0-9]+|(branch|tag)_.+", re.DOTALL)
"""What Iceberg's ``SparkCatalog`` takes for a selector of rows."""


def is_metadata_name(name: str) -> bool:
    """Whether Spark takes the last part of a name for metadata of the table before it."""
    return name.lower() in _METADATA_TABLES or _SELECTOR.fullmatch(name.lower()) is not None


def table_above(name: TableName) -> TableName | None:
    """The table whose metadata a name reads; ``None`` where the name reads none."""
    if len(name.namespace) < 2 or not is_metadata_name(name.name):
        return None
    return TableName(name.namespace[:-1], name.namespace[-1])


def metadata_names(names: Collection[TableName]) -> dict[TableName, TableName]:
    """The names that read metadata of another one of the names, by that other name; the first for each."""
    found: dict[TableName, TableName] = {}
    for name in names:
        outer = table_above(name)
        if outer is not None and outer in names:
            found[outer] = min(name, found.get(outer, name))
    return found
