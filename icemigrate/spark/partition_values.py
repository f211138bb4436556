"""Finds partition values that manifests have lost.

The sources, in this order: the manifests of older snapshots, the bounds and null counts of the file itself,
and the file's own column, of which one row is read.  The path of a file is not used: the specification gives
it no meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from icemigrate.catalog.capabilities import NAME_MAPPING
from icemigrate.iceberg.ref_names import is_icemigrate_tag
from icemigrate.iceberg.schema_json import type_to_json
from icemigrate.iceberg.single_values import apply_transform, from_bytes
from icemigrate.iceberg.types import JsonValue
from icemigrate.spark.java_manifests import iterate_java
from icemigrate.spark.partition_entries import (
    PATH_COLUMN,
    IncompleteManifest,
    Key,
    LossyPartitionField,
    PartitionEntry,
    PartitionEntryReader,
)

_MOST_SNAPSHOTS = 100
"""The maximum number of older snapshots to read: the manifest list of each is one file."""
_FILE_PATH = {"id": PATH_COLUMN, "name": "file_path", "required": True, "type": "string"}


def find_values(
    reader: PartitionEntryReader, snapshot: Any, lacking: Sequence[IncompleteManifest]
) -> dict[Key, tuple[LossyPartitionField, ...]]:
    """Find the values that a snapshot's entries lack; each is set in its entry.

    :param snapshot: Java's ``Snapshot``.
    :param lacking: its manifests whose entries lack values.
    :returns: the files whose values were not found, each with the partition fields.
    """
    wanted = {e.key: _IncompleteEntry(e, reader.fields[m.spec_id]) for m in lacking for e in m.entries}
    missing = {key: one for key, one in wanted.items() if one.open()}
    _settle_nulls(missing)
    _from_older_manifests(reader, snapshot, lacking, missing)
    for one in missing.values():
        one.take_bounds()
    for one in [one for one in missing.values() if one.open()]:
        one.take_row(reader)
    _of_position_deletes(reader, snapshot, wanted, missing)
    return {key: tuple(one.open()) for key, one in missing.items() if one.open()}


class _IncompleteEntry:
    """An entry with unknown values."""

    def __init__(self, entry: PartitionEntry, sources: Sequence[LossyPartitionField]) -> None:
        self.entry = entry
        self.sources = sources
        self.settled: set[int] = set()

    def open(self) -> list[LossyPartitionField]:
        """The fields whose value is unknown."""
        return [s for s in self.sources if s.id not in self.settled and self.entry.values.get(s.id) is None]

    def take(self, source: LossyPartitionField, value: JsonValue) -> None:
        """Set a value; ``None`` means that it is really null."""
        self.settled.add(source.id)
        if value is not None:
            self.entry.values[source.id] = value
            self.entry.found.add(source.id)

    def take_bounds(self) -> None:
        """Values between bounds that are equal, once transformed, are all the same."""
        for source in self.open():
            lower, upper = (self.entry.bound(which, source.column) for which in ("lower", "upper"))
            if lower is None or upper is None or self.entry.count("null-value-counts", source.column) != 0:
                continue
            values = [from_bytes(source.type, bound) for bound in (lower, upper)]
            if None in values:
                continue
            lowest, highest = (apply_transform(source.transform, source.type, value) for value in values)
            if lowest == highest:
                self.take(source, lowest)

    def take_row(self, reader: PartitionEntryReader) -> None:
        """The value in the file's first row: all rows of a file have the same partition."""
        if self.entry.content == "position-deletes" or self.entry.saved["record-count"] == 0:
            return
        for source in self.open():
            name = f"icemigrate column {source.column}"  # one that Avro finds in no file that names no ids
            column = {"id": source.column, "name": name, "required": True, "type": type_to_json(source.type)}
            row = _first_row(reader, self.entry, column)
            if row is not None:
                self.take(source, apply_transform(source.transform, source.type, row.get(str(source.column))))


def _settle_nulls(missing: Mapping[Key, _IncompleteEntry]) -> None:
    for one in missing.values():
        for source in one.open():
            values = one.entry.count("value-counts", source.column)
            if values and values == one.entry.count("null-value-counts", source.column):
                one.take(source, None)


def _from_older_manifests(
    reader: PartitionEntryReader,
    snapshot: Any,
    lacking: Sequence[IncompleteManifest],
    missing: Mapping[Key, _IncompleteEntry],
) -> None:
    seen = {manifest.java.path() for manifest in lacking}
    for older in islice(_older(reader, snapshot, lacking), _MOST_SNAPSHOTS):
        wanted = {key for key, one in missing.items() if one.open()}
        if not wanted:
            return
        for java in reader.manifests(older):
            if java.path() in seen:
                continue
            seen.add(java.path())
            if not reader.has_values(java):
                continue
            for entry in reader.entries(java, wanted):
                one = missing[entry.key]
                for source in one.open():
                    if (value := entry.values.get(source.id)) is not None:
                        one.take(source, value)


def _older(
    reader: PartitionEntryReader, snapshot: Any, lacking: Sequence[IncompleteManifest]
) -> Iterator[Any]:
    """The snapshots that may have a manifest from before: the likely ones first."""
    metadata, seen = reader.metadata, set[int]()

    def ids() -> Iterator[int | None]:
        for manifest in lacking:
            writer = metadata.snapshot(manifest.java.snapshotId())
            yield None if writer is None else writer.parentId()
        refs = metadata.refs()
        yield from (
            refs.get(name).snapshotId() for name in iterate_java(refs.keySet()) if is_icemigrate_tag(name)
        )
        # The last of the list is the newest.
        saved = reader.saved.get("snapshots") or ()
        yield snapshot.snapshotId()
        yield from (one["snapshot-id"] for one in reversed(saved))

    for snapshot_id in ids():
        if snapshot_id is None or snapshot_id in seen:
            continue
        seen.add(snapshot_id)
        older = metadata.snapshot(snapshot_id)
        if older is not None:
            yield older


def _first_row(
    reader: PartitionEntryReader, entry: PartitionEntry, column: Mapping[str, Any]
) -> Mapping[str, JsonValue] | None:
    """The first row of a file with one column, by field id; ``None`` where the file does not contain it.

    The column is read as a required one, so a missing one is an error, and not a null.
    """
    iceberg = reader.java.iceberg
    schema = iceberg.SchemaParser.fromJson(json.dumps({"type": "struct", "schema-id": 0, "fields": [column]}))
    try:
        file = reader.io.newInputFile(str(entry.saved["file-path"]))
        format_ = iceberg.FileFormat.fromString(str(entry.saved["file-format"]))
        if not _is_known_by_id(reader, file, str(format_), column["id"]):
            return None
        rows = iceberg.InternalData.read(format_, file).project(schema).build()
        try:
            row = rows.iterator().next()
            text = iceberg.SingleValueParser.toJson(schema.asStruct(), row)
        finally:
            rows.close()
    # The file is gone, encrypted, or of a format without such a reader: it gives no value.
    except Exception:
        return None
    found: Mapping[str, JsonValue] = json.loads(str(text))
    return found


def _is_known_by_id(reader: PartitionEntryReader, file: Any, file_format: str, column: int) -> bool:
    """Whether a column that is read by its id is the one that other readers read.

    Files that were written without Iceberg contain no ids.  Other readers use the table's name mapping then,
    but Java's internal reader of Parquet uses positions, which may be those of other columns.
    """
    iceberg = reader.java.iceberg
    if file_format.upper() != "PARQUET" or NAME_MAPPING not in (reader.saved.get("properties") or {}):
        return True
    nothing = iceberg.mapping.NameMapping.of(reader.java.jvm.java.util.ArrayList())
    metrics = iceberg.parquet.ParquetUtil.fileMetrics(file, iceberg.MetricsConfig.getDefault(), nothing)
    return bool(metrics.columnSizes().containsKey(column))


def _of_position_deletes(
    reader: PartitionEntryReader,
    snapshot: Any,
    wanted: Mapping[Key, _IncompleteEntry],
    missing: Mapping[Key, _IncompleteEntry],
) -> None:
    """Deleted positions have the partition of the data file that they are of."""
    deletes = [one for one in missing.values() if one.entry.content == "position-deletes" and one.open()]
    if not deletes:
        return
    of = {one.entry.key: _data_file(reader, one.entry) for one in deletes}
    needed: set[Key] = {(path, None) for path in of.values() if path is not None}
    data = {key: (wanted[key].entry.values, wanted[key].settled) for key in needed & wanted.keys()}
    if rest := needed - data.keys():
        for java in reader.manifests(snapshot):
            if java.content().id() == 0:
                data |= {e.key: (e.values, set[int]()) for e in reader.entries(java, rest)}
    for one in deletes:
        path = of[one.entry.key]
        values, settled = data.get((path or "", None), ({}, set[int]()))
        for source in one.open():
            value = values.get(source.id)
            if value is not None or source.id in settled:
                one.take(source, value)


def only_data_file(entry: PartitionEntry) -> str | None:
    """The one data file whose positions a delete file deletes, in any partition.

    ``None`` where the delete file applies to all data files of its own partition.
    """
    if entry.content != "position-deletes":
        return None
    named = entry.saved.get("referenced-data-file")
    if named is not None:
        return str(named)
    lower, upper = entry.bound("lower", PATH_COLUMN), entry.bound("upper", PATH_COLUMN)
    return lower.decode("utf-8") if lower is not None and lower == upper else None


def _data_file(reader: PartitionEntryReader, entry: PartitionEntry) -> str | None:
    """The data file that a delete file is of, or one of them: they share a partition."""
    only = only_data_file(entry)
    if only is not None:
        return only
    row = _first_row(reader, entry, _FILE_PATH)
    return None if row is None else str(row[str(PATH_COLUMN)])
