"""The snapshots of a table, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias

from icemigrate.iceberg.table_properties import whole_number
from icemigrate.results.table_results import SnapshotInfo
from icemigrate.table_data.table_session import CurrentTable


def list_snapshots(table: CurrentTable) -> tuple[SnapshotInfo, ...]:
    """The snapshots that metadata has, the oldest first.

    Specification, `Snapshots <https://iceberg.apache.org/spec/#snapshots>`_.
    """
    metadata = table.metadata
    names = _names_by_snapshot(metadata["refs"])
    return tuple(_info(metadata, snapshot, names) for snapshot in metadata["snapshots"])


def get_current_snapshot(table: CurrentTable) -> SnapshotInfo | None:
    """The snapshot of the main branch; ``None`` before the first one."""
    metadata = table.metadata
    found = snapshot_of(metadata, metadata.get("current-snapshot-id"))
    return None if found is None else snapshot_info(metadata, found)


def snapshot_info(metadata: Mapping[str, Any], snapshot: Mapping[str, Any]) -> SnapshotInfo:
    """One of the snapshots of complete metadata."""
    return _info(metadata, snapshot, _names_by_snapshot(metadata["refs"]))


_Names: TypeAlias = Mapping[tuple[int, str], Sequence[str]]
"""The sorted names of references by snapshot and kind."""


def _names_by_snapshot(refs: Mapping[str, Any]) -> _Names:
    found: dict[tuple[int, str], list[str]] = {}
    for name in sorted(refs):
        found.setdefault((refs[name]["snapshot-id"], refs[name]["type"]), []).append(name)
    return found


def snapshot_of(metadata: Mapping[str, Any], snapshot_id: int | None) -> Mapping[str, Any] | None:
    """The snapshot of an id; ``None`` where metadata has none."""
    return next((s for s in metadata["snapshots"] if s["snapshot-id"] == snapshot_id), None)


def utc_time(milliseconds: int) -> datetime:
    """The time of a number of metadata, which counts milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _info(metadata: Mapping[str, Any], snapshot: Mapping[str, Any], names: _Names) -> SnapshotInfo:
    number: int = snapshot["snapshot-id"]
    summary: Mapping[str, str] = snapshot.get("summary") or {}
    return SnapshotInfo(
        snapshot_id=number,
        parent_id=snapshot.get("parent-snapshot-id"),
        at=utc_time(snapshot["timestamp-ms"]),
        operation=summary.get("operation"),
        is_current=number == metadata.get("current-snapshot-id"),
        branches=tuple(names.get((number, "branch"), ())),
        tags=tuple(names.get((number, "tag"), ())),
        added_rows=whole_number(summary.get("added-records")),
        deleted_rows=whole_number(summary.get("deleted-records")),
        rows=whole_number(summary.get("total-records")),
    )
