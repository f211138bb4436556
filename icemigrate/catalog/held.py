"""How many rows stand in files that hold values of certain fields or lack them, as metrics in manifests tell.

Specification, "Manifests": ``column_sizes`` and ``value_counts`` of a data file name the fields that it has,
``null_value_counts`` says how many nulls are in each.  How many rows are deleted, delete files tell as far as
:mod:`icemigrate.model.deletes` says.
What is read is bounded as in :mod:`icemigrate.catalog.layouts`; no data file is opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from icemigrate.catalog.avro import Record, records
from icemigrate.catalog.files import ReadBytes
from icemigrate.catalog.layouts import (
    DATA_FILE,
    STATUS,
    STATUS_DELETED,
    Listed,
    Manifest,
    is_cheap,
    listed,
)
from icemigrate.frozen import Frozen
from icemigrate.model.deletes import NONE_DELETED, Deleted, DeleteFile, DeleteKind, Rows, deleted_rows
from icemigrate.model.evidence import Gaps, Share, Sought

_PATH, _ROWS, _SIZES, _VALUES, _NULLS = 100, 103, 108, 109, 110
_KEYS = {_SIZES: 117, _VALUES: 119}
"""The id of the key in each of these maps, which Avro knows as a list of records."""
_NULLS_KEY, _NULLS_VALUE = _NULLS_PAIR = 121, 122
_SEQUENCE, _FORMAT, _CONTENT, _REFERENCED = 3, 101, 134, 143
_EQUALITY_DELETES = 2
BOUNDS = {125: (126, 127), 128: (129, 130)}
"""The lower and the upper bounds, each with the ids of its key and its value."""
_PATH_OF_DELETE = 2147483546
"""In a position delete file, the path of the data file (specification, "Reserved Field IDs")."""
_METRICS = "write.metadata.metrics."
_MOST_MEASURED = 100
"""Of how many fields there are metrics where no property says otherwise."""


def held_of(
    metadata: Mapping[str, Any], read: ReadBytes, fields: Mapping[int, frozenset[int]]
) -> Mapping[int, Share] | None:
    """By field, how many rows of the current snapshot stand in files that hold values of it.

    ``None`` where that cannot be found out quickly.

    :param metadata: the table's whole metadata.
    :param fields: each with the fields that have metrics of their own: itself, or those below it.
    """
    found = _read(metadata, read, None)
    if found is None:
        return None
    measured = is_measured(metadata)
    deleted = found.deleted()
    return {i: _share(found.files, leaves, measured, deleted) for i, leaves in fields.items()}


def gaps_of(
    metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int, fields: Mapping[int, Sought]
) -> Mapping[int, Gaps] | None:
    """By field, how many rows of a snapshot have no value of it; as :func:`held_of`.

    ``None`` of a snapshot that is gone, too.

    :param snapshot_id: of which it is asked.
    """
    if not any(s["snapshot-id"] == snapshot_id for s in metadata.get("snapshots") or ()):
        return None
    found = _read(metadata, read, snapshot_id)
    if found is None:
        return None
    measured, has_deletes = is_measured(metadata), found.listed.has_deletes
    return {i: _gaps(found.files, i, sought, measured, has_deletes) for i, sought in fields.items()}


class _Found(Frozen):
    """What the manifests of a snapshot say of its data files.

    :param sequences: the data sequence number of each file.
    """

    listed: Listed
    files: list[Record]
    sequences: list[int | None]
    deletes: list[DeleteFile]

    def deleted(self) -> dict[str, Deleted]:
        """How many rows of each file are deleted; of a file that is not here none are."""
        rows = {
            file[_PATH]: Rows(file[_ROWS], sequence)
            for file, sequence in zip(self.files, self.sequences, strict=True)
        }
        return deleted_rows(rows, self.deletes)


def _read(metadata: Mapping[str, Any], read: ReadBytes, snapshot_id: int | None) -> _Found | None:
    # It is no fault of a plan that it may not read this, and whatever reads the file may lie below.
    try:
        found = listed(metadata, read, snapshot_id)
        if found is None or not is_cheap((*found.manifests, *found.deletes)):
            return None
        entries = [entry for manifest in found.manifests for entry in _entries(read, manifest, _WANTED)]
        deletes = [
            _delete(file, sequence)
            for manifest in found.deletes
            for file, sequence in _entries(read, manifest, _WANTED_OF_DELETES)
        ]
        return _Found(found, [file for file, _ in entries], [number for _, number in entries], deletes)
    except Exception:
        return None


def _entries(
    read: ReadBytes, manifest: Manifest, wanted: Collection[int]
) -> Iterator[tuple[Record, int | None]]:
    """The live files of a manifest with their data sequence numbers, which new ones inherit from it."""
    for entry in records(read(manifest.path), wanted):
        if entry[STATUS] != STATUS_DELETED:
            number = entry.get(_SEQUENCE)
            yield entry[DATA_FILE], manifest.sequence if number is None else number


_WANTED = (STATUS, _SEQUENCE, DATA_FILE, _PATH, _ROWS, *_KEYS, *_KEYS.values(), _NULLS, *_NULLS_PAIR)


def _delete(file: Record, sequence: int | None) -> DeleteFile:
    if file.get(_CONTENT) == _EQUALITY_DELETES:
        return DeleteFile(DeleteKind.EQUALITY, file[_ROWS], sequence)
    is_vector = str(file.get(_FORMAT)).upper() == "PUFFIN"
    kind = DeleteKind.VECTOR if is_vector else DeleteKind.POSITIONS
    return DeleteFile(kind, file[_ROWS], sequence, file.get(_REFERENCED) or _only_path(file))


def _only_path(file: Record) -> str | None:
    """The data file whose rows a position delete file deletes, where the bounds of its paths are the same."""
    lower, upper = (
        next((pair[value] for pair in file.get(bounds) or () if pair[key] == _PATH_OF_DELETE), None)
        for bounds, (key, value) in BOUNDS.items()
    )
    if lower is None or lower != upper:
        return None
    return bytes(lower).decode()


_BOUNDED = (*BOUNDS, *(part for pair in BOUNDS.values() for part in pair))
_WANTED_OF_DELETES = (STATUS, _SEQUENCE, DATA_FILE, _ROWS, _FORMAT, _CONTENT, _REFERENCED, *_BOUNDED)


def present_fields(file: Record) -> set[int]:
    """The fields that a file has, as far as it says so."""
    return {pair[key] for of, key in _KEYS.items() for pair in file.get(of) or ()}


def _gaps(files: list[Record], field_id: int, sought: Sought, says_all: bool, has_deletes: bool) -> Gaps:
    """
    :param has_deletes: whether rows are marked as deleted, and maybe all those that hold a null.
    """
    nulls = unknown = silent = 0
    lacking = list[Record]()
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
    return Gaps(sum(file[_ROWS] for file in lacking), nulls, unknown + silent, silent, len(lacking), example)


def _share(
    files: list[Record], leaves: frozenset[int], says_all: bool, deleted: Mapping[str, Deleted]
) -> Share:
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
    return Share(held, unknown, total, held_unsure, total_unsure)


def is_measured(metadata: Mapping[str, Any]) -> bool:
    """Whether a file that tells of some fields tells of all that it has."""
    schemas = metadata.get("schemas") or [metadata.get("schema") or {}]
    said = metadata.get("properties") or {}
    return max(map(_width, schemas)) <= _MOST_MEASURED and not any(key.startswith(_METRICS) for key in said)


def _width(type_: Any) -> int:
    """How many fields there are in a type as its JSON has it, what is in structs, lists and maps included."""
    if not isinstance(type_, Mapping):
        return 0
    inside = [field["type"] for field in type_.get("fields", ())]
    inside += [type_[key] for key in ("element", "key", "value") if key in type_]
    return len(inside) + sum(map(_width, inside))
