"""The files of a new snapshot, as Java's ``FastAppend`` writes them: its manifest list and its manifest.

They are written before the commit that refers to them.  A fast append never merges manifests, so no manifest
of an earlier snapshot is read; an append that merges them reads those.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id, default_spec_id
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.data_manifests import Manifests, PartitionKey
from icemigrate.metadata_engine.manifest_lists import (
    ManifestFile,
    WrittenLists,
    carried_over,
    encode_avro,
    with_first_row_ids,
)
from icemigrate.metadata_engine.manifest_merge import find_merge
from icemigrate.metadata_engine.manifest_schemas import NEWEST_FORMAT_VERSION, manifest_list_fields
from icemigrate.metadata_engine.metadata_file_names import location_of_metadata
from icemigrate.metadata_engine.snapshot_summary import (
    FileChanges,
    ManifestChanges,
    SummaryTotals,
    snapshot_summary,
)
from icemigrate.metadata_engine.table_store import FileStore

_DATA = 0


class NewSnapshot(Frozen):
    """A snapshot whose files are written, and which no metadata has yet.

    :param json: the snapshot as metadata has it.
    :param files: locations of the written files, to delete when the commit is refused.
    """

    json: Json
    files: tuple[str, ...]


def append_snapshot(
    metadata: Json,
    files: FileStore,
    summary: Mapping[str, str],
    *,
    data: tuple[DataFile, ...] = (),
    parent_id: int | None,
    now_ms: int,
    written: WrittenLists | None = None,
    merges: bool = False,
    removed: Collection[str] = (),
) -> NewSnapshot:
    """Write the files of a snapshot that has the parent's files and the new ones.

    Which branch or tag refers to the snapshot is the caller's decision.

    :param metadata: the table's complete metadata, with the schema that the snapshot records as current.
    :param summary: further keys of its summary.
    :param data: of the default partition spec.
    :param parent_id: of a snapshot of the metadata; ``None`` for one without a parent.
    :param written: knows the lists of earlier snapshots, and gets that of the new one.
    :param merges: whether many small manifests of the parent become one, see
        :mod:`icemigrate.metadata_engine.manifest_merge`.
    :param removed: locations of the parent's data files that the snapshot no longer has; in format versions 1
        and 2, because later ones keep the ids of rows.
    :raises EngineError: the table has another format version or is encrypted, or a file cannot be read or
        written.
    :raises MissingExtra: fastavro is not installed.
    """
    version = _supported_version(metadata)
    assert version < NEWEST_FORMAT_VERSION or not removed, "rewritten rows would lose their ids"
    parent = None if parent_id is None else _snapshot(metadata, parent_id)
    kept = carried_over(parent, files, version, written)
    snapshot_id = _new_id({s["snapshot-id"] for s in metadata.get("snapshots") or ()})
    numbers: dict[str, int] = {"sequence-number": metadata["last-sequence-number"] + 1} if version > 1 else {}
    draft = _ManifestListDraft(metadata, files, snapshot_id, numbers.get("sequence-number", 0), kept.entries)
    gone = draft.remove(removed) if removed else ()
    # Merged manifests have no partitions.
    if merges and not draft.manifests.default_spec.live:
        draft.merge()
    if data:
        draft.add(data)
    entries = draft.entries
    if version > 2:
        first = metadata["next-row-id"]
        entries, next_row_id = with_first_row_ids(entries, first)
        numbers |= {"first-row-id": first, "added-rows": next_row_id - first}
    header: dict[str, str] = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        **{key: str(value) for key, value in numbers.items() if key != "added-rows"},
        "format-version": str(version),
    }
    location = location_of_metadata(metadata, f"snap-{snapshot_id}-1-{draft.commit}.avro")
    draft.contents[location] = encode_avro(kept.schema, manifest_list_fields(version), entries, header)
    _write_all(files, draft.contents)
    if written is not None:
        written.keep(location, version, replace(kept, entries=entries))
    json_ = {
        "snapshot-id": snapshot_id,
        **({} if parent_id is None else {"parent-snapshot-id": parent_id}),
        **numbers,
        "timestamp-ms": _timestamp_ms(metadata, parent, now_ms),
        "summary": snapshot_summary(
            summary,
            None if parent is None else parent.get("summary") or {},
            FileChanges(
                added=SummaryTotals.of((file.records, file.size) for file in data),
                removed=SummaryTotals.of((f["record_count"], f["file_size_in_bytes"]) for f in gone),
                partitions=len(draft.partitions),
            ),
            ManifestChanges(created=len(draft.contents) - 1, kept=draft.kept, replaced=draft.replaced),
        ),
        "manifest-list": location,
        "schema-id": current_schema_id(metadata),
    }
    return NewSnapshot(json_, tuple(draft.contents))


class _ManifestListDraft:
    """The manifests of a new snapshot, before they are written.

    :ivar contents: of new files, by location.
    :ivar replaced: number of the parent's manifests that new ones replace.
    :ivar partitions: those of new and removed files.
    """

    def __init__(
        self,
        metadata: Json,
        files: FileStore,
        snapshot_id: int,
        sequence: int,
        entries: tuple[ManifestFile, ...],
    ) -> None:
        self.manifests = Manifests(metadata, snapshot_id)
        self.commit = uuid.uuid4()
        self.contents = dict[str, bytes]()
        self.entries, self._before = entries, len(entries)
        self.replaced = 0
        self.partitions = set[PartitionKey]()
        self._metadata, self._files, self._sequence = metadata, files, sequence

    @property
    def kept(self) -> int:
        """The number of the parent's manifests that the snapshot has too."""
        return self._before - self.replaced

    def add(self, data: tuple[DataFile, ...]) -> None:
        """A manifest of new files, before all others."""
        content, entry = self.manifests.added(data)
        self.partitions |= self.manifests.partitions(data)
        self.entries = (self._kept(content, entry, self._sequence, 0), *self.entries)

    def merge(self) -> None:
        """One manifest for many small ones, after all others."""
        version: int = self._metadata["format-version"]
        merged = find_merge(self.entries, self._files, default_spec_id(self._metadata), version)
        if merged is None:
            return
        content, entry = self.manifests.merged(merged.files)
        others = (e for e in self.entries if e["manifest_path"] not in merged.paths)
        self.entries = (*others, self._kept(content, entry, merged.sequence, 1))
        self.replaced += len(merged.paths)

    def remove(self, removed: Collection[str]) -> tuple[Mapping[str, Any], ...]:
        """Write the manifests of files again without them; :returns: the removed files.

        :raises EngineError: the parent has no such file.
        """
        entries, gone = list[ManifestFile](), list[Mapping[str, Any]]()
        for manifest in self.entries:
            found = None
            if manifest["content"] == _DATA:
                found = self.manifests.without(manifest, removed, self._files)
            if found is None:
                entries.append(manifest)
                continue
            gone.extend(found.removed)
            self.partitions |= found.partitions
            self.replaced += 1
            entries.append(self._kept(found.content, found.entry, found.sequence, 1 + self.replaced))
        if len(gone) != len(set(removed)):
            raise EngineError(
                f"the manifests of the table at {self._metadata['location']} lack a data file that was read",
                "run the command again",
            )
        self.entries = tuple(entries)
        return tuple(gone)

    def _kept(self, content: bytes, entry: ManifestFile, sequence: int, number: int) -> ManifestFile:
        path = location_of_metadata(self._metadata, f"{self.commit}-m{number}.avro")
        self.contents[path] = content
        of_list = {"manifest_path": path, "sequence_number": self._sequence, "min_sequence_number": sequence}
        return {**entry, **of_list}


def _supported_version(metadata: Json) -> int:
    version: int = metadata["format-version"]
    if version > NEWEST_FORMAT_VERSION:
        raise EngineError(
            f"the table at {metadata['location']} has format version {version}, and icemigrate writes "
            f"snapshots of 1 to {NEWEST_FORMAT_VERSION}"
        )
    if "encryption.key-id" in _properties(metadata):
        raise EngineError(
            f"the table at {metadata['location']} is encrypted, and icemigrate writes no encrypted files",
            "change it through Spark",
        )
    return version


def _properties(metadata: Json) -> Mapping[str, str]:
    return metadata.get("properties") or {}


def _snapshot(metadata: Json, snapshot_id: int) -> Json:
    found: Json = next(s for s in metadata["snapshots"] if s["snapshot-id"] == snapshot_id)
    return found


def _new_id(known: Collection[int]) -> int:
    """A positive random number of 63 bits, as Java's ``SnapshotIdGeneratorUtil`` makes it."""
    while True:
        high, low = divmod(uuid.uuid4().int, 2**64)
        new = (high ^ low) & (2**63 - 1)
        if new not in known:
            return new


def _timestamp_ms(metadata: Json, parent: Json | None, now_ms: int) -> int:
    """The time of the snapshot: not before earlier commits, although a clock may be behind."""
    return max(now_ms, metadata.get("last-updated-ms") or 0, 0 if parent is None else parent["timestamp-ms"])


def _write_all(files: FileStore, contents: Mapping[str, bytes]) -> None:
    """Write files; where one fails, none remains."""
    written = []
    try:
        for location, content in contents.items():
            files.write(location, content)
            written.append(location)
    except BaseException:
        for location in written:
            files.delete(location)
        raise
