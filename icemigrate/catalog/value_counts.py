"""Counts rows in files that contain or lack values of certain fields, from metrics in manifests.

Specification, "Manifests": ``column_sizes`` and ``value_counts`` of a data file name the fields that it has,
``null_value_counts`` has the number of nulls in each.  Numbers of deleted rows come from delete files, as far
as :mod:`icemigrate.iceberg.delete_files` describes.  Reading is limited as in
:mod:`icemigrate.catalog.file_layouts`; no data file is opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from icemigrate.catalog.avro import AvroRecord, read_records
from icemigrate.catalog.file_layouts import (
    DATA_FILE,
    STATUS,
    STATUS_DELETED,
    ListedManifest,
    LiveManifests,
    is_cheap,
    read_manifest_list,
)
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.frozen import Frozen
from icemigrate.iceberg.delete_files import (
    NONE_DELETED,
    DataFileRows,
    DeletedRows,
    DeleteFile,
    DeleteKind,
    deleted_rows,
)
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues, ValueShare

_PATH, _ROWS, _SIZES, _VALUES, _NULLS = 100, 103, 108, 109, 110
_KEYS = {_SIZES: 117, _VALUES: 119}
"""The id of the key in each of these maps, which Avro stores as a list of records."""
_NULLS_KEY, _NULLS_VALUE = _NULLS_PAIR = 121, 122
_SEQUENCE, _FORMAT, _CONTENT, _REFERENCED = 3, 101, 134, 143
_EQUALITY_DELETES = 2
BOUNDS = {125: (126, 127), 128: (129, 130)}
"""The lower and the upper bounds, each with the ids of its key and its value."""
_PATH_OF_DELETE = 2147483546
"""In a position delete file, the path of the data file (specification, "Reserved Field IDs")."""
_METRICS = "write.metadata.metrics."
MEASURED_FIELDS = 100
"""The number of fields with metrics, unless a property sets another."""


def count_rows_with_values(
    metadata: Mapping[str, Any], read: ReadBytes, fields: Mapping[int, frozenset[int]]
) -> Mapping[int, ValueShare] | None:
    """By field, how many rows of the current snapshot are in files that contain values of it.

    ``None`` where that cannot be found quickly.

    :param metadata: the table's complete metadata.
    :param fields: each with the fields that have metrics of their own: itself, or its nested fields.
    """
    found = _read(metadata, read, None)
    if found is None:
        return None
    measured = is_measured(metadata)
    deleted = found.deleted()
    return {i: _share(found.files, leaves, measured, deleted) for i, leaves in fields.items()}


def count_missing_values(
    metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int, fields: Mapping[int, FieldQuery]
) -> Mapping[int, MissingValues] | None:
    """By field, how many rows of a snapshot have no value of it; as :func:`count_rows_with_values`.

    ``None`` also where the snapshot is gone.

    :param snapshot_id: the snapshot to read.
    """
    if not any(s["snapshot-id"] == snapshot_id for s in metadata.get("snapshots") or ()):
        return None
    found = _read(metadata, read, snapshot_id)
    if found is None:
        return None
    measured, has_deletes = is_measured(metadata), found.listed.has_deletes
    return {i: _missing_values(found.files, i, sought, measured, has_deletes) for i, sought in fields.items()}


class _SnapshotFiles(Frozen):
    """A snapshot's data files, from its manifests.

    :param sequences: the data sequence number of each file.
    """

    listed: LiveManifests
    files: list[AvroRecord]
    sequences: list[int | None]
    deletes: list[DeleteFile]

    def deleted(self) -> dict[str, DeletedRows]:
        """How many rows of each file are deleted; of a file that is not here none are."""
        rows = {
            file[_PATH]: DataFileRows(file[_ROWS], sequence)
            for file, sequence in zip(self.files, self.sequences, strict=True)
        }
        return deleted_rows(rows, self.deletes)


def _read(metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int | None) -> _SnapshotFiles | None:
    # A plan works without these files, and the reader of the file may raise any exception.
    try:
        found = read_manifest_list(metadata, read, snapshot_id)
        if found is None or not is_cheap((*found.manifests, *found.deletes)):
            return None
        entries = [entry for manifest in found.manifests for entry in _entries(read, manifest, _WANTED)]
        deletes = [
            delete_file(file, sequence)
            for manifest in found.deletes
            for file, sequence in _entries(read, manifest, WANTED_OF_DELETES)
        ]
        return _SnapshotFiles(
            found, [file for file, _ in entries], [number for _, number in entries], deletes
        )
    except Exception:
        return None


def _entries(
    read: ReadBytes, manifest: ListedManifest, wanted: Collection[int]
) -> Iterator[tuple[AvroRecord, int | None]]:
    """The live files of a manifest with their data sequence numbers, which new ones inherit from it."""
    for entry in read_records(read(manifest.path), wanted):
        if entry[STATUS] != STATUS_DELETED:
            number = entry.get(_SEQUENCE)
            yield entry[DATA_FILE], manifest.sequence if number is None else number


_WANTED = (STATUS, _SEQUENCE, DATA_FILE, _PATH, _ROWS, *_KEYS, *_KEYS.values(), _NULLS, *_NULLS_PAIR)


def delete_file(file: AvroRecord, sequence: int | None) -> DeleteFile:
    """A delete file.

    :param file: the fields of :data:`WANTED_OF_DELETES`.
    :param sequence: its data sequence number.
    """
    if file.get(_CONTENT) == _EQUALITY_DELETES:
        return DeleteFile(DeleteKind.EQUALITY, file[_ROWS], sequence)
    is_vector = str(file.get(_FORMAT)).upper() == "PUFFIN"
    kind = DeleteKind.VECTOR if is_vector else DeleteKind.POSITIONS
    return DeleteFile(kind, file[_ROWS], sequence, file.get(_REFERENCED) or _only_path(file))


def _only_path(file: AvroRecord) -> str | None:
    """The data file whose rows a position delete file deletes, if the bounds of its paths are equal."""
    lower, upper = (
        next((pair[value] for pair in file.get(bounds) or () if pair[key] == _PATH_OF_DELETE), None)
        for bounds, (key, value) in BOUNDS.items()
    )
    if lower is None or lower != upper:
        return None
    return bytes(lower).decode()


_BOUNDED = (*BOUNDS, *(part for pair in BOUNDS.values() for part in pair))
WANTED_OF_DELETES = (STATUS, _SEQUENCE, DATA_FILE, _ROWS, _FORMAT, _CONTENT, _REFERENCED, *_BOUNDED)


def present_fields(file: AvroRecord) -> set[int]:
    """The fields that a file has, as far as its metrics show."""
    return {pair[key] for of, key in _KEYS.items() for pair in file.get(of) or ()}


def _missing_values(
    files: list[AvroRecord], field_id: int, sought: FieldQuery, says_all: bool, has_deletes: bool
) -> MissingValues:
    """:param has_deletes: whether rows are deleted, perhaps all those with a null."""
    nulls = unknown = silent = 0
    lacking = list[AvroRecord]()
    for file in files:
        there, rows = present_fields(file), file[_ROWS]
        counts = {pair[_NULLS_KEY]: pair[_NULLS_VALUE] for pair in file.get(_NULLS) or ()}
        here = counts.get(field_id)
        if sought.leaves & there:
            if here is None or (here and (has_deletes or sought.around)):
                unknown += rows
            else:
                nulls += here
        elif not (there and says_all):
            silent += rows
        elif not sought.around or sought.around & there:
            lacking.append(file)
    example = lacking[0][_PATH] if lacking else None
    return MissingValues(
        sum(file[_ROWS] for file in lacking), nulls, unknown + silent, silent, len(lacking), example
    )


def _share(
    files: list[AvroRecord], leaves: frozenset[int], says_all: bool, deleted: Mapping[str, DeletedRows]
) -> ValueShare:
    held = unknown = total = held_unsure = total_unsure = 0
    for file in files:
        gone = deleted.get(file[_PATH], NONE_DELETED)
        there, rows = present_fields(file), file[_ROWS] - gone.rows
        total += rows
        total_unsure += gone.unsure
        if leaves & there:
            held += rows
            held_unsure += gone.unsure
        elif not (there and says_all):
            unknown += rows
    return ValueShare(held, unknown, total, held_unsure, total_unsure)


def is_measured(metadata: Mapping[str, Any]) -> bool:
    """Whether a file with metrics for some fields has them for all its fields."""
    schemas = metadata.get("schemas") or [metadata.get("schema") or {}]
    said = metadata.get("properties") or {}
    return max(map(schema_width, schemas)) <= MEASURED_FIELDS and not any(
        key.startswith(_METRICS) for key in said
    )


def schema_width(type_: Any) -> int:
    """The number of fields in the JSON of a schema or another type, with those in structs, lists and maps."""
    if not isinstance(type_, Mapping):
        return 0
    inside = [field["type"] for field in type_.get("fields", ())]
    inside += [type_[key] for key in ("element", "key", "value") if key in type_]
    return len(inside) + sum(map(schema_width, inside))
