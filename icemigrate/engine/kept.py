"""Where values of dropped fields can still be read that the files of now do not hold any more.

A tag keeps its snapshot, and with it the files from before the values were rewritten away.  Which row of then
is which row of now is told by row ids (specification, "Row Lineage", format version 3: engines carry
them over when they rewrite a row), else by the identifier fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from icemigrate.engine.live_rows import FilesOf
from icemigrate.engine.manifests import File, Look, each, share
from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Kept, Questions, Share
from icemigrate.model.marks import is_own_tag
from icemigrate.model.schema import Schema, index
from icemigrate.model.types import Struct
from icemigrate.refills import ROW_LINEAGE_VERSION

_MOST = 20
"""How many snapshots are looked into for one that keeps values."""


class Found(Frozen):
    """Where rows may get values back from, by field.

    :param best: the version that keeps most; nothing of a field that no row misses.
    :param more: further versions that are known to keep other values, the newest first.
    """

    best: dict[int, Kept]
    more: dict[int, tuple[Kept, ...]]


def find_kept(
    look: Look,
    files_of: FilesOf,
    questions: Questions,
    held: Mapping[int, Share],
    now: Sequence[File],
    is_known: bool,
) -> Found:
    """Look for the values of the fields that are asked about.

    :param files_of: lists the files of a snapshot.
    :param held: the rows of now by whether their files hold the field.
    :param now: the files of the main branch.
    :param is_known: whether it is known which of them were written when the field was gone.
    """
    versions = _Versions(look, files_of, questions.versions)
    search = _Search(look, versions, questions, now)
    best = dict[int, Kept]()
    more = dict[int, tuple[Kept, ...]]()
    for field_id, leaves in questions.held.items():
        has = held[field_id]
        there = has.held_at_least + (has.unknown if is_known else 0)
        found = None
        if not (field_id in questions.back and field_id in questions.last_copies):
            found = search.best(field_id, leaves, there, has.total)
        if found is not None:
            best[field_id] = found
        copies = [copy for copy in search.copies(field_id, leaves, has.total) if not _is_same(copy, found)]
        if copies and found is None:
            best[field_id] = copies.pop(0)
        if copies:
            more[field_id] = tuple(copies)
    return Found(best, more)


def _is_same(copy: Kept, found: Kept | None) -> bool:
    return found is not None and copy.snapshot_id == found.snapshot_id


@dataclass(slots=True)
class _Search:
    """Looks for values in versions.

    :param now: the files of the main branch.
    """

    look: Look
    versions: _Versions
    questions: Questions
    now: Sequence[File]

    def best(self, field_id: int, leaves: frozenset[int], there: int, total: int) -> Kept | None:
        """The first version with values that rows of now miss.

        :param there: how many rows of now surely have a value.
        :param total: how many rows there are now.
        """
        is_back = field_id in self.questions.back
        if is_back:
            there = with_value(self.now, leaves)
        if there >= total:
            return None
        those = (v for v in self.versions if v.schema.by_id(field_id) is not None)
        for version in islice(those, _MOST):
            then = share(version.files, leaves, ())
            held, unknown = then.held, then.unknown
            if is_back:
                held, unknown = with_value(version.files, leaves, at_most=True), 0
            # Where nobody counted, only what was asked for is trusted to hold them.
            if not held and not (version.is_asked and unknown):
                continue
            # Rows whose files hold the value came from there as well, so they are none of those without it;
            # but not where rows may have got values since.
            rows = min(total - there, held + unknown - (0 if is_back else there))
            if rows > 0:
                return self._kept(version, field_id, rows)
            if not is_back:
                return None
        return None

    def copies(self, field_id: int, leaves: frozenset[int], total: int) -> Iterator[Kept]:
        """The versions that are known to keep values of the field, the newest first."""
        missing = total - with_value(self.now, leaves)
        names = self.questions.last_copies.get(field_id, ())
        for version in self.versions.named(names) if missing > 0 else ():
            if version.schema.by_id(field_id) is None:
                continue
            then = share(version.files, leaves, ())
            rows = min(missing, then.held + then.unknown)
            if rows > 0:
                yield self._kept(version, field_id, rows)

    def _kept(self, version: _Version, field_id: int, rows: int) -> Kept:
        return _kept(self.look, version, field_id, rows, (*self.now, *version.files))


def with_value(files: Sequence[File], leaves: frozenset[int], *, at_most: bool = False) -> int:
    """How many live rows of these files have a value of a field, at least or at most.

    A column that came back without its values is in every file that was written since, and null there.
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
class _Version:
    """A snapshot that is kept.

    :param name: its tag, or its id.
    :param is_asked: whether it was named in the question.
    """

    look: Look
    files_of: FilesOf
    name: str
    schema: Schema
    snapshot: Any
    is_asked: bool
    _files: Sequence[File] | None = None

    @property
    def files(self) -> Sequence[File]:
        """Its live data files."""
        if self._files is None:
            self._files = self.files_of(self.snapshot)
        return self._files


@dataclass(slots=True)
class _Versions:
    """The snapshots that may keep values: those asked for that are there, then those that main was at before,
    then those of our tags; the newest first.  They are read as far as somebody looks.

    :param wanted: tags and ids of snapshots.
    """

    look: Look
    files_of: FilesOf
    wanted: Sequence[str]
    _read: list[_Version] = field(default_factory=list)
    _rest: Iterator[_Version] | None = None

    def __iter__(self) -> Iterator[_Version]:
        yield from self._read
        self._rest = self._rest or self._all()
        for version in self._rest:
            self._read.append(version)
            yield version

    def named(self, names: Sequence[str]) -> Iterator[_Version]:
        """The versions of these names that are there, in their order."""
        tags = self._tags()
        for name in names:
            snapshot = self.look.table.snapshot(tags.get(name, _id(name)))
            yield from self._version(name, snapshot, set(), is_asked=True)

    def _tags(self) -> dict[str, int]:
        refs = self.look.table.refs()
        return {name: refs.get(name).snapshotId() for name in each(refs.keySet()) if refs.get(name).isTag()}

    def _all(self) -> Iterator[_Version]:
        table, tags = self.look.table, self._tags()
        names = {i: name for name, i in sorted(tags.items()) if is_own_tag(name)}
        seen = set[int]()
        asked = [(name, table.snapshot(tags.get(name, _id(name)))) for name in self.wanted]
        there = [(name, snapshot) for name, snapshot in asked if snapshot is not None]
        # Of two runs of a migration, the rows before the later one are asked first.
        for name, snapshot in sorted(there, key=lambda pair: _age(pair[1]), reverse=True):
            yield from self._version(name, snapshot, seen, is_asked=True)
        at = table.currentSnapshot()
        while at is not None:
            yield from self._version(names.get(at.snapshotId(), str(at.snapshotId())), at, seen)
            at = None if at.parentId() is None else table.snapshot(at.parentId())
        kept = [(name, table.snapshot(i)) for i, name in names.items()]
        for name, snapshot in sorted(kept, key=lambda pair: pair[1].sequenceNumber(), reverse=True):
            yield from self._version(name, snapshot, seen)

    def _version(
        self, name: str, snapshot: Any | None, seen: set[int], is_asked: bool = False
    ) -> Iterator[_Version]:
        if snapshot is None or snapshot.snapshotId() in seen:
            return
        seen.add(snapshot.snapshotId())
        schema = self.look.table.schemas().get(snapshot.schemaId())
        if schema is not None:
            yield _Version(self.look, self.files_of, name, self.look.schema(schema), snapshot, is_asked)


def _age(snapshot: Any) -> tuple[int, int]:
    """By what the newer of two snapshots is told; format version 1 numbers none."""
    return snapshot.sequenceNumber(), snapshot.timestampMillis()


def _id(name: str) -> int:
    """A snapshot's id; of a tag that is gone none that any snapshot has."""
    return int(name) if name.isdigit() else -1


def _kept(look: Look, version: _Version, field_id: int, rows: int, files: Sequence[File]) -> Kept:
    then, schema = index(version.schema), look.schema(look.table.schema())
    has_ids = look.table.operations().current().formatVersion() >= ROW_LINEAGE_VERSION and all(
        file.first_row_id is not None for file in files
    )
    ids = schema.identifier_ids
    same = bool(ids) and ids == version.schema.identifier_ids and field_id not in ids
    above, in_structs = then[field_id].parent, True
    while above is not None:
        in_structs = in_structs and isinstance(then[above].field.type, Struct)
        above = then[above].parent
    return Kept(
        version=version.name,
        path=then[field_id].path,
        rows=rows,
        snapshot_id=version.snapshot.snapshotId(),
        in_structs=in_structs,
        by_row_id=has_ids,
        identifier={i: then[i].path for i in sorted(ids)} if same else {},
    )
