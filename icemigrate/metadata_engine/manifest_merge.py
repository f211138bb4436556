"""Merges small manifests of an append-only table, so that its manifest list stays short.

A list has at most some 20 manifests of each order of magnitude (fewer than 20 files, fewer than 400, and so
on): when one order is full, its manifests become one of the next.  So each data file is written again a
logarithmic number of times.  Java's ``MergeAppend`` merges by size and number, with the same result for
readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Struct, children
from icemigrate.metadata_engine.manifest_lists import ManifestFile, read_avro
from icemigrate.metadata_engine.manifest_schemas import manifest_fields
from icemigrate.metadata_engine.table_store import FileStore

EXISTING, ADDED, DELETED = 0, 1, 2
"""The status of a file in a manifest (specification, "Manifest Entry Fields")."""
MANIFESTS_TO_MERGE = 20
_DATA = 0
_VERSION = 2
"""The format version of histories.  A later version counts rows in manifests, and an earlier one has no
sequence numbers: tables of these versions keep their manifests."""


class ManifestMerge(Frozen):
    """Manifests that one new manifest replaces.

    :param paths: their locations.
    :param files: the entries of the new manifest.
    :param sequence: the lowest sequence number of a file.
    """

    paths: frozenset[str]
    files: tuple[dict[str, Any], ...]
    sequence: int


def find_merge(
    manifests: Sequence[ManifestFile], files: FileStore, spec_id: int, format_version: int
) -> ManifestMerge | None:
    """The merge that a list of manifests needs; ``None`` for none.

    A manifest that cannot be read or has values that are unknown here stays as it is.

    :param spec_id: of the partition spec of the merged manifests, which has no partition field.
    :raises MissingExtra: fastavro is not installed.
    """
    if format_version != _VERSION:
        return None
    orders: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        if _is_mergeable(manifest, spec_id):
            orders.setdefault(_order(manifest), []).append(manifest)
    full = [order for order, found in orders.items() if len(found) >= MANIFESTS_TO_MERGE]
    if not full:
        return None
    chosen = orders[min(full)]
    try:
        entries = tuple(entry for manifest in chosen for entry in _existing(manifest, files))
    except (EngineError, _UnknownValue):
        return None
    return ManifestMerge(
        frozenset(manifest["manifest_path"] for manifest in chosen),
        entries,
        min(entry["sequence_number"] for entry in entries),
    )


class _UnknownValue(Exception):
    """A manifest has a value of no column that is known here."""


def _is_mergeable(manifest: ManifestFile, spec_id: int) -> bool:
    return (
        manifest["content"] == _DATA
        and manifest["partition_spec_id"] == spec_id
        and not manifest.get("deleted_files_count")
        and not manifest.get("key_metadata")
        and _files(manifest) > 0
    )


def _files(manifest: ManifestFile) -> int:
    return int(manifest["added_files_count"]) + int(manifest["existing_files_count"])


def _order(manifest: ManifestFile) -> int:
    """The number of digits of its number of files, to the base of :data:`MANIFESTS_TO_MERGE`."""
    order, left = 0, _files(manifest)
    while left >= MANIFESTS_TO_MERGE:
        order, left = order + 1, left // MANIFESTS_TO_MERGE
    return order


_FIELDS = manifest_fields(_VERSION, Struct(()))
_ENTRY_KEYS = frozenset(field.name for field in _FIELDS)
_FILE_KEYS = frozenset(field.name for field in children(_FIELDS[-1].type))


def _existing(manifest: ManifestFile, files: FileStore) -> list[dict[str, Any]]:
    """The files of a manifest as existing ones, with the numbers that they inherited."""
    _, records = read_avro("manifest", manifest["manifest_path"], files)
    found = []
    for record in records:
        file = record.get("data_file")
        if not (record.keys() <= _ENTRY_KEYS and isinstance(file, dict) and file.keys() <= _FILE_KEYS):
            raise _UnknownValue
        if record["status"] == DELETED:
            continue
        inherited = {
            "snapshot_id": manifest["added_snapshot_id"],
            "sequence_number": manifest["sequence_number"],
            "file_sequence_number": manifest["sequence_number"],
        }
        own = {key: record[key] for key in inherited if record.get(key) is not None}
        found.append({**inherited, **own, "status": EXISTING, "data_file": file})
    if not found:
        raise _UnknownValue
    return found
