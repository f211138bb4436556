"""The live rows of data files, counted where manifests do not tell how many of them are deleted.

One query for a snapshot: Spark reads the delete files, and no column but those that equality deletes compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from icemigrate.engine.manifests import File, Look
from icemigrate.engine.nulls import Query
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.model.deletes import Deleted
from icemigrate.sql.types import spark_loads

FilesOf: TypeAlias = Callable[[Any], Sequence[File]]
"""The live data files of a snapshot; ``None`` for no snapshot."""


def files_with_live_rows(ask: Query, rows: str, look: Look) -> FilesOf:
    """Lists the files of a snapshot, with the exact number of deleted rows wherever that can be found out.

    :param rows: the table's name in Spark SQL.
    """

    def files_of(snapshot: Any | None) -> Sequence[File]:
        files = look.files(snapshot)
        if snapshot is None or not any(file.deleted.unsure for file in files):
            return files
        schema = look.table.schemas().get(snapshot.schemaId())
        readable = (look.table.schema(), schema)
        if any(java is None or not spark_loads(look.schema(java)) for java in readable):
            return files
        try:
            found = ask(
                f"SELECT _file, count(*) FROM {rows} VERSION AS OF {snapshot.snapshotId()} GROUP BY _file"
            )
        except EngineError:
            return files  # the counts stay uncertain, and say so
        live: dict[str, int] = dict(found)
        return [replace(file, deleted=Deleted(file.rows - live.get(file.path, 0))) for file in files]

    return files_of
