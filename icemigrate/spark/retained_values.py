"""Finds values of dropped fields that the current files do not contain any more.

A tag keeps its snapshot, and with it the files from before the values were rewritten away.  Old and current
rows are matched by row ids (specification, "Row Lineage", format version 3: engines carry them over when they
rewrite a row), or otherwise by the identifier fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from icemigrate.catalog.snapshot_manifests import LiveDataFile, TableManifests, field_share
from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import EvidenceQuery, RetainedValues, ValueShare
from icemigrate.iceberg.metadata_parts import SnapshotEntry
from icemigrate.iceberg.ref_names import is_icemigrate_tag
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.iceberg.types import Struct
from icemigrate.planning.value_restore import ROW_LINEAGE_VERSION
from icemigrate.spark.row_counts import FilesOf

_MOST = 20
"""The maximum number of snapshots that are searched for values."""


class RetainedValueSources(Frozen):
    """Sources of retained values, by field.

    :param best: the version that keeps most values; no entry for a field that no row lacks.
    :param more: further sources of other values, the newest first.
    """

    best: dict[int, RetainedValues]
    more: dict[int, tuple[RetainedValues, ...]]


def find_retained_values(
    manifests: TableManifests,
    files_of: FilesOf,
    questions: EvidenceQuery,
    held: Mapping[int, ValueShare],
    now: Sequence[LiveDataFile],
    is_known: bool,
) -> RetainedValueSources:
    """Find the values of the requested fields.

    :param files_of: lists the files of a snapshot.
    :param held: the current rows by whether their files contain the field.
    :param now: the files of the main branch.
    :param is_known: whether it is known which of them were written while the field was dropped.
    """
    snapshots = _RetainedSnapshots(manifests, files_of, questions.sources)
    search = _Search(manifests, snapshots, questions, now)
    best = dict[int, RetainedValues]()
    more = dict[int, tuple[RetainedValues, ...]]()
    for field_id, leaves in questions.held.items():
        has = held[field_id]
        there = has.held_at_least + (has.unknown if is_known else 0)
        found = None
        if not (field_id in questions.to_restore and field_id in questions.last_copies):
            found = search.best(field_id, leaves, there, has.total)
        if found is not None:
            best[field_id] = found
        copies = [copy for copy in search.copies(field_id, leaves, has.total) if not _is_same(copy, found)]
        if copies and found is None:
            best[field_id] = copies.pop(0)
        if copies:
            more[field_id] = tuple(copies)
    return RetainedValueSources(best, more)


def _is_same(copy: RetainedValues, found: RetainedValues | None) -> bool:
    return found is not None and copy.snapshot_id == found.snapshot_id


@dataclass(slots=True)
class _Search:
    """Searches tags and snapshots for values.

    :param now: the files of the main branch.
    """

    manifests: TableManifests
    sources: _RetainedSnapshots
    questions: EvidenceQuery
    now: Sequence[LiveDataFile]

    def best(self, field_id: int, leaves: frozenset[int], there: int, total: int) -> RetainedValues | None:
        """The first version with values that current rows lack.

        :param there: number of current rows that certainly have a value.
        :param total: number of current rows.
        """
        is_back = field_id in self.questions.to_restore
        if is_back:
            there = with_value(self.now, leaves)
        if there >= total:
            return None
        those = (v for v in self.sources if v.schema.by_id(field_id) is not None)
        for version in islice(those, _MOST):
            # The rows are counted only where the manifests alone do not exclude the version.
            if not version.may_hold(leaves) and (is_back or not version.is_asked):
                continue
            then = field_share(version.files, leaves, ())
            held, unknown = then.held, then.unknown
            if is_back:
                held, unknown = with_value(version.files, leaves, at_most=True), 0
            # Without a count, only the requested version is trusted to have values.
            if not held and not (version.is_asked and unknown):
                continue
            # Rows whose files contain the value came from there as well, so they do not count as rows without
            # it;
            # but not where rows may have got values since.
            rows = min(total - there, held + unknown - (0 if is_back else there))
            if rows > 0:
                return self._kept(version, field_id, rows)
            if not is_back:
                return None
        return None

    def copies(self, field_id: int, leaves: frozenset[int], total: int) -> Iterator[RetainedValues]:
        """The sources of values of the field, the newest first."""
        missing = total - with_value(self.now, leaves)
        names = self.questions.last_copies.get(field_id, ())
        for version in self.sources.named(names) if missing > 0 else ():
            if version.schema.by_id(field_id) is None:
                continue
            then = field_share(version.files, leaves, ())
            rows = min(missing, then.held + then.unknown)
            if rows > 0:
                yield self._kept(version, field_id, rows)

    def _kept(self, version: _RetainedSnapshot, field_id: int, rows: int) -> RetainedValues:
        return _kept(self.manifests, version, field_id, rows, (*self.now, *version.files))


def with_value(files: Sequence[LiveDataFile], leaves: frozenset[int], *, at_most: bool = False) -> int:
    """The number of live rows of these files with a value of a field, as a lower or an upper bound.

    A column that was restored without its values is in every file written since, and null there.
    """
    count = 0
    for file in files:
        there = [leaf for leaf in leaves if leaf in file.sizes or leaf in file.values]
        if not there:
            continue
        # What is not counted may be null everywhere, or nowhere.
        nulls = [file.nulls.get(leaf, 0 if at_most else file.rows) for leaf in there]
        unsure = 0 if at_most else file.deleted.unsure
        some = min(nulls) if at_most else max(nulls)
        count += min(file.live_rows, file.rows - some) if at_most else max(0, file.live_rows - some - unsure)
    return count


@dataclass(slots=True)
class _RetainedSnapshot:
    """A retained snapshot.

    :param name: its tag, or its id.
    :param is_asked: whether the question names it.
    """

    manifests: TableManifests
    files_of: FilesOf
    name: str
    schema: Schema
    snapshot: SnapshotEntry
    is_asked: bool
    _files: Sequence[LiveDataFile] | None = None

    def may_hold(self, leaves: frozenset[int]) -> bool:
        """Whether one of its files may contain values, by its manifests; no row is counted."""
        files = self.manifests.files(self.snapshot) if self._files is None else self._files
        if not any(file.deleted.unsure for file in files):
            self._files = files
        return any(file.live_rows and not leaves.isdisjoint((*file.sizes, *file.values)) for file in files)

    @property
    def files(self) -> Sequence[LiveDataFile]:
        """Its live data files."""
        if self._files is None:
            self._files = self.files_of(self.snapshot)
        return self._files


@dataclass(slots=True)
class _RetainedSnapshots:
    """The snapshots that may keep values: those in the question, then earlier ones of main, then those of our
    tags.

    The newest come first.  They are read one by one.

    :param wanted: tags and ids of snapshots.
    """

    manifests: TableManifests
    files_of: FilesOf
    wanted: Sequence[str]
    _read: list[_RetainedSnapshot] = field(default_factory=list)
    _rest: Iterator[_RetainedSnapshot] | None = None

    def __iter__(self) -> Iterator[_RetainedSnapshot]:
        yield from self._read
        self._rest = self._rest or self._all()
        for version in self._rest:
            self._read.append(version)
            yield version

    def named(self, names: Sequence[str]) -> Iterator[_RetainedSnapshot]:
        """The existing tags and snapshots with these names, in their order."""
        tags = self.manifests.tags()
        for name in names:
            snapshot = self.manifests.snapshot(tags.get(name, _id(name)))
            yield from self._version(name, snapshot, set(), is_asked=True)

    def _all(self) -> Iterator[_RetainedSnapshot]:
        manifests, tags = self.manifests, self.manifests.tags()
        names = {i: name for name, i in sorted(tags.items()) if is_icemigrate_tag(name)}
        seen = set[int]()
        asked = [(name, manifests.snapshot(tags.get(name, _id(name)))) for name in self.wanted]
        there = [(name, snapshot) for name, snapshot in asked if snapshot is not None]
        # Of two runs of a migration, the rows before the later one come first.
        for name, snapshot in sorted(there, key=lambda pair: _age(pair[1]), reverse=True):
            yield from self._version(name, snapshot, seen, is_asked=True)
        at = manifests.current_snapshot
        while at is not None:
            yield from self._version(names.get(at.id, str(at.id)), at, seen)
            at = manifests.snapshot(at.parent_id)
        kept = [(name, manifests.snapshots[i]) for i, name in names.items()]
        for name, snapshot in sorted(kept, key=lambda pair: pair[1].sequence_number, reverse=True):
            yield from self._version(name, snapshot, seen)

    def _version(
        self, name: str, snapshot: SnapshotEntry | None, seen: set[int], is_asked: bool = False
    ) -> Iterator[_RetainedSnapshot]:
        if snapshot is None or snapshot.id in seen:
            return
        seen.add(snapshot.id)
        schema = self.manifests.schema_of(snapshot.schema_id)
        if schema is not None:
            yield _RetainedSnapshot(self.manifests, self.files_of, name, schema, snapshot, is_asked)


def _age(snapshot: SnapshotEntry) -> tuple[int, int]:
    """The sort key of a snapshot's age; format version 1 has no sequence numbers."""
    return snapshot.sequence_number, snapshot.timestamp_ms


def _id(name: str) -> int:
    """A snapshot's id; for a missing tag an id that no snapshot has."""
    number = whole_number(name)
    return -1 if number is None else number


def _kept(
    manifests: TableManifests,
    version: _RetainedSnapshot,
    field_id: int,
    rows: int,
    files: Sequence[LiveDataFile],
) -> RetainedValues:
    then, schema = schema_index(version.schema), manifests.schema
    has_ids = manifests.format_version >= ROW_LINEAGE_VERSION and all(
        file.first_row_id is not None for file in files
    )
    ids = schema.identifier_ids
    same = bool(ids) and ids == version.schema.identifier_ids and field_id not in ids
    above, in_structs = then[field_id].parent, True
    while above is not None:
        in_structs = in_structs and isinstance(then[above].field.type, Struct)
        above = then[above].parent
    return RetainedValues(
        version=version.name,
        path=then[field_id].path,
        rows=rows,
        snapshot_id=version.snapshot.id,
        in_structs=in_structs,
        by_row_id=has_ids,
        identifier={i: then[i].path for i in sorted(ids)} if same else {},
    )
