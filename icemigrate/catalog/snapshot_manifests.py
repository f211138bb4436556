"""The snapshots of a table and their live files, for any reader of manifests.

In a search for new files, manifests that an older snapshot has as well are skipped.  A merged manifest
contains older files too; they are known by their file sequence number (format versions 2 and 3), or by their
path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.delete_files import (
    NONE_DELETED,
    DataFileRows,
    DeletedRows,
    DeleteFile,
    deleted_rows,
)
from icemigrate.iceberg.file_evidence_values import ValueShare
from icemigrate.iceberg.metadata_check import read_parts
from icemigrate.iceberg.metadata_parts import (
    SnapshotEntry,
    current_schema_id,
    read_refs,
    schema_jsons,
    snapshot_from_json,
)
from icemigrate.iceberg.ref_names import is_icemigrate_branch
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.iceberg.table import MAIN_BRANCH, Ref


class UnreadableManifest(Exception):
    """A manifest or a manifest list that this reader cannot read; another one may."""


class LiveDataFile(Frozen):
    """A live data file from a manifest; maps by field id, for the requested fields.

    :param sequence: its file sequence number; 0 or ``None`` in format version 1.
    :param carrier: the snapshot that wrote its manifest: the one that added the file, or a later one.
    :param first_row_id: the first id of its rows without one (format version 3); ``None`` where its rows have
        none.
    :param data_sequence: its data sequence number, which delete files are compared with.
    :param deleted: number of its rows that delete files of the snapshot remove.
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
    deleted: DeletedRows = NONE_DELETED

    @property
    def live_rows(self) -> int:
        """The number of rows that are certainly not deleted."""
        return self.rows - self.deleted.rows


class ManifestReader(Protocol):
    """Reads the manifests of one table. A manifest is identified by its path."""

    def data_manifests(self, snapshot: SnapshotEntry) -> Iterable[str]:
        """The manifests of data files that a snapshot has.

        :raises UnreadableManifest: the manifest list cannot be read.
        """
        ...

    def delete_manifests(self, snapshot: SnapshotEntry) -> Iterable[str]:
        """The manifests of delete files that a snapshot has.

        :raises UnreadableManifest: the manifest list cannot be read.
        """
        ...

    def data_files(self, path: str) -> Iterator[LiveDataFile]:
        """The live files of a listed manifest, without counts of deleted rows.

        :raises UnreadableManifest: the manifest cannot be read.
        """
        ...

    def delete_files(self, path: str) -> Iterator[DeleteFile]:
        """The delete files that are live in a manifest that was listed before.

        :raises UnreadableManifest: the manifest cannot be read.
        """
        ...


@dataclass(slots=True)
class TableManifests:
    """The snapshots of a table, and their files.

    :param metadata: the JSON of the table's metadata file.
    :raises BadMetadata: a snapshot is damaged; never with the JSON that a catalog has checked.
    """

    metadata: Mapping[str, Any]
    reader: ManifestReader
    snapshots: dict[int, SnapshotEntry] = field(init=False)
    refs: dict[str, Ref] = field(init=False)
    _schemas: dict[int, Schema | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        entries = read_parts("snapshots", snapshot_from_json, self.metadata.get("snapshots") or ())
        self.snapshots = {entry.id: entry for entry in entries}
        self.refs = read_refs(self.metadata, set(self.snapshots))
        head = self.current_snapshot
        if head is not None and MAIN_BRANCH not in self.refs:
            self.refs[MAIN_BRANCH] = Ref("branch", head.id)  # metadata from before there were references

    @property
    def format_version(self) -> int:
        """The table's format version."""
        return int(self.metadata["format-version"])

    @property
    def current_snapshot(self) -> SnapshotEntry | None:
        """The snapshot of the main branch."""
        return self.snapshot(self.metadata.get("current-snapshot-id"))

    def snapshot(self, snapshot_id: int | None) -> SnapshotEntry | None:
        """The snapshot of an id; ``None`` where it has expired."""
        return None if snapshot_id is None else self.snapshots.get(snapshot_id)

    @property
    def schema(self) -> Schema:
        """The current schema."""
        found = self.schema_of(current_schema_id(self.metadata))
        assert found is not None, "a table has its current schema"
        return found

    def schema_of(self, schema_id: int | None) -> Schema | None:
        """The schema of an id; ``None`` where the table does not have it any more."""
        if schema_id is None:
            return None
        if schema_id not in self._schemas:
            jsons = (json for json in schema_jsons(self.metadata) if json.get("schema-id", 0) == schema_id)
            json = next(jsons, None)
            self._schemas[schema_id] = None if json is None else schema_from_json(json)
        return self._schemas[schema_id]

    def tags(self) -> dict[str, int]:
        """The snapshots of tags, by name."""
        return {name: ref.snapshot_id for name, ref in self.refs.items() if ref.kind == "tag"}

    def heads(self) -> list[SnapshotEntry]:
        """The current snapshots of all branches, each once.

        Branches of icemigrate are left out: rows of an interrupted run there were never published.
        """
        found = [
            ref.snapshot_id
            for name, ref in self.refs.items()
            if ref.kind == "branch" and not is_icemigrate_branch(name)
        ]
        return [self.snapshots[i] for i in dict.fromkeys(found)]

    def files(self, snapshot: SnapshotEntry | None) -> list[LiveDataFile]:
        """The live data files of a snapshot, with how many of their rows are deleted."""
        if snapshot is None:
            return []
        read = self.reader
        files = [file for path in read.data_manifests(snapshot) for file in read.data_files(path)]
        rows = {file.path: DataFileRows(file.rows, file.data_sequence) for file in files}
        deleted = deleted_rows(rows, self._deletes(snapshot)) if files else {}
        return [replace(f, deleted=deleted[f.path]) if f.path in deleted else f for f in files]

    def _deletes(self, snapshot: SnapshotEntry) -> Iterator[DeleteFile]:
        for path in self.reader.delete_manifests(snapshot):
            yield from self.reader.delete_files(path)

    def has_deletes(self) -> bool:
        """Whether a branch has delete files."""
        return any(any(True for _ in self.reader.delete_manifests(head)) for head in self.heads())

    def added_since(self, since: SnapshotEntry | None, is_known: bool) -> Iterator[LiveDataFile]:
        """The live files of all branches that an older snapshot does not have.

        :param is_known: whether the older snapshot still exists; otherwise every file counts.
        """
        old = () if since is None else self.reader.data_manifests(since)
        old, seen = dict.fromkeys(old), set[str]()
        is_old = self._is_old(since, old) if is_known else _never
        new = dict.fromkeys(path for head in self.heads() for path in self.reader.data_manifests(head))
        for path in new:
            for file in self.reader.data_files(path) if path not in old else ():
                if file.path not in seen and not is_old(file):
                    seen.add(file.path)
                    yield file

    def _is_old(self, since: SnapshotEntry | None, old: Iterable[str]) -> Callable[[LiveDataFile], bool]:
        if since is None:
            return _never
        number = since.sequence_number
        if number > 0:
            return lambda file: file.sequence is not None and file.sequence <= number
        paths = {file.path for path in old for file in self.reader.data_files(path)}
        return lambda file: file.path in paths

    def snapshots_since(self, since: int | None) -> int | None:
        """How many snapshots the main branch got; ``None`` where that of then is no ancestor any more."""
        count, snapshot = 0, self.current_snapshot
        while snapshot is not None:
            if snapshot.id == since:
                return count
            count += 1
            if snapshot.parent_id is None:
                return count if since is None else None
            snapshot = self.snapshot(snapshot.parent_id)
        return 0 if since is None and count == 0 else None

    def notes_since(self, since: int | None, key: str) -> tuple[str, ...] | None:
        """Values of a summary key in the main branch's snapshots since one, ``""`` where absent.

        ``None`` where that snapshot is no ancestor any more.  Snapshots that only rewrite files (``replace``:
        a compaction) have the rows of the one before them, and are left out.
        """
        found, snapshot = list[str](), self.current_snapshot
        while snapshot is not None and snapshot.id != since:
            note = snapshot.summary.get(key)
            if note is not None or snapshot.summary.get("operation") != "replace":
                found.append(note or "")
            if snapshot.parent_id is None:
                return tuple(found) if since is None else None
            snapshot = self.snapshot(snapshot.parent_id)
        return None if snapshot is None and since is not None else tuple(found)


def _never(_file: LiveDataFile) -> bool:
    return False


@dataclass(slots=True)
class FileSchemas:
    """The schema of the snapshot that added a file (specification, "Snapshots", ``schema-id``).

    That snapshot has the file's sequence number; in format version 1, which has none, the snapshot that wrote
    its manifest is used, which is not older.
    """

    manifests: TableManifests
    _snapshots: dict[int, SnapshotEntry] = field(init=False)

    def __post_init__(self) -> None:
        self._snapshots = {s.sequence_number: s for s in self.manifests.snapshots.values()}
        self._snapshots.pop(0, None)

    def __call__(self, file: LiveDataFile) -> Schema | None:
        """The schema; ``None`` where the snapshot has expired, or does not name it."""
        snapshot = self._snapshots.get(file.sequence or 0) or self.manifests.snapshot(file.carrier)
        return None if snapshot is None else self.manifests.schema_of(snapshot.schema_id)


def field_share(
    files: Iterable[LiveDataFile],
    leaves: Collection[int],
    new: Collection[str],
    by_partition: Mapping[str, bool] = MappingProxyType({}),
) -> ValueShare:
    """Number of rows in files that contain a field.

    :param leaves: the field, or its nested fields.
    :param new: paths of files that were written while the field was dropped.
    :param by_partition: by path, whether readers take the value from the manifest.
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
    return ValueShare(held, unknown, total, held_unsure, total_unsure)
