"""How a table's files lie: counts out of its manifest list, sizes out of manifests as far as that is cheap.

Specification, "Manifest Lists" and "Manifests".  A manifest holds files of one partition spec, so the list
alone tells how many files lie which way.  Sizes stand in the manifests, one for each file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.catalog.avro import records
from icemigrate.catalog.files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.model.layout import Layout, Portion

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


class Manifest(Frozen):
    """A manifest of data files, or of delete files.

    :param files: how many of them live.
    :param entries: how many it has; of others files were deleted.
    :param sequence: its sequence number, which entries without one of their own inherit.
    :param snapshot_id: of the snapshot that added it, which they inherit likewise.
    """

    path: str
    length: int
    spec_id: int
    files: int
    entries: int
    sequence: int | None = None
    snapshot_id: int | None = None


class Listed(Frozen):
    """What a manifest list names.

    :param manifests: those of data files, of which some live.
    :param deletes: those of delete files, of which some live.
    """

    manifests: tuple[Manifest, ...]
    deletes: tuple[Manifest, ...] = ()

    @property
    def has_deletes(self) -> bool:
        """Whether there are files that say which rows are deleted."""
        return bool(self.deletes)


def listed(metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int | None = None) -> Listed | None:
    """The manifests of a snapshot; ``None`` where its list does not tell what is needed.

    :param metadata: the table's whole metadata.
    :param snapshot_id: ``None`` for the current one.
    """
    snapshot = _current(metadata) if snapshot_id is None else _snapshot(metadata, snapshot_id)
    if snapshot is None:
        return Listed(())
    if "manifest-list" not in snapshot:
        return None  # a version 1 table may name its manifests one by one
    manifests, deletes = list[Manifest](), list[Manifest]()
    for record in records(read(snapshot["manifest-list"]), _WANTED):
        if record.get(_ADDED) is None or record.get(_EXISTING) is None:
            return None  # counts may be left out in version 1
        files = record[_ADDED] + record[_EXISTING]
        entries = files + (record.get(_DELETED) or 0)
        if files:
            manifest = Manifest(
                record[_PATH],
                record[_LENGTH],
                record[_SPEC],
                files,
                entries,
                record.get(_SEQUENCE),
                record.get(_ADDED_BY),
            )
            (manifests if record.get(_CONTENT, _DATA) == _DATA else deletes).append(manifest)
    return Listed(tuple(manifests), tuple(deletes))


_WANTED = (_PATH, _LENGTH, _SPEC, _CONTENT, _SEQUENCE, _ADDED_BY, _ADDED, _EXISTING, _DELETED)


def _current(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _snapshot(metadata, metadata.get("current-snapshot-id"))


def _snapshot(metadata: Mapping[str, Any], snapshot_id: int | None) -> Mapping[str, Any] | None:
    return next((s for s in metadata.get("snapshots") or () if s["snapshot-id"] == snapshot_id), None)


def layout_of(metadata: Mapping[str, Any], read: ReadBytes) -> Layout | None:
    """How the files of the current snapshot lie; ``None`` where that cannot be found out quickly.

    :param metadata: the table's whole metadata.
    """
    # It is no fault of a plan that it may not read this, and whatever reads the file may lie below.
    try:
        found = listed(metadata, read)
        summary = (_current(metadata) or {}).get("summary") or {}
        return None if found is None else _layout(found, summary, read)
    except Exception:
        return None


def _layout(found: Listed, summary: Mapping[str, str], read: ReadBytes) -> Layout:
    by_spec: dict[int, list[Manifest]] = {}
    for manifest in found.manifests:
        by_spec.setdefault(manifest.spec_id, []).append(manifest)
    total = None if found.has_deletes else _whole(summary.get("total-files-size"))
    sizes = _sizes(by_spec, total, read)
    return Layout({spec: Portion(sum(m.files for m in of), sizes[spec]) for spec, of in by_spec.items()})


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _sizes(
    by_spec: Mapping[int, list[Manifest]], total: int | None, read: ReadBytes
) -> dict[int, int | None]:
    """The size of each spec's files; that of the most is what the summary's total leaves for them.

    :param total: of all files, where the summary says it of data files alone.
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


def is_cheap(manifests: Sequence[Manifest]) -> bool:
    """Whether they can be read while somebody waits."""
    return (
        len(manifests) <= MAX_MANIFESTS
        and sum(m.entries for m in manifests) <= MAX_ENTRIES
        and sum(m.length for m in manifests) <= MAX_LENGTH
    )


def _size(manifest: Manifest, read: ReadBytes) -> int:
    entries = records(read(manifest.path), (STATUS, DATA_FILE, _FILE_SIZE))
    return sum(e[DATA_FILE][_FILE_SIZE] for e in entries if e[STATUS] != STATUS_DELETED)
