"""Nulls counted in a table's rows, for fields of which its manifests do not tell.

Iceberg keeps metrics of the first hundred leaves only (unless a property of the table says otherwise), of
none where they are switched off, never of what is in lists and maps; and some writers keep none at all.
All fields are counted by one query for each head of a branch; readers of Parquet pass over the row groups
whose footers say that there is no null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from icemigrate.engine.manifests import Look
from icemigrate.model.schema import Schema
from icemigrate.sql.nulls import null_sql
from icemigrate.sql.types import spark_loads

Query: TypeAlias = Callable[[str], Sequence[tuple[Any, ...]]]
"""The rows that a query in Spark SQL gives."""


def count_nulls(ask: Query, rows: str, look: Look, fields: Collection[int]) -> dict[int, int | None]:
    """By field, in how many rows it is null: of the branch where these are most, since branches share files.

    :param rows: the table's name in Spark SQL.

    Not counted, ``None``, is what a head's own schema does not hold; and all where Spark cannot load the
    table, as it is or as it was at a head, which is read under the schema of its snapshot.

    :raises EngineError: the rows cannot be read.
    """
    counted = dict.fromkeys(fields, 0)
    if not counted:
        return {}
    if not spark_loads(look.schema(look.table.schema())):
        return dict.fromkeys(fields)
    for snapshot in {head.snapshotId(): head for head in look.heads()}.values():
        java = look.table.schemas().get(snapshot.schemaId())
        schema = Schema(()) if java is None else look.schema(java)
        # A field that one branch says nothing of needs no answer of the others.
        there = [i for i in counted if schema.by_id(i) is not None] if spark_loads(schema) else []
        found = _counted(ask, rows, snapshot.snapshotId(), [null_sql(schema, i) for i in there])
        counted = {i: max(counted[i], here) for i, here in zip(there, found, strict=True)}
    return {i: counted.get(i) for i in fields}


def _counted(ask: Query, rows: str, snapshot_id: int, conditions: Sequence[str]) -> Sequence[int]:
    if not conditions:
        return ()
    ((*found,),) = ask(
        f"SELECT {', '.join(f'count_if({c})' for c in conditions)}"
        f" FROM {rows} VERSION AS OF {snapshot_id}"
        f" WHERE {' OR '.join(f'({c})' for c in conditions)}"
    )
    return found
