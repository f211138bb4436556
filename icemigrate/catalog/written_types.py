"""Under which types the live files of a table were written, as its manifests and its schemas tell.

A reader fails on a file that was written under a wider type than the column has, whatever the values.  The
bounds of a file have as many bytes as the type that it was written under (specification, "Binary single-value
serialization"); where they do not tell, the snapshot that added the file names the schema of then.
Every branch counts, since all are read under the current schema.  No data file is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.catalog.avro import Record, records
from icemigrate.catalog.files import ReadBytes
from icemigrate.catalog.held import BOUNDS, is_measured, present_fields
from icemigrate.catalog.layouts import DATA_FILE, STATUS, STATUS_DELETED, listed
from icemigrate.model.evidence import WiderFiles
from icemigrate.model.json_form import schema_from_json
from icemigrate.model.marks import is_own_branch
from icemigrate.model.metadata_parts import schema_jsons
from icemigrate.model.promotions import promotion_since
from icemigrate.model.schema import Schema
from icemigrate.model.types import Primitive, Type

_SNAPSHOT = 1
_METRICS = (108, 117, 109, 119, *BOUNDS, *(part for pair in BOUNDS.values() for part in pair))
_WANTED = (STATUS, _SNAPSHOT, DATA_FILE, *_METRICS)
_FOUR_BYTES = frozenset({Primitive("int"), Primitive("float"), Primitive("date")})


def is_wider(type_: Type, narrow: Type) -> bool:
    """Whether the one type is a promotion of the other, in any format version."""
    return promotion_since(narrow, type_) is not None


def wider_files_of(
    metadata: Mapping[str, Any], read: ReadBytes, fields: Mapping[int, Type]
) -> Mapping[int, WiderFiles]:
    """By field, the live files that cannot be read under a type.

    :param metadata: the table's whole metadata.
    :param fields: fields without fields below them, each with the type.
    """
    schemas = dict[int, Schema]()
    # It is no fault of a plan that it may not read this, and whatever reads the file may lie below.
    try:
        schemas |= {json.get("schema-id", 0): schema_from_json(json) for json in schema_jsons(metadata)}
        files = list(_files(metadata, read))
    except Exception:
        return {i: WiderFiles(0, None, _widest(schemas, i, type_)) for i, type_ in fields.items()}
    under = {s["snapshot-id"]: schemas.get(s.get("schema-id", -1)) for s in metadata.get("snapshots") or ()}
    says_all = is_measured(metadata)
    return {
        i: _counted(files, i, type_, _widest(schemas, i, type_), under, says_all)
        for i, type_ in fields.items()
    }


def _widest(schemas: Mapping[int, Schema], field_id: int, narrow: Type) -> Type | None:
    """The widest type that the field had in a schema of the table, where it is wider."""
    widest: Type | None = None
    for schema in schemas.values():
        field = schema.by_id(field_id)
        if field is not None and is_wider(field.type, widest or narrow):
            widest = field.type
    return widest


def _counted(
    files: list[tuple[Record, int | None]],
    field_id: int,
    narrow: Type,
    widest: Type | None,
    under: Mapping[int, Schema | None],
    says_all: bool,
) -> WiderFiles:
    wider = unknown = 0
    for file, snapshot_id in files:
        there = present_fields(file)
        if field_id not in there and there and says_all:
            continue
        length = _length_of_bound(file, field_id) if narrow in _FOUR_BYTES else None
        schema = None if snapshot_id is None else under.get(snapshot_id)
        if length is not None:
            wider += length > 4
        elif schema is None:
            unknown += 1
        elif (field := schema.by_id(field_id)) is not None:
            wider += is_wider(field.type, narrow)
    return WiderFiles(wider, unknown, widest)


def _length_of_bound(file: Record, field_id: int) -> int | None:
    for bounds, (key, value) in BOUNDS.items():
        for pair in file.get(bounds) or ():
            if pair[key] == field_id:
                return len(pair[value])
    return None


def _files(metadata: Mapping[str, Any], read: ReadBytes) -> Iterator[tuple[Record, int | None]]:
    """The live data files of main and of each branch of others, each with the snapshot that added it."""
    heads = {metadata.get("current-snapshot-id")} | {
        ref["snapshot-id"]
        for name, ref in (metadata.get("refs") or {}).items()
        if ref.get("type") == "branch" and not is_own_branch(name)
    }
    there = {s["snapshot-id"] for s in metadata.get("snapshots") or ()}
    seen = set[str]()
    for head in heads & there:
        found = listed(metadata, read, head)
        if found is None:
            raise ValueError("the manifest list does not tell which manifests have live files")
        for manifest in found.manifests:
            if manifest.path in seen:
                continue
            seen.add(manifest.path)
            for entry in records(read(manifest.path), _WANTED):
                if entry[STATUS] != STATUS_DELETED:
                    added_by = entry.get(_SNAPSHOT)
                    yield entry[DATA_FILE], manifest.snapshot_id if added_by is None else added_by
