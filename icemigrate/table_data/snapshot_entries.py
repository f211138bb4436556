"""The snapshots of a table, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from icemigrate.results.table_results import SnapshotEntry
from icemigrate.table_data.table_session import CurrentTable


def list_snapshots(table: CurrentTable) -> tuple[SnapshotEntry, ...]:
    """The snapshots that metadata has, the oldest first.

    Specification, `Snapshots <https://iceberg.apache.org/spec/#snapshots>`_.
    """
    metadata = table.metadata
    refs = metadata["refs"]
    current = metadata.get("current-snapshot-id")
    return tuple(_entry(snapshot, current, refs) for snapshot in metadata["snapshots"])


def _entry(snapshot: Mapping[str, Any], current: int | None, refs: Mapping[str, Any]) -> SnapshotEntry:
    number: int = snapshot["snapshot-id"]
    summary: Mapping[str, str] = snapshot.get("summary") or {}
    names = {kind: _names(refs, number, kind) for kind in ("branch", "tag")}
    return SnapshotEntry(
        snapshot_id=number,
        parent_id=snapshot.get("parent-snapshot-id"),
        at=datetime.fromtimestamp(snapshot["timestamp-ms"] / 1000, tz=timezone.utc),
        operation=summary.get("operation"),
        is_current=number == current,
        branches=names["branch"],
        tags=names["tag"],
        added_rows=_count(summary, "added-records"),
        deleted_rows=_count(summary, "deleted-records"),
        rows=_count(summary, "total-records"),
    )


def _names(refs: Mapping[str, Any], snapshot_id: int, kind: str) -> tuple[str, ...]:
    return tuple(
        sorted(n for n, ref in refs.items() if ref["snapshot-id"] == snapshot_id and ref["type"] == kind)
    )


def _count(summary: Mapping[str, str], key: str) -> int | None:
    """A number of a summary, which other writers may omit or write in another form."""
    text = summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None
