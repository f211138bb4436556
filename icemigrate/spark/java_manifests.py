"""The manifests of a table through Iceberg's Java API."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icemigrate.catalog.snapshot_manifests import LiveDataFile
from icemigrate.iceberg.delete_files import DeleteFile, DeleteKind
from icemigrate.iceberg.metadata_parts import SnapshotEntry
from icemigrate.spark.java_catalog import JavaCatalog


@dataclass(slots=True)
class JavaManifestReader:
    """A :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader` in Spark's JVM.

    It reads everything that Spark reads: encrypted tables, and storages for which only Spark has credentials.

    :param table: Java's ``Table``.
    :param fields: fields whose metrics are read; those of all fields of a wide table take kilobytes for each
        file.
    """

    java: JavaCatalog
    table: Any
    fields: Collection[int]
    _fields: Any = None
    _manifests: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fields = self.java.jvm.java.util.HashSet()
        for field_id in self.fields:
            self._fields.add(field_id)

    def data_manifests(self, snapshot: SnapshotEntry) -> list[str]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        return self._listed(self.table.snapshot(snapshot.id).dataManifests(self.table.io()))

    def delete_manifests(self, snapshot: SnapshotEntry) -> list[str]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        return self._listed(self.table.snapshot(snapshot.id).deleteManifests(self.table.io()))

    def _listed(self, manifests: Any) -> list[str]:
        found = {str(manifest.path()): manifest for manifest in iterate_java(manifests)}
        self._manifests |= found
        return list(found)

    def data_files(self, path: str) -> Iterator[LiveDataFile]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        manifest, iceberg = self._manifests[path], self.java.iceberg
        specs = self.table.specs()
        spec = specs.get(manifest.partitionSpecId())
        # A partition that the parser cannot write is left out; it is not needed.
        bare = None if _has_json(spec) else iceberg.PartitionSpec.unpartitioned()
        carrier = manifest.snapshotId()
        reader = iceberg.ManifestFiles.read(manifest, self.table.io(), specs)
        try:
            for found in iterate_java(reader):
                file = found.copyWithStats(self._fields)
                if bare is not None:
                    file = iceberg.DataFiles.builder(bare).copy(file).build()
                text = str(iceberg.ContentFileParser.toJson(file, spec if bare is None else bare))
                numbers = found.fileSequenceNumber(), found.dataSequenceNumber()
                yield _file(json.loads(text), numbers, carrier)
        finally:
            reader.close()

    def delete_files(self, path: str) -> Iterator[DeleteFile]:
        """See :class:`~icemigrate.catalog.snapshot_manifests.ManifestReader`."""
        read, table = self.java.iceberg.ManifestFiles.readDeleteManifest, self.table
        reader = read(self._manifests[path], table.io(), table.specs())
        try:
            for found in iterate_java(reader):
                yield self._delete(found)
        finally:
            reader.close()

    def _delete(self, found: Any) -> DeleteFile:
        records, sequence = found.recordCount(), found.dataSequenceNumber()
        if found.content().toString() == "EQUALITY_DELETES":
            return DeleteFile(DeleteKind.EQUALITY, records, sequence)
        is_vector = found.format().toString() == "PUFFIN"
        kind = DeleteKind.VECTOR if is_vector else DeleteKind.POSITIONS
        util = self.java.iceberg.util.ContentFileUtil
        return DeleteFile(kind, records, sequence, util.referencedDataFileLocation(found))


def iterate_java(found: Any) -> Iterator[Any]:
    """The elements of a Java collection.

    Py4J's own iteration ends with an exception in Java, which PySpark takes 10 ms to interpret.
    """
    elements = found.iterator()
    while elements.hasNext():
        yield elements.next()


def _has_json(spec: Any) -> bool:
    """Whether Iceberg's parser can write the partitions of a spec.

    It cannot where all fields are void, as in format version 1: to the parser that is no partitioning, and it
    refuses a file with a partition.  Nor where a field's source is gone, because its type is unknown then.
    """
    if not spec.isPartitioned():
        return bool(spec.fields().size() == 0)
    return all(f.type().typeId().toString() != "UNKNOWN" for f in iterate_java(spec.partitionType().fields()))


def _file(
    saved: Mapping[str, Any], numbers: tuple[int | None, int | None], carrier: int | None
) -> LiveDataFile:
    sequence, data_sequence = numbers
    return LiveDataFile(
        path=saved["file-path"],
        rows=saved["record-count"],
        sequence=sequence,
        sizes=_map(saved, "column-sizes"),
        values=_map(saved, "value-counts"),
        nulls=_map(saved, "null-value-counts"),
        carrier=carrier,
        first_row_id=saved.get("first-row-id"),
        data_sequence=data_sequence,
    )


def _map(saved: Mapping[str, Any], key: str) -> dict[int, Any]:
    pairs = saved.get(key)
    return {} if pairs is None else dict(zip(pairs["keys"], pairs["values"], strict=True))
