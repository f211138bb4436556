"""Rows of a table of a :class:`~tests.support.table_project.TableProject`, in every type of Iceberg.

PyIceberg writes neither format version 3 nor all types, so the rows are written by icemigrate.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.metadata_engine.history_rows import write_rows
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from icemigrate.metadata_engine.table_store import TableCommit
from tests.support.table_project import TableProject


def append_stored(project: TableProject, name: str, rows: Sequence[Mapping[str, Any]], tag: str = "") -> int:
    """Append rows in one snapshot of the main branch; its id.

    :param tag: the name of a tag that the snapshot gets, or nothing.
    """
    with project.tables() as tables:
        table = tables.load(name)
        metadata = table.metadata
        file = write_rows(metadata, tables.store.files, rows)
        parent = metadata.get("current-snapshot-id")
        made = append_snapshot(
            metadata,
            tables.store.files,
            {},
            data=(file,),
            parent_id=None if parent == -1 else parent,
            now_ms=time.time_ns() // 1_000_000,
        )
        number: int = made.json["snapshot-id"]
        refs = [("main", "branch"), *([(tag, "tag")] if tag else [])]
        updates = [
            {"action": "set-snapshot-ref", "ref-name": ref, "type": kind, "snapshot-id": number}
            for ref, kind in refs
        ]
        commit = TableCommit(
            table.name, table.stored, ({"action": "add-snapshot", "snapshot": made.json}, *updates)
        )
        tables.store.commit([commit])
        return number
