"""The files of a table by partition spec: numbers from its manifest list, sizes from manifests if that is
cheap.

Specification, "Manifest Lists" and "Manifests".  A manifest contains files of one partition spec, so the list
alone has the number of files of each spec.  Sizes are in the manifests, one for each file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.catalog.avro import read_records
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.iceberg.partition_evolution import FilesBySpec, FileTotals
from icemigrate.iceberg.table_properties import whole_number

MAX_MANIFESTS = 20
"""How many manifests are read for the sizes of files, at most: each is one request."""
MAX_ENTRIES = 2_000
"""How many entries they may have together; one takes some 50 microseconds, more where columns are many."""
MAX_LENGTH = 1_000_000
"""How many bytes they may have together."""

_PATH, _LENGTH, _SPEC, _CONTENT, _SEQUENCE, _ADDED_BY = 500, 501, 502, 517, 515, 503
_ADDED, _EXISTING, _DELETED = 504, 505, 506
STATUS, DATA_FILE, _FILE_SIZE = 0, 2, 104
_DATA, STATUS_DELETED = 0, 2


class ListedManifest(Frozen):
    """A manifest of data files, or of delete files.

    :param files: number of its live files.
    :param entries: number of all its entries; other entries are deleted files.
    :param sequence: its sequence number, which entries without one of their own inherit.
    :param snapshot_id: of the snapshot that added it, which they inherit as well.
    """

    path: str
    length: int
    spec_id: int
    files: int
    entries: int
    sequence: int | None = None
    snapshot_id: int | None = None


class LiveManifests(Frozen):
    """The manifests in a manifest list.

    :param manifests: manifests with live data files.
    :param deletes: manifests with live delete files.
    """

    manifests: tuple[ListedManifest, ...]
    deletes: tuple[ListedManifest, ...] = ()

    @property
    def has_deletes(self) -> bool:
        """Whether there are delete files."""
        return bool(self.deletes)


def read_manifest_list(
    metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int | None = None
) -> LiveManifests | None:
    """The manifests of a snapshot; ``None`` where its list lacks optional counts.

    :param metadata: the table's complete metadata.
    :param snapshot_id: ``None`` for the current one.
    """
    snapshot = _current(metadata) if snapshot_id is None else _snapshot(metadata, snapshot_id)
    if snapshot is None:
        return LiveManifests(())
    if "manifest-list" not in snapshot:
        return None  # a version 1 table may name its manifests one by one
    manifests, deletes = list[ListedManifest](), list[ListedManifest]()
    for record in read_records(read(snapshot["manifest-list"]), _WANTED):
        if record.get(_ADDED) is None or record.get(_EXISTING) is None:
            return None  # counts are optional in version 1
        files = record[_ADDED] + record[_EXISTING]
        entries = files + (record.get(_DELETED) or 0)
        if files:
            manifest = ListedManifest(
                record[_PATH],
                record[_LENGTH],
                record[_SPEC],
                files,
                entries,
                record.get(_SEQUENCE),
                record.get(_ADDED_BY),
            )
            (manifests if record.get(_CONTENT, _DATA) == _DATA else deletes).append(manifest)
    return LiveManifests(tuple(manifests), tuple(deletes))


_WANTED = (_PATH, _LENGTH, _SPEC, _CONTENT, _SEQUENCE, _ADDED_BY, _ADDED, _EXISTING, _DELETED)


def _current(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _snapshot(metadata, metadata.get("current-snapshot-id"))


def _snapshot(metadata: Mapping[str, Any], snapshot_id: int | None) -> Mapping[str, Any] | None:
    return next((s for s in metadata.get("snapshots") or () if s["snapshot-id"] == snapshot_id), None)


def layout_of(metadata: Mapping[str, Any], read: ReadBytes) -> FilesBySpec | None:
    """The files of the current snapshot by partition spec; ``None`` where that cannot be found quickly.

    :param metadata: the table's complete metadata.
    """
    # A plan works without these files, and the reader of the file may raise any exception.
    try:
        found = read_manifest_list(metadata, read)
        summary = (_current(metadata) or {}).get("summary") or {}
        return None if found is None else _layout(found, summary, read)
    except Exception:
        return None


def _layout(found: LiveManifests, summary: Mapping[str, str], read: ReadBytes) -> FilesBySpec:
    by_spec: dict[int, list[ListedManifest]] = {}
    for manifest in found.manifests:
        by_spec.setdefault(manifest.spec_id, []).append(manifest)
    total = None if found.has_deletes else whole_number(summary.get("total-files-size"))
    sizes = _sizes(by_spec, total, read)
    return FilesBySpec(
        {spec: FileTotals(sum(m.files for m in of), sizes[spec]) for spec, of in by_spec.items()}
    )


def _sizes(
    by_spec: Mapping[int, list[ListedManifest]], total: int | None, read: ReadBytes
) -> dict[int, int | None]:
    """The size of each spec's files; that of the largest spec is the rest of the summary's total.

    :param total: of all files, where the summary has it for data files only.
    """
    sizes: dict[int, int | None] = dict.fromkeys(by_spec)
    order = sorted(by_spec, key=lambda spec: sum(m.entries for m in by_spec[spec]))
    last = order.pop() if order and total is not None else None
    if is_cheap([m for spec in order for m in by_spec[spec]]):
        for spec in order:
            sizes[spec] = sum(_size(m, read) for m in by_spec[spec])
        if last is not None and total is not None:
            sizes[last] = total - sum(sizes[spec] or 0 for spec in order)
    return sizes


def is_cheap(manifests: Sequence[ListedManifest]) -> bool:
    """Whether they can be read while a user waits."""
    return (
        len(manifests) <= MAX_MANIFESTS
        and sum(m.entries for m in manifests) <= MAX_ENTRIES
        and sum(m.length for m in manifests) <= MAX_LENGTH
    )


def _size(manifest: ListedManifest, read: ReadBytes) -> int:
    entries = read_records(read(manifest.path), (STATUS, DATA_FILE, _FILE_SIZE))
    return sum(e[DATA_FILE][_FILE_SIZE] for e in entries if e[STATUS] != STATUS_DELETED)
