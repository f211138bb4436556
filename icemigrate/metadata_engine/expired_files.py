"""The files that only expired snapshots of an append-only table need: manifest lists and merged manifests.

Data files are never among them: later snapshots have them too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.metadata_engine.manifest_lists import read_avro
from icemigrate.metadata_engine.table_store import FileStore


def files_of_expired(before: Json, expired: Collection[int], files: FileStore) -> tuple[str, ...]:
    """The locations that no snapshot refers to after the expiry.

    Where a manifest list cannot be read, the manifests in it stay.

    :param before: complete metadata from before the expiry.
    :param expired: ids of its snapshots, the oldest of the branch main.
    """
    snapshots: Sequence[Json] = before["snapshots"]
    gone = [s for s in snapshots if s["snapshot-id"] in expired]
    lists = [s["manifest-list"] for s in gone if "manifest-list" in s]
    if set(before["refs"]) - {MAIN_BRANCH} or not _is_line(snapshots):
        # A branch, a tag, or main after its return to an earlier snapshot may need manifests from before a
        # merge.
        return tuple(lists)
    kept = next((s for s in snapshots if s["snapshot-id"] not in expired), None)
    by_id = {s["snapshot-id"]: s for s in gone}
    merged: dict[str, None] = {}
    for snapshot in (*gone, *([] if kept is None else [kept])):
        parent = by_id.get(snapshot.get("parent-snapshot-id", -1))
        if parent is None or snapshot.get("summary", {}).get("manifests-replaced", "0") == "0":
            continue
        try:
            merged |= dict.fromkeys(sorted(_manifests(parent, files) - _manifests(snapshot, files)))
        except (EngineError, KeyError):
            continue
    return (*lists, *merged)


def _is_line(snapshots: Sequence[Json]) -> bool:
    """Whether each snapshot is the child of the one before it."""
    return all(child.get("parent-snapshot-id") == one["snapshot-id"] for one, child in pairwise(snapshots))


def _manifests(snapshot: Json, files: FileStore) -> set[str]:
    _, records = read_avro("manifest list", snapshot["manifest-list"], files)
    return {record["manifest_path"] for record in records}
