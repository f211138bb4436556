"""Entries of manifests whose partition fields have lost their values, read with Iceberg's Java API.

While the source column of an identity or truncate field is dropped, Iceberg does not know the type of the
field: it reads and writes null for it.  Every manifest that is rewritten in that time (merged by an append,
filtered by a delete, rewritten) has lost these values.  A transform with a result type of its own (bucket,
year, month, day, hour) keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.iceberg.partitioning import PartitionSpec, Transform
from icemigrate.iceberg.schema_json import spec_from_json, type_from_json, type_to_json
from icemigrate.iceberg.types import JsonValue, Type
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.java_manifests import iterate_java
from icemigrate.spark.metadata_commit import java_spec

PATH_COLUMN = 2147483546
"""The id of ``file_path`` in a position delete file (specification, "Reserved Field IDs")."""
_UNTYPED = "UNKNOWN"
_DATA = 0

Key: TypeAlias = tuple[str, int | None]
"""A file by its path; a deletion vector by its offset in the file, too."""


class LossyPartitionField(Frozen):
    """A partition field whose values depend on the type of its source column.

    :param at: its position in the spec.
    :param id: of the partition field.
    :param column: the id of the source column.
    """

    at: int
    id: int
    name: str
    column: int
    transform: Transform
    type: Type


@dataclass(slots=True)
class PartitionEntry:
    """A live file from a manifest.

    :param file: Java's ``ContentFile``, a copy; ``None`` where it is only read.
    :param saved: the same as JSON, with the metrics of source columns only.
    :param values: by partition field id; restored values are added.
    :param found: ids of the partition fields whose value was found.
    """

    saved: Mapping[str, Any]
    values: dict[int, JsonValue]
    file: Any = None
    snapshot_id: int = 0
    sequence: int = 0
    file_sequence: int | None = None
    found: set[int] = field(default_factory=set)

    @property
    def is_changed(self) -> bool:
        """Whether a value was found."""
        return bool(self.found)

    @property
    def key(self) -> Key:
        """Its identity in every manifest."""
        return self.saved["file-path"], self.saved.get("content-offset")

    @property
    def content(self) -> str:
        """``data``, ``position-deletes`` or ``equality-deletes``."""
        return str(self.saved["content"]).lower().replace("_", "-")

    def bound(self, which: str, column: int) -> bytes | None:
        """The ``lower`` or ``upper`` bound of a column."""
        value = _pairs(self.saved, f"{which}-bounds").get(column)
        return None if value is None else bytes.fromhex(value)

    def count(self, what: str, column: int) -> int | None:
        """A count of a column's values, such as ``null-value-counts``."""
        return _pairs(self.saved, what).get(column)


@dataclass(slots=True)
class IncompleteManifest:
    """A manifest of which entries lack values.

    :param java: Java's ``ManifestFile``.
    """

    java: Any
    spec_id: int
    entries: tuple[PartitionEntry, ...]

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not delete files."""
        return bool(self.java.content().id() == _DATA)


def lossy_partition_fields(
    metadata: Mapping[str, Any], columns: Mapping[int, Type]
) -> dict[int, tuple[LossyPartitionField, ...]]:
    """The partition fields that lose their values while their source is dropped, by the id of their spec.

    :param metadata: the JSON of a metadata file.
    :param columns: the restored columns.
    """
    found: dict[int, tuple[LossyPartitionField, ...]] = {}
    for saved in metadata.get("partition-specs") or ():
        spec = spec_from_json(saved)
        sources = tuple(
            LossyPartitionField(at, f.id, f.name, f.source_ids[0], f.transform, columns[f.source_ids[0]])
            for at, f in enumerate(spec.fields)
            if f.transform.name in ("identity", "truncate") and f.source_ids[0] in columns
        )
        if sources:
            found[spec.id] = sources
    return found


@dataclass(slots=True)
class PartitionEntryReader:
    """Reads manifests of a table with the types of dropped columns.

    :param java: the catalog.
    :param metadata: Java's ``TableMetadata``.
    :param saved: the JSON of the table's metadata from before the columns were restored.
    :param io: Java's ``FileIO``.
    :param fields: the result of :func:`lossy_partition_fields`.
    :param is_for_writing: whether the entries that lack values are rewritten.
    """

    java: JavaCatalog
    metadata: Any
    saved: Mapping[str, Any]
    io: Any
    fields: Mapping[int, tuple[LossyPartitionField, ...]]
    is_for_writing: bool = False
    specs: dict[int, Any] = field(default_factory=dict)
    _ids: dict[int, list[int]] = field(default_factory=dict)
    _by_id: Any = None
    _measured: Any = None

    def __post_init__(self) -> None:
        iceberg, util = self.java.iceberg, self.java.jvm.java.util
        self._by_id, self._measured = util.HashMap(self.metadata.specsById()), util.HashSet()
        self._measured.add(PATH_COLUMN)
        columns = {s.column: s.type for sources in self.fields.values() for s in sources}
        for column in columns:
            self._measured.add(column)
        for saved in self.saved["partition-specs"]:
            spec = spec_from_json(saved)
            if spec.id not in self.fields:
                continue
            java = self.metadata.spec(spec.id)
            if not _is_typed(java):
                schema = _schema_of_sources(self.saved, spec, columns)
                java = (
                    java
                    if schema is None
                    else java_spec(iceberg, iceberg.SchemaParser.fromJson(schema), spec)
                )
                self._by_id.put(spec.id, java)
            self.specs[spec.id] = java
            self._ids[spec.id] = [f.id for f in spec.fields]

    def manifests(self, snapshot: Any) -> Iterator[Any]:
        """Java's manifests of a snapshot that can be affected: those of such a spec with live files."""
        for manifest in iterate_java(snapshot.allManifests(self.io)):
            counts = manifest.addedFilesCount(), manifest.existingFilesCount()
            if manifest.partitionSpecId() in self.fields and (None in counts or sum(counts) > 0):
                yield manifest

    def lacking(self, snapshot: Any) -> list[IncompleteManifest]:
        """The manifests of a snapshot with a null value: it may be null, or may have been lost."""
        found = []
        for manifest in self.manifests(snapshot):
            sources = self.fields[manifest.partitionSpecId()]
            # For a field of unknown type Iceberg records neither a null nor any bound.
            if not _summary_says(manifest, sources, lambda s: s.containsNull() or s.lowerBound() is None):
                continue
            entries = tuple(self.entries(manifest))
            if any(e.values.get(s.id) is None for e in entries for s in sources):
                found.append(IncompleteManifest(manifest, manifest.partitionSpecId(), entries))
        return found

    def has_values(self, manifest: Any) -> bool:
        """Whether a manifest has any value of the affected fields, as far as its summary shows."""

        def says(summary: Any) -> bool:
            return summary.lowerBound() is not None or bool(summary.containsNaN())

        return _summary_says(manifest, self.fields[manifest.partitionSpecId()], says)

    def entries(self, manifest: Any, only: Collection[Key] | None = None) -> Iterator[PartitionEntry]:
        """The live entries of a manifest.

        :param only: paths of files; by default all.
        """
        files = self.java.iceberg.ManifestFiles
        read = files.read if manifest.content().id() == _DATA else files.readDeleteManifest
        reader = read(manifest, self.io, self._by_id)
        spec = self.specs[manifest.partitionSpecId()]
        paths = None if only is None else {path for path, _ in only}
        try:
            for java in iterate_java(self._live(reader)):
                # The iterator gives one object again and again.
                file = java.file()
                if paths is not None and str(file.location()) not in paths:
                    continue
                entry = self._entry(java, file, spec, self.is_for_writing and only is None)
                if only is None or entry.key in only:
                    yield entry
        finally:
            reader.close()

    def _live(self, reader: Any) -> Any:
        # Only an entry has the id of the snapshot that added a file, for which Iceberg has no public method.
        lang = self.java.jvm.java.lang
        method = reader.getClass().getDeclaredMethod("liveEntries", self.java.array(lang.Class, ()))
        method.setAccessible(True)
        return method.invoke(reader, self.java.array(lang.Object, ()))

    def _entry(self, java: Any, file: Any, spec: Any, is_whole: bool) -> PartitionEntry:
        few = file.copyWithStats(self._measured)
        saved = json.loads(str(self.java.iceberg.ContentFileParser.toJson(few, spec)))
        entry = PartitionEntry(saved, _values(saved.get("partition"), self._ids[saved["spec-id"]]))
        if is_whole:  # each of these is a call of a tenth of a millisecond
            entry.file, entry.snapshot_id = file.copy(), java.snapshotId()
            entry.sequence, entry.file_sequence = java.dataSequenceNumber(), java.fileSequenceNumber()
        return entry


def _values(saved: Any, ids: Sequence[int]) -> dict[int, JsonValue]:
    if isinstance(saved, list):
        return dict(zip(ids, saved, strict=True))
    return {i: (saved or {}).get(str(i)) for i in ids}  # as Iceberg before 1.11 writes it


def _pairs(saved: Mapping[str, Any], key: str) -> dict[int, Any]:
    pairs = saved.get(key)
    return {} if pairs is None else dict(zip(pairs["keys"], pairs["values"], strict=True))


def _summary_says(manifest: Any, sources: Iterable[LossyPartitionField], says: Any) -> bool:
    """Whether the manifest list shows it for one of the fields, or shows nothing."""
    summaries = manifest.partitions()
    return summaries is None or any(says(summaries[s.at]) for s in sources)


def _is_typed(spec: Any) -> bool:
    return all(f.type().typeId().toString() != _UNTYPED for f in iterate_java(spec.partitionType().fields()))


def _schema_of_sources(
    metadata: Mapping[str, Any], spec: PartitionSpec, columns: Mapping[int, Type]
) -> str | None:
    """A schema with only a spec's source columns, as JSON; ``None`` where the type of one is unknown."""
    fields = []
    for column in {i for f in spec.fields for i in f.source_ids}:
        type_ = columns.get(column) or type_in(metadata, column)
        if type_ is None:
            return None
        named = {"id": column, "name": f"source {column}", "required": False, "type": type_to_json(type_)}
        fields.append(named)
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


def type_in(metadata: Mapping[str, Any], column: int) -> Type | None:
    """The type of a column in the newest schema that has it."""
    schemas = metadata.get("schemas") or [metadata.get("schema") or {}]
    current = metadata.get("current-schema-id")
    for schema in sorted(schemas, key=lambda s: (s.get("schema-id") == current, s.get("schema-id", 0)))[::-1]:
        found = _field_in(schema, column)
        if found is not None:
            return type_from_json(found["type"])
    return None


def _field_in(type_: Any, column: int) -> Mapping[str, Any] | None:
    if not isinstance(type_, Mapping):
        return None
    for one in type_.get("fields", ()):
        found = one if one["id"] == column else _field_in(one["type"], column)
        if found is not None:
            return found
    return None
