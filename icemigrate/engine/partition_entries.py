"""Entries of manifests whose partition fields have lost their values, by Iceberg's Java API.

While the source column of an identity or truncate field is dropped, Iceberg does not know the type of the
field: it reads and writes null for it.  Every manifest that is written again in that time (merged by an
append, filtered by a delete, rewritten) has lost these values.  A transform with a result type of its own
(bucket, year, month, day, hour) keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from icemigrate.engine.java_catalog import JavaCatalog
from icemigrate.engine.manifests import each
from icemigrate.engine.metadata_commit import java_spec
from icemigrate.frozen import Frozen
from icemigrate.model.json_form import spec_from_json, type_from_json, type_to_json
from icemigrate.model.partitioning import PartitionSpec, Transform
from icemigrate.model.types import JsonValue, Type

PATH_COLUMN = 2147483546
"""The id of ``file_path`` in a position delete file (specification, "Reserved Field IDs")."""
_UNTYPED = "UNKNOWN"
_DATA = 0

Key: TypeAlias = tuple[str, int | None]
"""A file by its path; a deletion vector by its offset in the file, too."""


class Source(Frozen):
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
class Entry:
    """A live file as a manifest has it.

    :param file: Java's ``ContentFile``, a copy of its own; ``None`` where it is only looked at.
    :param saved: the same as JSON, with the metrics of source columns only.
    :param values: by partition field id; those that are found are put in.
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
        """By which it is known in every manifest."""
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
class Manifest:
    """A manifest of which entries lack values.

    :param java: Java's ``ManifestFile``.
    """

    java: Any
    spec_id: int
    entries: tuple[Entry, ...]

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not delete files."""
        return bool(self.java.content().id() == _DATA)


def affected(metadata: Mapping[str, Any], columns: Mapping[int, Type]) -> dict[int, tuple[Source, ...]]:
    """The partition fields that lose their values while their source is gone, by the id of their spec.

    :param metadata: the JSON of a metadata file.
    :param columns: the columns that come back.
    """
    found: dict[int, tuple[Source, ...]] = {}
    for saved in metadata.get("partition-specs") or ():
        spec = spec_from_json(saved)
        sources = tuple(
            Source(at, f.id, f.name, f.source_ids[0], f.transform, columns[f.source_ids[0]])
            for at, f in enumerate(spec.fields)
            if f.transform.name in ("identity", "truncate") and f.source_ids[0] in columns
        )
        if sources:
            found[spec.id] = sources
    return found


@dataclass(slots=True)
class Reader:
    """Reads manifests of a table with the types of dropped columns known.

    :param java: the catalog.
    :param metadata: Java's ``TableMetadata``.
    :param saved: the JSON of the table's metadata, of before the columns came back.
    :param io: Java's ``FileIO``.
    :param fields: as :func:`affected` has it.
    :param is_for_writing: whether the entries that lack values are written again.
    """

    java: JavaCatalog
    metadata: Any
    saved: Mapping[str, Any]
    io: Any
    fields: Mapping[int, tuple[Source, ...]]
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
        """Java's manifests of a snapshot that can be affected: those of such a spec that have live files."""
        for manifest in each(snapshot.allManifests(self.io)):
            counts = manifest.addedFilesCount(), manifest.existingFilesCount()
            if manifest.partitionSpecId() in self.fields and (None in counts or sum(counts) > 0):
                yield manifest

    def lacking(self, snapshot: Any) -> list[Manifest]:
        """The manifests of a snapshot in which a value is null: each may be, or may have been lost."""
        found = []
        for manifest in self.manifests(snapshot):
            sources = self.fields[manifest.partitionSpecId()]
            # Of a field whose type it does not know Iceberg notes neither a null nor any bound.
            if not _summary_says(manifest, sources, lambda s: s.containsNull() or s.lowerBound() is None):
                continue
            entries = tuple(self.entries(manifest))
            if any(e.values.get(s.id) is None for e in entries for s in sources):
                found.append(Manifest(manifest, manifest.partitionSpecId(), entries))
        return found

    def has_values(self, manifest: Any) -> bool:
        """Whether a manifest has any value of the affected fields, as far as its summary tells."""

        def says(summary: Any) -> bool:
            return summary.lowerBound() is not None or bool(summary.containsNaN())

        return _summary_says(manifest, self.fields[manifest.partitionSpecId()], says)

    def entries(self, manifest: Any, only: Collection[Key] | None = None) -> Iterator[Entry]:
        """The live entries of a manifest.

        :param only: of these files; all where left out.
        """
        files = self.java.iceberg.ManifestFiles
        read = files.read if manifest.content().id() == _DATA else files.readDeleteManifest
        reader = read(manifest, self.io, self._by_id)
        spec = self.specs[manifest.partitionSpecId()]
        paths = None if only is None else {path for path, _ in only}
        try:
            for java in each(self._live(reader)):
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
        # The snapshot that added a file is told by an entry alone, for which Iceberg has no public method.
        lang = self.java.jvm.java.lang
        method = reader.getClass().getDeclaredMethod("liveEntries", self.java.array(lang.Class, ()))
        method.setAccessible(True)
        return method.invoke(reader, self.java.array(lang.Object, ()))

    def _entry(self, java: Any, file: Any, spec: Any, is_whole: bool) -> Entry:
        few = file.copyWithStats(self._measured)
        saved = json.loads(str(self.java.iceberg.ContentFileParser.toJson(few, spec)))
        entry = Entry(saved, _values(saved.get("partition"), self._ids[saved["spec-id"]]))
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


def _summary_says(manifest: Any, sources: Iterable[Source], says: Any) -> bool:
    """Whether the manifest list says it of one of the fields, or does not say anything."""
    summaries = manifest.partitions()
    return summaries is None or any(says(summaries[s.at]) for s in sources)


def _is_typed(spec: Any) -> bool:
    return all(f.type().typeId().toString() != _UNTYPED for f in each(spec.partitionType().fields()))


def _schema_of_sources(
    metadata: Mapping[str, Any], spec: PartitionSpec, columns: Mapping[int, Type]
) -> str | None:
    """A schema of a spec's source columns alone, as JSON; ``None`` where the type of one is unknown."""
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
