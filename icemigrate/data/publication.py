"""What a table's metadata tells of the rows that a migration has published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.data.base import DATA_NOTE
from icemigrate.model.evidence import Publication
from icemigrate.model.metadata_parts import SnapshotEntry, snapshot_from_json, snapshot_summary
from icemigrate.model.reserved import SUMMARY_PREFIX

NOTE = f"{SUMMARY_PREFIX}{DATA_NOTE}"
LATE_NOTE = f"{SUMMARY_PREFIX}late"
"""The same where rows of others get what the migration's own have: they are not taken back with these."""


def publication(metadata: Mapping[str, Any], key: str, since: int | None) -> Publication | None:
    """What a migration has published of a table; ``None`` where it published nothing.

    :param metadata: the JSON of a metadata file.
    :param key: what the summaries of the migration's snapshots say.
    :param since: the snapshot that was current when the migration began: an earlier run of it, which was
        undone, may have left the same behind that one.
    """
    mine: list[SnapshotEntry] = []
    rewritten: list[SnapshotEntry] = []
    before: SnapshotEntry | None = None
    for snapshot in _ancestors(metadata):
        before = snapshot
        if snapshot.id == since:
            break
        if snapshot.summary.get(NOTE) == key:
            # What comes behind it and only writes files again ("replace") is of the same rows.
            mine += [*rewritten, snapshot] if not mine else [snapshot]
        rewritten = [*rewritten, snapshot] if snapshot.summary.get("operation") == "replace" else []
    if not mine:
        return None
    parent = mine[-1].parent_id
    if before is not None and before.id != parent:
        before = _by_id(metadata).get(parent) if parent is not None else None
    return Publication(None if before is None else snapshot_summary(before), snapshot_summary(mine[0]))


def holds(metadata: Mapping[str, Any], snapshot_id: int) -> bool:
    """Whether main has come by a snapshot, others behind it or none.

    :param metadata: the JSON of a metadata file.
    """
    return any(snapshot.id == snapshot_id for snapshot in _ancestors(metadata))


def lacks_a_variant(metadata: Mapping[str, Any], snapshot_id: int) -> bool:
    """Whether the table has a column of type variant by a name that the schema of a snapshot does not have:
    then no statement that reads the column runs on it (:mod:`icemigrate.model.legality.unread`).

    :param metadata: the JSON of a metadata file.
    """
    schemas = {schema.get("schema-id", 0): schema["fields"] for schema in metadata.get("schemas", ())}
    of_snapshot: Mapping[str, Any] = next(
        (s for s in metadata.get("snapshots", ()) if s["snapshot-id"] == snapshot_id), {}
    )
    known = {field["name"] for field in schemas.get(of_snapshot.get("schema-id"), ())}
    now = schemas.get(metadata.get("current-schema-id"), ())
    return any(field["type"] == "variant" and field["name"] not in known for field in now)


def _ancestors(metadata: Mapping[str, Any]) -> Iterator[SnapshotEntry]:
    known = _by_id(metadata)
    at = known.get(metadata.get("current-snapshot-id", -1))
    while at is not None:
        yield at
        at = None if at.parent_id is None else known.get(at.parent_id)


def _by_id(metadata: Mapping[str, Any]) -> dict[int | None, SnapshotEntry]:
    return {entry.id: entry for entry in map(snapshot_from_json, metadata.get("snapshots", ()))}
