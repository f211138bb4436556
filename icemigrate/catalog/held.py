"""How many rows stand in files that hold values of certain fields, as the metrics in manifests tell.

Specification, "Manifests": ``column_sizes`` and ``value_counts`` of a data file name the fields that it has.
What is read is bounded as in :mod:`icemigrate.catalog.layouts`; no data file is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.catalog.avro import Record, records
from icemigrate.catalog.files import ReadBytes
from icemigrate.catalog.layouts import DATA_FILE, STATUS, STATUS_DELETED, is_cheap, listed
from icemigrate.model.evidence import Share

_ROWS, _SIZES, _VALUES = 103, 108, 109
_KEYS = {_SIZES: 117, _VALUES: 119}
"""The id of the key in each of these maps, which Avro knows as a list of records."""
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
    # It is no fault of a plan that it may not read this, and whatever reads the file may lie below.
    try:
        found = listed(metadata, read)
        if found is None or not is_cheap(found.manifests):
            return None
        files = [file for manifest in found.manifests for file in _files(read(manifest.path))]
    except Exception:
        return None
    is_measured = _is_measured(metadata)
    return {field_id: _share(files, leaves, is_measured) for field_id, leaves in fields.items()}


def _files(content: bytes) -> Iterator[Record]:
    wanted = (STATUS, DATA_FILE, _ROWS, *_KEYS, *_KEYS.values())
    return (e[DATA_FILE] for e in records(content, wanted) if e[STATUS] != STATUS_DELETED)


def _share(files: list[Record], leaves: frozenset[int], is_measured: bool) -> Share:
    held = unknown = total = 0
    for file in files:
        rows = file[_ROWS]
        there = {pair[key] for of, key in _KEYS.items() for pair in file.get(of) or ()}
        total += rows
        if leaves & there:
            held += rows
        elif not (there and is_measured):
            unknown += rows
    return Share(held, unknown, total)


def _is_measured(metadata: Mapping[str, Any]) -> bool:
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
