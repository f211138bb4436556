"""Counts in a table's rows, of what its manifests do not show: nulls, and rows that are not deleted.

Iceberg keeps metrics of the first hundred leaves only (unless a property of the table says otherwise), of
none where they are switched off, never of what is in lists and maps; and some writers keep none at all.
Delete files of several data files do not say how many rows of each they delete.

There is one query for each snapshot.  For nulls, readers of Parquet pass over the row groups whose footers
say that there is none; for live rows, Spark reads the delete files, and no column but those that equality
deletes compare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from icemigrate.catalog.snapshot_manifests import LiveDataFile, TableManifests
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.delete_files import DeletedRows
from icemigrate.iceberg.metadata_parts import SnapshotEntry
from icemigrate.iceberg.schema import Schema
from icemigrate.spark_sql.expressions import null_sql
from icemigrate.spark_sql.type_sql import spark_loads

RunQuery: TypeAlias = Callable[[str], Sequence[tuple[Any, ...]]]
"""The rows that a query in Spark SQL gives."""
FilesOf: TypeAlias = Callable[["SnapshotEntry | None"], Sequence[LiveDataFile]]
"""The live data files of a snapshot; ``None`` for no snapshot."""


def count_nulls(
    ask: RunQuery, rows: str, manifests: TableManifests, fields: Collection[int]
) -> dict[int, int | None]:
    """By field, the number of rows with a null: of the branch with most of them, because branches share
    files.

    :param rows: the table's name in Spark SQL.

    ``None`` for fields that a head's own schema does not have; and for all where Spark cannot load the table,
    or a head, which is read under the schema of its snapshot.

    :raises EngineError: the rows cannot be read.
    """
    counted = dict.fromkeys(fields, 0)
    if not counted:
        return {}
    if not spark_loads(manifests.schema):
        return dict.fromkeys(fields)
    for snapshot in manifests.heads():
        schema = manifests.schema_of(snapshot.schema_id) or Schema(())
        # A field without an answer in one branch needs no answer of the others.
        there = [i for i in counted if schema.by_id(i) is not None] if spark_loads(schema) else []
        found = _counted(ask, rows, snapshot.id, [null_sql(schema, i) for i in there])
        counted = {i: max(counted[i], here) for i, here in zip(there, found, strict=True)}
    return {i: counted.get(i) for i in fields}


def _counted(ask: RunQuery, rows: str, snapshot_id: int, conditions: Sequence[str]) -> Sequence[int]:
    if not conditions:
        return ()
    ((*found,),) = ask(
        f"SELECT {', '.join(f'count_if({c})' for c in conditions)}"
        f" FROM {rows} VERSION AS OF {snapshot_id}"
        f" WHERE {' OR '.join(f'({c})' for c in conditions)}"
    )
    return found


def files_with_live_rows(ask: RunQuery, rows: str, manifests: TableManifests) -> FilesOf:
    """A function that lists the files of a snapshot, with the exact number of deleted rows where possible.

    :param rows: the table's name in Spark SQL.
    """

    def files_of(snapshot: SnapshotEntry | None) -> Sequence[LiveDataFile]:
        files = manifests.files(snapshot)
        if snapshot is None or not any(file.deleted.unsure for file in files):
            return files
        readable = (manifests.schema, manifests.schema_of(snapshot.schema_id))
        if any(schema is None or not spark_loads(schema) for schema in readable):
            return files
        try:
            found = ask(f"SELECT _file, count(*) FROM {rows} VERSION AS OF {snapshot.id} GROUP BY _file")
        except EngineError:
            return files  # the counts stay uncertain, and are marked as such
        live: dict[str, int] = dict(found)
        return [replace(file, deleted=DeletedRows(file.rows - live.get(file.path, 0))) for file in files]

    return files_of
