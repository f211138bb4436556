"""Restores the partition values of a column, in the commit that restores the column.

Manifests that have lost values (:mod:`icemigrate.spark.partition_entries`) are rewritten with the values that
are found (:mod:`icemigrate.spark.partition_values`), for every branch except those of icemigrate, as a
snapshot of the operation ``replace``: it has the rows of the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

from icemigrate.frozen import Frozen
from icemigrate.iceberg.partition_evolution import PartitionLoss, UnrecordedValues
from icemigrate.iceberg.ref_names import is_icemigrate_branch
from icemigrate.iceberg.schema import differing_fields, schema_index
from icemigrate.iceberg.table import MAIN_BRANCH, Table
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.iceberg.types import Type, is_nested
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.java_manifests import iterate_java
from icemigrate.spark.partition_entries import (
    IncompleteManifest,
    Key,
    LossyPartitionField,
    PartitionEntry,
    PartitionEntryReader,
    lossy_partition_fields,
)
from icemigrate.spark.partition_values import find_values, only_data_file

PARTITION_VALUES_SUMMARY_KEY = f"{SUMMARY_PREFIX}partition-values"
"""In the summary of a snapshot that was made to restore partition values."""


class SnapshotLosses(Frozen):
    """The lost values of one snapshot, as far as they were found.

    :param fields: the affected partition fields, by the id of their spec.
    :param lacking: the manifests whose entries lack values; values that were found are in the entries.
    :param hidden: by file, the partition fields whose values were not found.
    :param blocked: ids of specs whose manifests stay as they are, see :func:`blocked_specs`.
    """

    fields: Mapping[int, Sequence[LossyPartitionField]]
    lacking: Sequence[IncompleteManifest]
    hidden: Mapping[Key, Sequence[LossyPartitionField]]
    blocked: frozenset[int]

    @property
    def to_write(self) -> list[IncompleteManifest]:
        """The manifests that are written again."""
        return [m for m in self.lacking if m.spec_id not in self.blocked and _is_changed(m)]

    def losses(self, rows: Mapping[str, int]) -> dict[int, PartitionLoss]:
        """The restored and lost values of each column.

        :param rows: number of live rows of a data file, by its path.
        """
        columns = dict.fromkeys(s.column for sources in self.fields.values() for s in sources)
        found = {column: self._loss(column, rows) for column in columns}
        return {column: loss for column, loss in found.items() if loss.files or loss.hidden}

    def _loss(self, column: int, rows: Mapping[str, int]) -> PartitionLoss:
        hidden: dict[str, UnrecordedValues] = {}
        unreadable, readable = set[str](), set[str]()
        files = restored = 0
        for manifest in (m for m in self.lacking if m.is_data):
            fields = [s for s in self.fields[manifest.spec_id] if s.column == column]
            for entry in manifest.entries if fields else ():
                path, _ = entry.key
                count = rows.get(path, int(entry.saved["record-count"]))
                is_blocked = manifest.spec_id in self.blocked and entry.is_changed
                lost = fields if is_blocked else [s for s in self.hidden.get(entry.key, ()) if s in fields]
                for source in lost:
                    reads_null = source.transform.name == "identity"
                    was = hidden.get(source.name, UnrecordedValues(0, 0, reads_null))
                    hidden[source.name] = UnrecordedValues(was.files + 1, was.rows + count, reads_null)
                    if reads_null:
                        unreadable.add(path)
                if not lost and any(s.id in entry.found for s in fields):
                    files, restored = files + 1, restored + count
                if not lost and any(_gives_value(s, entry) for s in fields):
                    readable.add(path)
        return PartitionLoss(files, restored, hidden, frozenset(unreadable), frozenset(readable))


def _gives_value(source: LossyPartitionField, entry: PartitionEntry) -> bool:
    """Whether readers take the column's value from the manifest, and it has one."""
    return source.transform.name == "identity" and entry.values.get(source.id) is not None


def _is_changed(manifest: IncompleteManifest) -> bool:
    return any(entry.is_changed for entry in manifest.entries)


def returning_columns(before: Table, after: Table) -> dict[int, Type]:
    """The restored columns with values of their own: by id, their types."""
    there = schema_index(before.schema)
    return {
        i: entry.field.type
        for i, entry in differing_fields(after.schema, before.schema)
        if i not in there and i <= before.last_column_id and not is_nested(entry.field.type)
    }


def find_snapshot_losses(reader: PartitionEntryReader, snapshot: Any) -> SnapshotLosses | None:
    """The values to restore in a snapshot; ``None`` where every entry has its values."""
    lacking = reader.lacking(snapshot)
    if not lacking:
        return None
    hidden = find_values(reader, snapshot, lacking)
    return SnapshotLosses(reader.fields, lacking, hidden, blocked_specs(lacking, hidden))


def blocked_specs(lacking: Sequence[IncompleteManifest], hidden: Collection[Key]) -> frozenset[int]:
    """The specs whose values must not be restored in part, because deleted rows would return.

    A delete file that names no data file applies to the data files of its own partition.  If the value of one
    of them is restored and that of the other is not, their partitions differ.

    :param hidden: the files whose values were not found.
    """
    data = {m.spec_id for m in lacking if m.is_data and any(e.key in hidden for e in m.entries)}
    deletes = [
        (m.spec_id, entry)
        for m in lacking
        if not m.is_data
        for entry in m.entries
        if only_data_file(entry) is None
    ]
    unknown = {spec_id for spec_id, entry in deletes if entry.key in hidden}
    restored = {spec_id for spec_id, entry in deletes if entry.is_changed}
    return frozenset(unknown | (data & restored))


def find_losses(java: JavaCatalog, table: Any, columns: Mapping[int, Type]) -> SnapshotLosses | None:
    """The lost partition values of the main branch, for columns that would be restored.

    :param table: Java's ``Table``.
    """
    snapshot = table.currentSnapshot()
    if not columns or snapshot is None:
        return None
    metadata = table.operations().current()
    saved = java.read(metadata)
    fields = lossy_partition_fields(saved, columns)
    return (
        find_snapshot_losses(PartitionEntryReader(java, metadata, saved, table.io(), fields), snapshot)
        if fields
        else None
    )


def readable_by_partition(losses: Mapping[int, PartitionLoss], leaves: Collection[int]) -> dict[str, bool]:
    """By path of a data file, whether a column of one part reads its value there.

    Readers take it from the manifest, whatever the file contains: so files that are missing here have it.
    """
    found: dict[str, bool] = {}
    for loss in (losses[i] for i in leaves if i in losses and len(leaves) == 1):
        found |= dict.fromkeys(loss.readable, True) | dict.fromkeys(loss.unreadable, False)
    return found


class PartitionRestore:
    """Restores partition values inside a transaction that has restored columns.

    :param open_transaction: begins another transaction of the same table.
    :param columns: the result of :func:`returning_columns`.
    :param saved: the JSON of the table's metadata from before they were restored.
    """

    def __init__(
        self,
        java: JavaCatalog,
        transaction: Any,
        open_transaction: Callable[[], Any],
        saved: Mapping[str, Any],
        columns: Mapping[int, Type],
    ) -> None:
        self._java = java
        self._transaction = transaction
        self._open = open_transaction
        self._fields = lossy_partition_fields(saved, columns)
        self._saved = saved
        self._snapshots: list[Any] = []

    def run(self) -> bool:
        """Write the manifests and create the snapshots; returns whether there are any."""
        if not self._fields:
            return False
        operations = self._operations
        refs = operations.current().refs()
        heads: dict[int, list[str]] = {}
        for name in iterate_java(refs.keySet()):
            if refs.get(name).isBranch() and not is_icemigrate_branch(name):
                heads.setdefault(int(refs.get(name).snapshotId()), []).append(name)
        # Where main has moved, the library's own method to rewrite manifests does not work.
        for head, names in sorted(heads.items(), key=lambda pair: MAIN_BRANCH in pair[1]):
            metadata = operations.current()
            reader = PartitionEntryReader(
                self._java, metadata, self._saved, operations.io(), self._fields, True
            )
            found = find_snapshot_losses(reader, metadata.snapshot(head))
            if found is not None and found.to_write:
                self._replace(reader, found.to_write, head, names)
        return bool(self._snapshots)

    def clean_up(self) -> None:
        """Delete the files that were written for a failed commit."""
        io = self._operations.io()
        for snapshot in self._snapshots:
            for manifest in iterate_java(snapshot.allManifests(io)):
                if manifest.snapshotId() == snapshot.snapshotId():
                    io.deleteFile(manifest.path())
            io.deleteFile(snapshot.manifestListLocation())

    @property
    def _operations(self) -> Any:
        return self._transaction.table().operations()

    def _replace(
        self,
        reader: PartitionEntryReader,
        manifests: Sequence[IncompleteManifest],
        head: int,
        names: Sequence[str],
    ) -> None:
        """Make a snapshot with manifests written again, and have branches point at it."""
        iceberg, operations = self._java.iceberg, self._operations
        if MAIN_BRANCH in names:
            self._rewrite(self._transaction, reader, manifests)
            snapshot = operations.current().currentSnapshot()
        else:
            # On a copy of the metadata on which main is where the branch is; only the snapshot is taken over.
            other = self._open()
            inside, metadata = other.table().operations(), operations.current()
            moved = iceberg.TableMetadata.buildFrom(metadata)
            moved.setRef(MAIN_BRANCH, iceberg.SnapshotRef.branchBuilder(head).build())
            inside.commit(inside.current(), moved.build())
            self._rewrite(other, reader, manifests)
            snapshot = inside.current().currentSnapshot()
            builder = iceberg.TableMetadata.buildFrom(metadata).addSnapshot(snapshot)
            operations.commit(metadata, builder.build())
        self._snapshots.append(snapshot)
        metadata = operations.current()
        builder = iceberg.TableMetadata.buildFrom(metadata)
        for name in names:
            if name != MAIN_BRANCH:
                ref = iceberg.SnapshotRef.builderFrom(metadata.ref(name), snapshot.snapshotId())
                builder.setRef(name, ref.build())
        built = builder.build()
        if len(names) > (MAIN_BRANCH in names):
            operations.commit(metadata, built)

    def _rewrite(
        self, transaction: Any, reader: PartitionEntryReader, manifests: Sequence[IncompleteManifest]
    ) -> None:
        rewriting = transaction.rewriteManifests()
        rewriting.set(
            PARTITION_VALUES_SUMMARY_KEY,
            ", ".join(sorted({s.name for m in manifests for s in reader.fields[m.spec_id]})),
        )
        written = []
        for manifest in manifests:
            new = self._write(transaction, reader, manifest)
            written.append(new)
            rewriting.deleteManifest(manifest.java)
            rewriting.addManifest(new)
        rewriting.commit()
        operations = transaction.table().operations()
        used = {
            m.path()
            for m in iterate_java(operations.current().currentSnapshot().allManifests(operations.io()))
        }
        for new in written:
            if new.path() not in used:  # in format version 1 the library takes a copy
                operations.io().deleteFile(new.path())

    def _write(self, transaction: Any, reader: PartitionEntryReader, manifest: IncompleteManifest) -> Any:
        """A manifest written again."""
        operations, iceberg = transaction.table().operations(), self._java.iceberg
        location = operations.metadataFileLocation(f"{uuid4()}-m0.avro")
        output = operations.encryption().encrypt(operations.io().newOutputFile(location))
        spec = reader.specs[manifest.spec_id]
        write = iceberg.ManifestFiles.write if manifest.is_data else iceberg.ManifestFiles.writeDeleteManifest
        writer = write(operations.current().formatVersion(), spec, output, None)
        tuples: dict[str, Any] = {}
        try:
            for entry in manifest.entries:
                file = self._corrected(entry, spec, tuples) if entry.is_changed else entry.file
                writer.existing(file, entry.snapshot_id, entry.sequence, entry.file_sequence)
        finally:
            writer.close()
        return writer.toManifestFile()

    def _corrected(self, entry: PartitionEntry, spec: Any, tuples: dict[str, Any]) -> Any:
        """A file with its partition; ``tuples`` caches Java's, of which there are few."""
        iceberg = self._java.iceberg
        text = json.dumps({str(i): value for i, value in entry.values.items() if value is not None})
        if text not in tuples:
            tuples[text] = iceberg.SingleValueParser.fromJson(spec.partitionType(), text)
        if entry.content == "data":
            builder = iceberg.DataFiles.builder(spec).copy(entry.file)
        else:
            builder = iceberg.FileMetadata.deleteFileBuilder(spec).copy(entry.file)
            if entry.content == "equality-deletes":
                ids = [int(i) for i in entry.saved["equality-ids"]]
                builder.ofEqualityDeletes(self._java.array(self._java.jvm.int, ids))
        return builder.withPartition(tuples[text]).build()
