"""The files of a new snapshot, as Java's ``FastAppend`` writes them: its manifest list and its manifest.

They are written before the commit that refers to them.  A fast append never merges manifests, so no manifest
of an earlier snapshot is read; an append that merges them reads those.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.metadata_parts import (
    current_schema,
    current_schema_id,
    default_spec_id,
    read_specs,
    schema_jsons,
)
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import spec_to_json
from icemigrate.iceberg.types import Field, Primitive, Struct
from icemigrate.metadata_engine.manifest_lists import (
    ManifestEntry,
    WrittenLists,
    carried_over,
    encode_avro,
    with_first_row_ids,
)
from icemigrate.metadata_engine.manifest_merge import ADDED, EXISTING, find_merge
from icemigrate.metadata_engine.manifest_schemas import (
    NEWEST_FORMAT_VERSION,
    avro_record,
    manifest_fields,
    manifest_list_fields,
)
from icemigrate.metadata_engine.metadata_file_names import location_of_metadata
from icemigrate.metadata_engine.snapshot_summary import append_summary
from icemigrate.metadata_engine.table_store import FileStore, Json

_DATA = 0
_BLOCK_SIZE = 64 * 1024 * 1024
"""What Java's library writes as ``block_size_in_bytes``, which version 1 requires and no reader uses."""
_UNSORTED = 0


class DataFile(Frozen):
    """A new Parquet data file of an unpartitioned table.

    Sizes, counts and bounds are by field id.

    :param path: its location.
    :param size: in bytes.
    :param records: number of its rows.
    :param column_sizes: in bytes, compressed.
    :param value_counts: numbers of values, with nulls.
    :param lower_bounds: no value is smaller; in the binary form of the specification's Appendix D.
    :param upper_bounds: no value is larger.
    :param split_offsets: where its row groups begin.
    """

    path: str
    size: int
    records: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


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
    :raises EngineError: the table has another format version, is encrypted, or is partitioned and ``data``
        is not empty; or a file cannot be read or written.
    :raises MissingExtra: fastavro is not installed.
    """
    version = _supported_version(metadata)
    parent = None if parent_id is None else _snapshot(metadata, parent_id)
    kept = carried_over(parent, files, version, written)
    snapshot_id = _new_id({s["snapshot-id"] for s in metadata.get("snapshots") or ()})
    sequence = metadata["last-sequence-number"] + 1 if version > 1 else 0
    commit = uuid.uuid4()
    contents = dict[str, bytes]()
    entries = kept.entries
    merged = find_merge(entries, files, default_spec_id(metadata), version) if merges else None
    if merged is not None:
        path = location_of_metadata(metadata, f"{commit}-m1.avro")
        contents[path], entry = _manifest(metadata, version, snapshot_id, merged.files)
        of_list = {"manifest_path": path, "sequence_number": sequence, "min_sequence_number": merged.sequence}
        entries = (*(e for e in entries if e["manifest_path"] not in merged.paths), {**entry, **of_list})
    if data:
        path = location_of_metadata(metadata, f"{commit}-m0.avro")
        added = [
            {"status": ADDED, "snapshot_id": snapshot_id, "data_file": _data_file(file)} for file in data
        ]
        contents[path], entry = _manifest(metadata, version, snapshot_id, added)
        of_list = {"manifest_path": path, "sequence_number": sequence, "min_sequence_number": sequence}
        entries = ({**entry, **of_list}, *entries)
    numbers: dict[str, int] = {"sequence-number": sequence} if version > 1 else {}
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
    location = location_of_metadata(metadata, f"snap-{snapshot_id}-1-{commit}.avro")
    contents[location] = encode_avro(kept.schema, manifest_list_fields(version), entries, header)
    _write_all(files, contents)
    if written is not None:
        written.keep(location, version, replace(kept, entries=entries))
    json_ = {
        "snapshot-id": snapshot_id,
        **({} if parent_id is None else {"parent-snapshot-id": parent_id}),
        **numbers,
        "timestamp-ms": _timestamp_ms(metadata, parent, now_ms),
        "summary": append_summary(
            summary,
            None if parent is None else parent.get("summary") or {},
            data_files=len(data),
            records=sum(file.records for file in data),
            size=sum(file.size for file in data),
            kept_manifests=len(kept.entries) - (0 if merged is None else len(merged.paths)),
            merged_manifests=0 if merged is None else len(merged.paths),
        ),
        "manifest-list": location,
        "schema-id": current_schema_id(metadata),
    }
    return NewSnapshot(json_, tuple(contents))


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


def _manifest(
    metadata: Json, version: int, snapshot_id: int, entries: Sequence[Mapping[str, Any]]
) -> tuple[bytes, ManifestEntry]:
    """The content of a manifest, and its entry in the manifest list.

    :param entries: added or existing files.  Sequence numbers of added ones are null: they inherit those of
        the manifest (specification, "Sequence Number Inheritance").
    """
    spec = _spec(metadata)
    fields = manifest_fields(version, _partition_type(spec, current_schema(metadata)))
    current = current_schema_id(metadata)
    schemas = (schema for schema in schema_jsons(metadata) if schema.get("schema-id", 0) == current)
    header = {
        "schema": json.dumps(dict(next(schemas))),
        "partition-spec": json.dumps(spec_to_json(spec)["fields"]),
        "partition-spec-id": str(spec.id),
        "format-version": str(version),
        **({"content": "data"} if version > 1 else {}),
    }
    codec = _properties(metadata).get("write.manifest.compression-codec", "")
    content = encode_avro(
        avro_record("manifest_entry", fields),
        fields,
        entries,
        header,
        "null" if codec.lower() == "uncompressed" else "deflate",
    )
    counts = dict[str, int]()
    for kind, status in (("added", ADDED), ("existing", EXISTING)):
        rows = [entry["data_file"]["record_count"] for entry in entries if entry["status"] == status]
        counts |= {f"{kind}_files_count": len(rows), f"{kind}_rows_count": sum(rows)}
    no_value = {"contains_null": True, "contains_nan": False, "lower_bound": None, "upper_bound": None}
    return content, {
        **{"manifest_length": len(content), "partition_spec_id": spec.id, "content": _DATA},
        "added_snapshot_id": snapshot_id,
        **counts,
        **{"deleted_files_count": 0, "deleted_rows_count": 0},
        "partitions": [no_value for _ in spec.fields],
    }


def _spec(metadata: Json) -> PartitionSpec:
    """The default spec; in version 1 it may have void fields."""
    found = next(spec for spec in read_specs(metadata) if spec.id == default_spec_id(metadata))
    if found.live:
        raise EngineError(
            f"the table at {metadata['location']} is partitioned, and icemigrate appends rows to "
            "unpartitioned tables only",
            "drop its partition fields",
        )
    return found


def _partition_type(spec: PartitionSpec, schema: Schema) -> Struct:
    """A field for each field of a spec; a void one has the type of its source, or none if that is dropped."""
    lines = ((f, schema.line_to(f.source_ids[0])) for f in spec.fields)
    unknown = Primitive("unknown")
    return Struct(tuple(Field(f.id, f.name, line[-1].type if line else unknown) for f, line in lines))


def _data_file(file: DataFile) -> dict[str, Any]:
    """The values of a data file by name: a version takes those that it has, and the others are null."""

    def pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "value": value} for key, value in values.items()]

    return {
        **{"content": _DATA, "file_path": file.path, "file_format": "PARQUET", "partition": {}},
        **{"record_count": file.records, "file_size_in_bytes": file.size, "block_size_in_bytes": _BLOCK_SIZE},
        **{"column_sizes": pairs(file.column_sizes), "value_counts": pairs(file.value_counts)},
        **{"null_value_counts": pairs(file.null_counts), "nan_value_counts": pairs(file.nan_counts)},
        **{"lower_bounds": pairs(file.lower_bounds), "upper_bounds": pairs(file.upper_bounds)},
        **{"split_offsets": list(file.split_offsets), "sort_order_id": _UNSORTED},
    }
