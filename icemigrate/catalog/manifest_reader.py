"""Reads the manifests of a table in Python, through the reader of the catalog's metadata files.

Specification, "Manifest Lists", "Manifests" and "Sequence Number Inheritance".  Encrypted files, storages
that only Spark reaches, and codecs of other writers are left to Iceberg's Java library:
:class:`icemigrate.spark.java_manifests.JavaManifestReader`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icemigrate.catalog.avro import AvroRecord, read_records
from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.catalog.snapshot_manifests import LiveDataFile, UnreadableManifest
from icemigrate.catalog.value_counts import WANTED_OF_DELETES, delete_file
from icemigrate.frozen import Frozen
from icemigrate.iceberg.delete_files import DeleteFile
from icemigrate.iceberg.metadata_parts import SnapshotEntry

_PATH, _LENGTH, _CONTENT, _SEQUENCE, _ADDED_BY, _FIRST_ROW = 500, 501, 517, 515, 503, 520
_DATA_MANIFEST, _ADDED = 0, 1
_FILE_PATH, _ROWS, _FIRST_ROW_OF_FILE = 100, 103, 142
_DATA_SEQUENCE, _FILE_SEQUENCE = 3, 4
_SIZES, _VALUES, _NULLS = (108, 117, 118), (109, 119, 120), (110, 121, 122)
"""Maps by field id: the ids of the map, its key and its value."""
_OF_FILES = (
    *(STATUS, _DATA_SEQUENCE, _FILE_SEQUENCE, DATA_FILE, _FILE_PATH, _ROWS, _FIRST_ROW_OF_FILE),
    *(*_SIZES, *_VALUES, *_NULLS),
)
_OF_DELETES = (*WANTED_OF_DELETES, _FILE_SEQUENCE)


class _Manifest(Frozen):
    """A manifest as its list has it.

    :param length: how many bytes it has.
    :param sequence: its sequence number; 0 in format version 1.
    """

    path: str
    length: int
    is_data: bool
    sequence: int
    snapshot_id: int | None
    first_row_id: int | None


@dataclass(slots=True)
class CatalogManifestReader:
    """A :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader` that needs no JVM.

    :param read: reads a file at a location.
    :param fields: fields whose metrics are read.
    """

    read: ReadBytes
    fields: Collection[int]
    _lists: dict[int, tuple[_Manifest, ...]] = field(default_factory=dict)
    _manifests: dict[str, _Manifest] = field(default_factory=dict)

    def data_manifests(self, snapshot: SnapshotEntry) -> list[str]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        return [manifest.path for manifest in self._list(snapshot) if manifest.is_data]

    def delete_manifests(self, snapshot: SnapshotEntry) -> list[str]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        return [manifest.path for manifest in self._list(snapshot) if not manifest.is_data]

    def data_files(self, path: str) -> Iterator[LiveDataFile]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        manifest = self._manifests[path]
        next_row_id = manifest.first_row_id
        for entry in self._entries(path, _OF_FILES):
            file = entry[DATA_FILE]
            # Specification, "First Row ID Inheritance"; a manifest without an id is one of rows without ids.
            first_row_id = None if next_row_id is None else file.get(_FIRST_ROW_OF_FILE)
            if first_row_id is None and next_row_id is not None:
                first_row_id, next_row_id = next_row_id, next_row_id + file[_ROWS]
            yield LiveDataFile(
                path=file[_FILE_PATH],
                rows=file[_ROWS],
                sequence=_inherited(entry, _FILE_SEQUENCE, manifest),
                sizes=self._map(file, _SIZES),
                values=self._map(file, _VALUES),
                nulls=self._map(file, _NULLS),
                carrier=manifest.snapshot_id,
                first_row_id=first_row_id,
                data_sequence=_inherited(entry, _DATA_SEQUENCE, manifest),
            )

    def delete_files(self, path: str) -> Iterator[DeleteFile]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        manifest = self._manifests[path]
        for entry in self._entries(path, _OF_DELETES):
            yield delete_file(entry[DATA_FILE], _inherited(entry, _DATA_SEQUENCE, manifest))

    def _list(self, snapshot: SnapshotEntry) -> tuple[_Manifest, ...]:
        if snapshot.id not in self._lists:
            if snapshot.manifest_list is None:
                raise UnreadableManifest("the snapshot names its manifests one by one")
            wanted = (_PATH, _LENGTH, _CONTENT, _SEQUENCE, _ADDED_BY, _FIRST_ROW)
            found = tuple(
                _Manifest(
                    record[_PATH],
                    record[_LENGTH],
                    record.get(_CONTENT, _DATA_MANIFEST) == _DATA_MANIFEST,
                    record.get(_SEQUENCE) or 0,
                    record.get(_ADDED_BY),
                    record.get(_FIRST_ROW),
                )
                for record in self._records(snapshot.manifest_list, wanted)
            )
            self._lists[snapshot.id] = found
            self._manifests |= {manifest.path: manifest for manifest in found}
        return self._lists[snapshot.id]

    def _entries(self, path: str, wanted: Collection[int]) -> Iterator[AvroRecord]:
        entries = self._records(path, wanted, self._manifests[path].length)
        return (entry for entry in entries if entry[STATUS] != STATUS_DELETED)

    def _records(self, location: str, wanted: Collection[int], length: int | None = None) -> list[AvroRecord]:
        """
        :param length: how many bytes the file must have: one that is cut may read as fewer records.
        """
        # The reader of the file may raise any exception.
        try:
            content = self.read(location)
            if length not in (None, len(content)):
                raise ValueError(f"it has {len(content)} bytes instead of {length}")
            return list(read_records(content, wanted))
        except Exception as error:
            raise UnreadableManifest(f"{location} cannot be read: {error}") from error

    def _map(self, file: AvroRecord, ids: tuple[int, int, int]) -> Mapping[int, Any]:
        whole, key, value = ids
        return {pair[key]: pair[value] for pair in file.get(whole) or () if pair[key] in self.fields}


def _inherited(entry: AvroRecord, number: int, manifest: _Manifest) -> int | None:
    """A sequence number of an entry; one that was added with the manifest has that of the manifest."""
    own: int | None = entry.get(number)
    if own is None and (manifest.sequence == 0 or entry[STATUS] == _ADDED):
        return manifest.sequence
    return own
