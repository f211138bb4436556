"""The types under which a table's live files were written, from its manifests and schemas.

A reader fails on a file that was written under a wider type than the column has, whatever the values.  The
bounds of a file have as many bytes as its type (specification, "Binary single-value serialization"); where
they are ambiguous, the snapshot that added the file has its schema.  Every branch counts, because all are
read under the current schema.  No data file is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icemigrate.catalog.avro import AvroRecord, read_records
from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED, read_manifest_list
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.catalog.value_counts import BOUNDS, is_measured, present_fields
from icemigrate.iceberg.file_evidence_values import WiderFiles
from icemigrate.iceberg.metadata_parts import schema_jsons
from icemigrate.iceberg.ref_names import is_icemigrate_branch
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.type_promotions import promotion_since
from icemigrate.iceberg.types import Primitive, Type

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

    :param metadata: the table's complete metadata.
    :param fields: leaf fields, each with the type.
    """
    schemas = dict[int, Schema]()
    # A plan works without these files, and the reader of the file may raise any exception.
    try:
        schemas |= {json.get("schema-id", 0): schema_from_json(json) for json in schema_jsons(metadata)}
        under = {
            s["snapshot-id"]: schemas.get(s.get("schema-id", -1)) for s in metadata.get("snapshots") or ()
        }
        says_all = is_measured(metadata)
        counts = {i: _Counts() for i in fields}
        # One file after another: a table may have millions.
        for file, snapshot_id in _files(metadata, read):
            there = present_fields(file)
            for i, type_ in fields.items():
                if i in there or not there or not says_all:
                    counts[i].take(file, i, type_, None if snapshot_id is None else under.get(snapshot_id))
    except Exception:
        return {i: WiderFiles(0, None, _widest(schemas, i, type_)) for i, type_ in fields.items()}
    return {
        i: WiderFiles(counts[i].wider, counts[i].unknown, _widest(schemas, i, type_))
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


@dataclass(slots=True)
class _Counts:
    """Files that were written under a wider type, and those that may have been."""

    wider: int = 0
    unknown: int = 0

    def take(self, file: AvroRecord, field_id: int, narrow: Type, schema: Schema | None) -> None:
        """Count a file that has the field, or may have it.

        :param schema: that of the snapshot that added the file; ``None`` where it has expired.
        """
        length = _length_of_bound(file, field_id) if narrow in _FOUR_BYTES else None
        if length is not None:
            self.wider += length > 4
        elif schema is None:
            self.unknown += 1
        elif (field := schema.by_id(field_id)) is not None:
            self.wider += is_wider(field.type, narrow)


def _length_of_bound(file: AvroRecord, field_id: int) -> int | None:
    for bounds, (key, value) in BOUNDS.items():
        for pair in file.get(bounds) or ():
            if pair[key] == field_id:
                return len(pair[value])
    return None


def _files(metadata: Mapping[str, Any], read: ReadBytes) -> Iterator[tuple[AvroRecord, int | None]]:
    """The live data files of main and of other clients' branches, each with the snapshot that added it."""
    heads = {metadata.get("current-snapshot-id")} | {
        ref["snapshot-id"]
        for name, ref in (metadata.get("refs") or {}).items()
        if ref.get("type") == "branch" and not is_icemigrate_branch(name)
    }
    there = {s["snapshot-id"] for s in metadata.get("snapshots") or ()}
    seen = set[str]()
    for head in heads & there:
        found = read_manifest_list(metadata, read, head)
        if found is None:
            raise ValueError("the manifest list does not show which manifests have live files")
        for manifest in found.manifests:
            if manifest.path in seen:
                continue
            seen.add(manifest.path)
            for entry in read_records(read(manifest.path), _WANTED):
                if entry[STATUS] != STATUS_DELETED:
                    added_by = entry.get(_SNAPSHOT)
                    yield entry[DATA_FILE], manifest.snapshot_id if added_by is None else added_by
