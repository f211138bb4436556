"""Rows that a migration has published, found in the snapshots of a table's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.data_steps.data_step_kind import DATA_SUMMARY_KEY
from icemigrate.iceberg.file_evidence_values import PublishedRows
from icemigrate.iceberg.metadata_parts import SnapshotEntry, snapshot_from_json, to_snapshot
from icemigrate.iceberg.retention import ancestor_ids
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX

DATA_SUMMARY_PROPERTY = f"{SUMMARY_PREFIX}{DATA_SUMMARY_KEY}"
LATE_SUMMARY_PROPERTY = f"{SUMMARY_PREFIX}late"
"""The same for snapshots that change rows of other writers, which an undo does not remove."""


def find_publication(metadata: Mapping[str, Any], key: str, since: int | None) -> PublishedRows | None:
    """The rows that a migration has published in a table; ``None`` if there are none.

    :param metadata: the JSON of a metadata file.
    :param key: the value in the summaries of the migration's snapshots.
    :param since: the current snapshot when the migration began; an earlier run, which was undone, may have
        published rows before it.
    """
    mine: list[SnapshotEntry] = []
    rewritten: list[SnapshotEntry] = []
    before: SnapshotEntry | None = None
    for snapshot in _ancestors(metadata):
        before = snapshot
        if snapshot.id == since:
            break
        if snapshot.summary.get(DATA_SUMMARY_PROPERTY) == key:
            # A later snapshot that only rewrites files ("replace") has the same rows.
            mine += [*rewritten, snapshot] if not mine else [snapshot]
        rewritten = [*rewritten, snapshot] if snapshot.summary.get("operation") == "replace" else []
    if not mine:
        return None
    parent = mine[-1].parent_id
    if before is not None and before.id != parent:
        before = _by_id(metadata).get(parent) if parent is not None else None
    return PublishedRows(None if before is None else to_snapshot(before), to_snapshot(mine[0]))


def is_in_main_history(metadata: Mapping[str, Any], snapshot_id: int) -> bool:
    """Whether a snapshot is the current one of main or one of its ancestors.

    :param metadata: the JSON of a metadata file.
    """
    return snapshot_id in ancestor_ids(metadata, metadata.get("current-snapshot-id"))


def has_unreadable_variant(metadata: Mapping[str, Any], snapshot_id: int) -> bool:
    """Whether a variant column of the table has a name that the schema of a snapshot does not have.

    Statements that read the column fail on that snapshot
    (:mod:`icemigrate.iceberg.validation.table_rules`).

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
    return (known[id_] for id_ in ancestor_ids(metadata, metadata.get("current-snapshot-id")))


def _by_id(metadata: Mapping[str, Any]) -> dict[int | None, SnapshotEntry]:
    return {entry.id: entry for entry in map(snapshot_from_json, metadata.get("snapshots", ()))}
