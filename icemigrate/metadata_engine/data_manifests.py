"""Manifests of data files: written for new files, and written again without removed files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import (
    current_schema,
    current_schema_id,
    default_spec_id,
    read_specs,
    schema_jsons,
)
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.schema_json import spec_to_json
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.data_files import DataFile, data_file_record
from icemigrate.metadata_engine.manifest_lists import ManifestFile, encode_avro, encode_record, read_avro
from icemigrate.metadata_engine.manifest_merge import ADDED, DELETED, EXISTING
from icemigrate.metadata_engine.manifest_partitions import (
    field_summaries,
    partition_record,
    partition_type,
)
from icemigrate.metadata_engine.manifest_schemas import avro_name, avro_record, manifest_fields
from icemigrate.metadata_engine.table_store import FileStore

PartitionKey: TypeAlias = tuple[int, bytes]
"""A partition: the id of its spec, and its values in Avro, which are equal for values of Python that differ,
such as a date and its number of days."""

_DATA = 0
_STATUS_NAMES = {ADDED: "added", EXISTING: "existing", DELETED: "deleted"}


class Manifests:
    """Writes the manifests of one new snapshot.

    :param metadata: the table's complete metadata.
    """

    def __init__(self, metadata: Json, snapshot_id: int) -> None:
        self._metadata, self._snapshot_id = metadata, snapshot_id
        self._version: int = metadata["format-version"]
        self._schema = current_schema(metadata)
        self._specs = {spec.id: spec for spec in read_specs(metadata)}

    @property
    def default_spec(self) -> PartitionSpec:
        """The spec of new files."""
        return self._specs[default_spec_id(self._metadata)]

    def added(self, data: Sequence[DataFile]) -> tuple[bytes, ManifestFile]:
        """The manifest of new files, and its entry in the manifest list."""
        fields = partition_type(self.default_spec, self._schema).fields
        entries = [
            {
                "status": ADDED,
                "snapshot_id": self._snapshot_id,
                "data_file": data_file_record(file, partition_record(fields, self._values(file))),
            }
            for file in data
        ]
        summaries = field_summaries(fields, [self._values(file) for file in data])
        return self.content(self.default_spec, entries, summaries)

    def merged(self, entries: Sequence[Mapping[str, Any]]) -> tuple[bytes, ManifestFile]:
        """The manifest of files of the default spec, whose fields are void; see :meth:`content`."""
        fields = partition_type(self.default_spec, self._schema).fields
        return self.content(self.default_spec, entries, field_summaries(fields, [(None,) * len(fields)]))

    def partitions(self, data: Sequence[DataFile]) -> frozenset[PartitionKey]:
        """The partitions that new files are in."""
        fields = partition_type(self.default_spec, self._schema).fields
        records = (partition_record(fields, self._values(file)) for file in data)
        return frozenset(self._partition_key(self.default_spec, record) for record in records)

    def _partition_key(self, spec: PartitionSpec, partition: Mapping[str, Any]) -> PartitionKey:
        schema = avro_record("partition", partition_type(spec, self._schema).fields)
        return spec.id, encode_record(schema, partition)

    def _values(self, file: DataFile) -> tuple[Any, ...]:
        """The partition of a file; all values are null where the spec has only void fields."""
        assert file.partition or not self.default_spec.live, "a file of a partitioned table has a partition"
        return file.partition or (None,) * len(self.default_spec.fields)

    def content(
        self,
        spec: PartitionSpec,
        entries: Sequence[Mapping[str, Any]],
        summaries: Sequence[Any] | None,
    ) -> tuple[bytes, ManifestFile]:
        """The content of a manifest, and its entry in the manifest list.

        :param entries: files of one spec.  Sequence numbers of added ones are null: they inherit those of
            the manifest (specification, "Sequence Number Inheritance").
        :param summaries: of the partition fields; ``None`` where they are unknown, so that readers skip no
            file.
        """
        fields = manifest_fields(self._version, partition_type(spec, self._schema))
        current = current_schema_id(self._metadata)
        schemas = (s for s in schema_jsons(self._metadata) if s.get("schema-id", 0) == current)
        header = {
            "schema": json.dumps(dict(next(schemas))),
            "partition-spec": json.dumps(spec_to_json(spec)["fields"]),
            "partition-spec-id": str(spec.id),
            "format-version": str(self._version),
            **({"content": "data"} if self._version > 1 else {}),
        }
        properties: Mapping[str, str] = self._metadata.get("properties") or {}
        codec = properties.get("write.manifest.compression-codec", "")
        content = encode_avro(
            avro_record("manifest_entry", fields),
            fields,
            entries,
            header,
            "null" if codec.lower() == "uncompressed" else "deflate",
        )
        return content, {
            **{"manifest_length": len(content), "partition_spec_id": spec.id, "content": _DATA},
            "added_snapshot_id": self._snapshot_id,
            **_counts(entries),
            **({} if summaries is None else {"partitions": list(summaries)}),
        }

    def without(
        self, manifest: ManifestFile, removed: Collection[str], files: FileStore
    ) -> RewrittenManifest | None:
        """A manifest in which files are marked as deleted; ``None`` where it has none of them.

        :param removed: locations of files.
        :raises EngineError: the manifest cannot be read.
        """
        path = manifest["manifest_path"]
        _, records = read_avro("manifest", path, files)
        if not any(r["status"] != DELETED and r["data_file"]["file_path"] in removed for r in records):
            return None
        spec = self._specs.get(manifest["partition_spec_id"])
        if spec is None:
            raise EngineError(f"the manifest {path} has a partition spec that the table does not have")
        names = {avro_name(f.name) for f in partition_type(spec, self._schema).fields}
        entries, gone = list[dict[str, Any]](), list[Mapping[str, Any]]()
        for record in records:
            if record["status"] == DELETED:
                continue
            file = {"content": _DATA, **record["data_file"]}
            file["partition"] = {name: file["partition"].get(name) for name in names}
            is_removed = file["file_path"] in removed
            if is_removed:
                gone.append(file)
            entries.append(self._rewritten(record, file, manifest, is_removed=is_removed))
        sequence = min(entry["sequence_number"] for entry in entries)
        content, entry = self.content(spec, entries, manifest.get("partitions"))
        partitions = frozenset(self._partition_key(spec, file["partition"]) for file in gone)
        return RewrittenManifest(content, entry, sequence, tuple(gone), partitions)

    def _rewritten(
        self, record: Mapping[str, Any], file: Json, manifest: ManifestFile, *, is_removed: bool
    ) -> dict[str, Any]:
        """An entry with the numbers that it inherited; a deleted one names this snapshot."""
        inherited = {
            "snapshot_id": manifest["added_snapshot_id"],
            "sequence_number": manifest["sequence_number"],
            "file_sequence_number": manifest["sequence_number"],
        }
        own = {key: record[key] for key in inherited if record.get(key) is not None}
        changed = {"status": DELETED, "snapshot_id": self._snapshot_id} if is_removed else {}
        block = {"block_size_in_bytes": file.get("block_size_in_bytes") or 64 * 1024 * 1024}
        return {**inherited, **own, "status": EXISTING, **changed, "data_file": {**block, **file}}


class RewrittenManifest(Frozen):
    """A manifest in which files are marked as deleted.

    :param entry: of the manifest list.
    :param sequence: the lowest sequence number of a file.
    :param removed: the deleted files, as the manifest describes them.
    :param partitions: the partitions of the deleted files.
    """

    content: bytes
    entry: ManifestFile
    sequence: int
    removed: tuple[Mapping[str, Any], ...]
    partitions: frozenset[PartitionKey]


def _counts(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = dict[str, int]()
    for status, kind in _STATUS_NAMES.items():
        rows = [entry["data_file"]["record_count"] for entry in entries if entry["status"] == status]
        counts |= {f"{kind}_files_count": len(rows), f"{kind}_rows_count": sum(rows)}
    return counts


def partition_fields(metadata: Json) -> tuple[Field, ...]:
    """The fields of a partition of the table's default spec."""
    spec = next(s for s in read_specs(metadata) if s.id == default_spec_id(metadata))
    return partition_type(spec, current_schema(metadata)).fields
