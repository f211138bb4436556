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
from icemigrate.model.evidence import Kept, Questions, Share
from icemigrate.model.marks import is_own_tag
from icemigrate.model.schema import Schema, index
from icemigrate.model.types import Struct
from icemigrate.refills import ROW_LINEAGE_VERSION

_MOST = 20
"""How many snapshots are looked into for one that keeps values."""


def find_kept(
    look: Look,
    files_of: FilesOf,
    questions: Questions,
    held: Mapping[int, Share],
    now: Sequence[File],
    is_known: bool,
) -> dict[int, Kept]:
    """By field, where rows may get their value back from; nothing of a field that no row misses.

    :param files_of: lists the files of a snapshot.
    :param held: the rows of now by whether their files hold the field.
    :param now: the files of the main branch.
    :param is_known: whether it is known which of them were written when the field was gone.
    """
    found: dict[int, Kept] = {}
    versions = _Versions(look, files_of, questions.versions)
    for field_id, leaves in questions.held.items():
        has = held[field_id]
        there = has.held_at_least + (has.unknown if is_known else 0)
        if there >= has.total:
            continue
        for version in islice((v for v in versions if v.schema.by_id(field_id) is not None), _MOST):
            then = share(version.files, leaves, ())
            # Where nobody counted, only what was asked for is trusted to hold them.
            if not then.held and not (version.is_asked and then.unknown):
                continue
            # Rows whose files hold the value came from there as well, so they are none of those without it.
            rows = min(has.total - there, then.held + then.unknown - there)
            if rows > 0:
                found[field_id] = _kept(look, version, field_id, rows, (*now, *version.files))
            break
    return found


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

    def _all(self) -> Iterator[_Version]:
        table, refs = self.look.table, self.look.table.refs()
        tags = {name: refs.get(name).snapshotId() for name in each(refs.keySet()) if refs.get(name).isTag()}
        names = {i: name for name, i in sorted(tags.items()) if is_own_tag(name)}
        seen = set[int]()
        for name in self.wanted:
            yield from self._version(name, table.snapshot(tags.get(name, _id(name))), seen, is_asked=True)
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
        in_structs=in_structs,
        by_row_id=has_ids,
        identifier={i: then[i].path for i in sorted(ids)} if same else {},
    )
