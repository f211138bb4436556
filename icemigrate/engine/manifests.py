"""A table's manifests through Iceberg's Java API: snapshots, and the files that are live in them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from icemigrate.frozen import Frozen, replace
from icemigrate.model.deletes import NONE_DELETED, Deleted, DeleteFile, DeleteKind, Rows, deleted_rows
from icemigrate.model.evidence import Share
from icemigrate.model.json_form import schema_from_json
from icemigrate.model.marks import is_own_branch
from icemigrate.model.schema import Schema


class File(Frozen):
    """A live data file, as a manifest has it; maps by field id, of the fields that are asked about.

    :param sequence: its file sequence number; 0 or ``None`` in format version 1.
    :param carrier: the snapshot that wrote its manifest: the one that added the file, or a later one.
    :param first_row_id: from which its rows without an id of their own are numbered (format version 3);
        ``None`` where its rows have none.
    :param data_sequence: its data sequence number, which delete files are compared with.
    :param deleted: how many of its rows delete files of the snapshot remove.
    """

    path: str
    rows: int
    sequence: int | None
    sizes: Mapping[int, int]
    values: Mapping[int, int]
    nulls: Mapping[int, int]
    carrier: int | None = None
    first_row_id: int | None = None
    data_sequence: int | None = None
    deleted: Deleted = NONE_DELETED

    @property
    def live_rows(self) -> int:
        """Its rows without those that are surely deleted."""
        return self.rows - self.deleted.rows


class Look(Frozen):
    """Java's view of one table's manifests.

    :param fields: a Java set of the fields that are asked about; of the others no metrics are brought over,
        since those of a wide table's file fill kilobytes.
    """

    iceberg: Any
    table: Any
    fields: Any

    def schema(self, java: Any) -> Schema:
        """A Java ``Schema`` as ours."""
        return schema_from_json(json.loads(self.iceberg.SchemaParser.toJson(java)))

    def live(self, manifest: Any) -> Iterator[File]:
        """The files of a manifest that are not deleted."""
        specs = self.table.specs()
        spec = specs.get(manifest.partitionSpecId())
        # A partition that the parser has no words for is left out; nothing is asked of it.
        bare = None if _has_json(spec) else self.iceberg.PartitionSpec.unpartitioned()
        carrier = manifest.snapshotId()
        reader = self.iceberg.ManifestFiles.read(manifest, self.table.io(), specs)
        try:
            for found in each(reader):
                file = found.copyWithStats(self.fields)
                if bare is not None:
                    file = self.iceberg.DataFiles.builder(bare).copy(file).build()
                text = str(self.iceberg.ContentFileParser.toJson(file, spec if bare is None else bare))
                numbers = found.fileSequenceNumber(), found.dataSequenceNumber()
                yield _file(json.loads(text), numbers, carrier)
        finally:
            reader.close()

    def manifests(self, snapshot: Any | None) -> dict[str, Any]:
        """The data manifests of a snapshot by path."""
        if snapshot is None:
            return {}
        return {m.path(): m for m in each(snapshot.dataManifests(self.table.io()))}

    def files(self, snapshot: Any | None) -> list[File]:
        """The live data files of a snapshot, with how many of their rows are deleted."""
        files = [file for manifest in self.manifests(snapshot).values() for file in self.live(manifest)]
        rows = {file.path: Rows(file.rows, file.data_sequence) for file in files}
        deleted = deleted_rows(rows, self.deletes(snapshot)) if files else {}
        return [replace(f, deleted=deleted[f.path]) if f.path in deleted else f for f in files]

    def deletes(self, snapshot: Any | None) -> Iterator[DeleteFile]:
        """The live delete files of a snapshot."""
        if snapshot is None:
            return
        read, io, specs = self.iceberg.ManifestFiles.readDeleteManifest, self.table.io(), self.table.specs()
        for manifest in each(snapshot.deleteManifests(io)):
            reader = read(manifest, io, specs)
            try:
                for found in each(reader):
                    yield self._delete(found)
            finally:
                reader.close()

    def _delete(self, found: Any) -> DeleteFile:
        util, records, sequence = (
            self.iceberg.util.ContentFileUtil,
            found.recordCount(),
            found.dataSequenceNumber(),
        )
        if found.content().toString() == "EQUALITY_DELETES":
            return DeleteFile(DeleteKind.EQUALITY, records, sequence)
        is_vector = found.format().toString() == "PUFFIN"
        kind = DeleteKind.VECTOR if is_vector else DeleteKind.POSITIONS
        return DeleteFile(kind, records, sequence, util.referencedDataFileLocation(found))

    def heads(self) -> Iterator[Any]:
        """The current snapshots of all branches.

        Ours are left out: what a dead run wrote on one nobody has seen, and it goes with the undo.
        """
        refs = self.table.refs()
        for name in each(refs.keySet()):
            ref = refs.get(name)
            if ref.isBranch() and not is_own_branch(name):
                yield self.table.snapshot(ref.snapshotId())

    def added_since(self, since: Any | None, is_known: bool) -> Iterator[File]:
        """The live files of all branches that the snapshot of then does not have.

        :param is_known: whether the snapshot of then is still there; where it is not, every file counts.
        """
        old, seen = self.manifests(since), set[str]()
        is_old = self._is_old(since, old) if is_known else _never
        new: dict[str, Any] = {}
        for head in self.heads():
            new |= {path: m for path, m in self.manifests(head).items() if path not in old}
        for manifest in new.values():
            for file in self.live(manifest):
                if file.path not in seen and not is_old(file):
                    seen.add(file.path)
                    yield file

    def _is_old(self, since: Any | None, old: Mapping[str, Any]) -> Any:
        if since is None:
            return _never
        number = since.sequenceNumber()
        if number > 0:
            return lambda file: file.sequence is not None and file.sequence <= number
        paths = {file.path for manifest in old.values() for file in self.live(manifest)}
        return lambda file: file.path in paths

    def snapshots_since(self, since: int | None) -> int | None:
        """How many snapshots the main branch got; ``None`` where that of then is no ancestor any more."""
        count, snapshot = 0, self.table.currentSnapshot()
        while snapshot is not None:
            if snapshot.snapshotId() == since:
                return count
            count += 1
            parent = snapshot.parentId()
            if parent is None:
                return count if since is None else None
            snapshot = self.table.snapshot(parent)
        return 0 if since is None and count == 0 else None


def notes_since(table: Any, since: int | None, key: str) -> tuple[str, ...] | None:
    """What the summaries of the main branch's snapshots since one say under a key, ``""`` where nothing;
    ``None`` where that one is no ancestor any more.

    One that only writes files again (``replace``: a compaction) holds the rows of the one before it, and is
    left out.
    """
    found, snapshot = list[str](), table.currentSnapshot()
    while snapshot is not None and snapshot.snapshotId() != since:
        note = snapshot.summary().get(key)
        if note is not None or snapshot.operation() != "replace":
            found.append(note or "")
        parent = snapshot.parentId()
        if parent is None:
            return tuple(found) if since is None else None
        snapshot = table.snapshot(parent)
    return None if snapshot is None and since is not None else tuple(found)


def each(found: Any) -> Iterator[Any]:
    """The elements of a Java collection.

    Py4J's own way ends with an exception in Java, and PySpark takes 10 ms to find out what it means.
    """
    elements = found.iterator()
    while elements.hasNext():
        yield elements.next()


def _has_json(spec: Any) -> bool:
    """Whether Iceberg's parser can tell of the partitions of a spec.

    Not where all fields are void, as format version 1 leaves them: to the parser that is no partitioning,
    and a file that has a partition is refused.  Nor where a field's source is gone: its type is unknown then.
    """
    if not spec.isPartitioned():
        return bool(spec.fields().size() == 0)
    return all(f.type().typeId().toString() != "UNKNOWN" for f in each(spec.partitionType().fields()))


def _never(_file: File) -> bool:
    return False


def _file(saved: Mapping[str, Any], numbers: tuple[int | None, int | None], carrier: int | None) -> File:
    sequence, data_sequence = numbers
    return File(
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


def share(
    files: Iterable[File],
    leaves: Collection[int],
    new: Collection[str],
    by_partition: Mapping[str, bool] = MappingProxyType({}),
) -> Share:
    """How many rows of these files stand in ones that hold a field.

    :param leaves: the field, or what is below it.
    :param new: paths of files that were written when the field was gone.
    :param by_partition: by path, whether readers get a value from the manifest, whatever the file holds.
    """
    held = unknown = total = held_unsure = total_unsure = 0
    for file in files:
        total += file.live_rows
        total_unsure += file.deleted.unsure
        holds = any(leaf in file.sizes or leaf in file.values for leaf in leaves)
        if by_partition.get(file.path, holds):
            held += file.live_rows
            held_unsure += file.deleted.unsure
        elif file.path not in new and file.path not in by_partition:
            # Metrics may be off for the field, or the file is older than it.
            unknown += file.live_rows
    return Share(held, unknown, total, held_unsure, total_unsure)
