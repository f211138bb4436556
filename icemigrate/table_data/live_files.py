"""The manifests of a snapshot and the files in them, with partitions, sizes and metrics.

Specification, "Manifest Lists", "Manifests" and "Sequence Number Inheritance".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icemigrate.catalog.avro import AvroRecord, read_records
from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.errors import MetadataError, os_error_reason
from icemigrate.frozen import Frozen
from icemigrate.frozen import field as frozen_field

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""The content of a file."""

_PATH, _LENGTH, _SPEC, _CONTENT, _SEQUENCE, _LEAST, _ADDED_BY = 500, 501, 502, 517, 515, 516, 503
_FILES, _ROWS = (504, 505, 506), (512, 513, 514)
"""Numbers of added, existing and deleted entries, and of their rows."""
_OF_LISTS = (_PATH, _LENGTH, _SPEC, _CONTENT, _SEQUENCE, _LEAST, _ADDED_BY, *_FILES, *_ROWS)

_SNAPSHOT, _DATA_SEQUENCE, _ADDED = 1, 3, 1
_FILE_CONTENT, _FILE_PATH, _FORMAT, _PARTITION, _RECORDS, _SIZE = 134, 100, 101, 102, 103, 104
_SIZES, _VALUES, _NULLS = (108, 117, 118), (109, 119, 120), (110, 121, 122)
"""Maps by field id: the ids of the map, its key and its value."""
_METRICS = (*_SIZES, *_VALUES, *_NULLS)
_OF_FILES = (
    *(STATUS, _SNAPSHOT, _DATA_SEQUENCE, DATA_FILE),
    *(_FILE_CONTENT, _FILE_PATH, _FORMAT, _PARTITION, _RECORDS, _SIZE),
)


class SnapshotManifest(Frozen):
    """A manifest as the list of a snapshot has it.

    :param length: in bytes.
    :param is_data: whether it lists data files; otherwise delete files.
    :param sequence: its sequence number; 0 in format version 1.
    :param files: numbers of added, existing and deleted files; ``None`` where version 1 omits them.
    :param rows: numbers of their rows, in the same order.
    """

    path: str
    length: int
    spec_id: int
    is_data: bool
    sequence: int
    added_by: int | None
    files: tuple[int | None, int | None, int | None]
    rows: tuple[int | None, int | None, int | None]

    @property
    def live_files(self) -> int | None:
        """Number of files that the snapshot has of it; ``None`` where it is unknown."""
        added, existing, _ = self.files
        return None if added is None or existing is None else added + existing


class LiveFile(Frozen):
    """A data file or a delete file of a snapshot.

    :param content: :data:`DATA`, :data:`POSITION_DELETES` or :data:`EQUALITY_DELETES`.
    :param format: such as ``PARQUET``.
    :param partition: values by partition field id, as Avro has them.
    :param rows: of a delete file, the number of its deletes.
    :param sequence: its data sequence number; ``None`` where it is unknown.
    :param added_by: the snapshot that added it.
    :param sizes: bytes by field id; empty unless metrics are read.
    :param values: numbers of values with nulls by field id.
    :param nulls: numbers of nulls by field id.
    """

    path: str
    content: int
    format: str
    spec_id: int
    partition: Mapping[int, Any]
    rows: int
    size: int
    sequence: int | None = None
    added_by: int | None = None
    sizes: Mapping[int, int] = frozen_field(default_factory=dict)
    values: Mapping[int, int] = frozen_field(default_factory=dict)
    nulls: Mapping[int, int] = frozen_field(default_factory=dict)


@dataclass(slots=True)
class LiveFileReader:
    """Reads the manifests of one table; each list and each manifest once.

    :param metadata: complete metadata.
    :param read: reads a file at a location.
    """

    metadata: Mapping[str, Any]
    read: ReadBytes
    _lists: dict[str, tuple[SnapshotManifest, ...]] = field(default_factory=dict)
    _partition_ids: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        specs = self.metadata["partition-specs"]
        self._partition_ids = tuple({f["field-id"] for spec in specs for f in spec["fields"]})

    def manifests(self, snapshot: Mapping[str, Any] | None) -> tuple[SnapshotManifest, ...]:
        """The manifests of a snapshot; none without a snapshot.

        :raises MetadataError: the list cannot be read.
        """
        if snapshot is None:
            return ()
        if "manifest-list" not in snapshot:
            raise MetadataError(
                f"snapshot {snapshot['snapshot-id']} has no manifest list: its writer is too old",
                "write to the table with a current client, which writes a manifest list",
            )
        location: str = snapshot["manifest-list"]
        if location not in self._lists:
            records = read_manifest("manifest list", location, _OF_LISTS, self.read)
            self._lists[location] = tuple(map(_manifest, records))
        return self._lists[location]

    def files(self, manifest: SnapshotManifest, *, with_metrics: bool = False) -> Iterator[LiveFile]:
        """The live files of a manifest.

        :param with_metrics: whether sizes, values and nulls by column are read.
        :raises MetadataError: the manifest cannot be read.
        """
        wanted = (*_OF_FILES, *self._partition_ids, *(_METRICS if with_metrics else ()))
        for entry in read_manifest("manifest", manifest.path, wanted, self.read, manifest.length):
            if entry[STATUS] != STATUS_DELETED:
                yield _file(entry, manifest)

    def of(self, snapshot: Mapping[str, Any] | None, *, with_metrics: bool = False) -> Iterator[LiveFile]:
        """The live files of a snapshot, data files and delete files.

        :raises MetadataError: the list or a manifest cannot be read.
        """
        for manifest in self.manifests(snapshot):
            yield from self.files(manifest, with_metrics=with_metrics)


def read_manifest(
    what: str, location: str, wanted: Collection[int], read: ReadBytes, length: int | None = None
) -> Sequence[AvroRecord]:
    """The records of a manifest or of a manifest list, with the fields of these ids.

    :param what: names it in a message.
    :param length: in bytes, where it is known.
    :raises MetadataError: it cannot be read.
    """
    # The reader of the file may raise any exception of the storage's library.
    try:
        content = read(location)
        if length not in (None, len(content)):
            raise ValueError(f"it has {len(content)} bytes instead of {length}")
        return list(read_records(content, wanted))
    except Exception as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else str(error)
        raise MetadataError(
            f"{what} {location} cannot be read: {reason}",
            "restore the file, or read a snapshot of the table without it",
        ) from error


def _manifest(record: AvroRecord) -> SnapshotManifest:
    added, existing, deleted = (record.get(key) for key in _FILES)
    added_rows, existing_rows, deleted_rows = (record.get(key) for key in _ROWS)
    return SnapshotManifest(
        path=record[_PATH],
        length=record[_LENGTH],
        spec_id=record[_SPEC],
        is_data=(record.get(_CONTENT) or DATA) == DATA,
        sequence=record.get(_SEQUENCE) or 0,
        added_by=record.get(_ADDED_BY),
        files=(added, existing, deleted),
        rows=(added_rows, existing_rows, deleted_rows),
    )


def _file(entry: AvroRecord, manifest: SnapshotManifest) -> LiveFile:
    file = entry[DATA_FILE]
    sequence, added_by = entry.get(_DATA_SEQUENCE), entry.get(_SNAPSHOT)
    if sequence is None and (manifest.sequence == 0 or entry[STATUS] == _ADDED):
        sequence = manifest.sequence
    return LiveFile(
        path=file[_FILE_PATH],
        content=file.get(_FILE_CONTENT) or DATA,
        format=str(file[_FORMAT]).upper(),
        spec_id=manifest.spec_id,
        partition=file.get(_PARTITION) or {},
        rows=file[_RECORDS],
        size=file[_SIZE],
        sequence=sequence,
        added_by=manifest.added_by if added_by is None else added_by,
        sizes=_map(file, _SIZES),
        values=_map(file, _VALUES),
        nulls=_map(file, _NULLS),
    )


def _map(file: AvroRecord, ids: tuple[int, int, int]) -> Mapping[int, int]:
    whole, key, value = ids
    return {pair[key]: pair[value] for pair in file.get(whole) or ()}
