"""Which fields of a table a migration itself added, by the metadata that its own commits produced.

A plan foresees field ids.  Where another client adds a column before the commit of a migration, the commit is
made on top of it and its fields get other ids.  So an undo record is corrected from what was committed, and
an undo drops no field that is not proven to be the migration's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen, replace
from icemigrate.merge import rebind
from icemigrate.model.metadata_check import read_schema
from icemigrate.model.metadata_parts import current_schema
from icemigrate.model.names import format_path
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.model.schema import Schema, index
from icemigrate.model.undo_record import TableUndo

_Json: TypeAlias = Mapping[str, Any]

RUN_KEY = f"{SUMMARY_PREFIX}run"
"""In the summary of a migration's marker: the run of the lock under which it was committed."""


class Commits(Frozen):
    """Where the commits of a run that was cut short can be read.

    :param metadata: the table's metadata as it is now.
    :param location: of the file that holds it.
    :param base: of the file that held the metadata when the run began; ``None`` where it is unknown.
    :param tag: the tag that the migration puts on its tables.
    :param run: of the lock under which it ran.
    :param read: reads an older metadata file; ``None`` where that cannot be read.
    """

    metadata: _Json
    location: str | None
    base: str | None
    tag: str
    run: str
    read: Callable[[str], _Json | None]


def with_commit(undo: TableUndo, before: Schema, committed: Schema) -> TableUndo:
    """The record with what one commit of the migration itself added.

    :param before: the schema that the commit was made on.
    :param committed: the schema that the commit produced.
    """
    known = index(before)
    return _with_created(undo, committed, (i for i in index(committed) if i not in known))


def traced(undo: TableUndo, commits: Commits) -> TableUndo:
    """The record with what an interrupted run had committed.

    The marker of the run tells; where a commit puts no marker on the table, the metadata files since the run
    began tell which commit added fields of the migration and nothing else.
    """
    first = undo.actual_before
    if undo.before is None or undo.after is None or first is None:
        return undo
    undo = undo if undo.creates else replace(undo, creates=dict(_foreseen(undo)))
    undo = replace(undo, created=undo.created or frozenset())
    if not undo.creates:
        return undo
    if (marked := _marked_schema(commits)) is not None:
        there = index(first.schema)
        return _with_created(undo, marked, (i for i in index(marked) if i not in there))
    if undo.is_tagged:
        return undo  # its one commit would have put the tag there
    schemas = _schemas_since(commits)
    if schemas is None:
        return replace(undo, is_unproved=True)
    names = {path for paths in undo.creates.values() for path in paths}
    for before, after in pairwise(schemas):
        known = index(before)
        added = [i for i in index(after) if i not in known]
        if added and all(format_path(index(after)[i].path) in names for i in added):
            undo = _with_created(undo, after, added)
    return undo


def others_fields(undo: TableUndo, now: Schema) -> Iterator[int]:
    """The topmost fields that have the id or the name of a field that the migration was to add, and that no
    commit of it is known to have added.

    :param now: the table's schema as it is now.
    """
    if undo.created is None or undo.actual_before is None:
        return
    then, there = index(undo.actual_before.schema), index(now)
    names = {path for paths in undo.creates.values() for path in paths}
    for field_id, entry in there.items():
        if field_id in then or field_id in undo.created:
            continue
        is_topmost = entry.parent is None or entry.parent in then
        if is_topmost and (field_id in undo.creates or format_path(entry.path) in names):
            yield field_id


def _with_created(undo: TableUndo, committed: Schema, added: Iterable[int]) -> TableUndo:
    """The record with fields that a commit added, the foreseen ids replaced by those of the commit.

    :param added: ids in ``committed`` of fields that are new in it; others than the migration's are left out.
    """
    entries = index(committed)
    names = {path: i for i, paths in undo.creates.items() for path in paths}
    earlier = undo.created or frozenset()
    ids = {format_path(entries[i].path): i for i in {*added, *earlier} if i in entries}
    found = {names[path]: i for path, i in ids.items() if path in names}
    changed = {old: new for old, new in found.items() if old != new}
    created = earlier | set(found.values())
    if not changed:
        return replace(undo, created=created)
    # What the plan foresaw under an id that another field has now must not pass for that field.
    taken = set(changed.values()) - changed.keys()
    highest = max((0, *(abs(i) for i in undo.creates), *entries))
    aside = {i: -(highest + n) for n, i in enumerate((i for i in undo.creates if i in taken), 1)}
    ids_now = {**aside, **changed}
    return replace(
        undo,
        created=created,
        creates={ids_now.get(i, i): paths for i, paths in undo.creates.items()},
        after=None if undo.after is None else rebind(undo.after, ids_now),
        actual_after=None if undo.actual_after is None else rebind(undo.actual_after, ids_now),
    )


def _foreseen(undo: TableUndo) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What an older icemigrate did not write down: the new fields, each with its path after the migration."""
    if undo.after is None or undo.actual_before is None:
        return
    there = index(undo.actual_before.schema)
    for field_id, entry in index(undo.after.schema).items():
        if field_id not in there:
            yield field_id, (format_path(entry.path),)


def _marked_schema(commits: Commits) -> Schema | None:
    """The schema of the marker that the run left; ``None`` where it left none."""
    ref = commits.metadata.get("refs", {}).get(commits.tag)
    if ref is None or not commits.run:
        return None
    for snapshot in commits.metadata.get("snapshots", ()):
        if snapshot.get("snapshot-id") == ref.get("snapshot-id"):
            if snapshot.get("summary", {}).get(RUN_KEY) != commits.run:
                return None
            wanted = snapshot.get("schema-id")
            found = (s for s in commits.metadata.get("schemas", ()) if s.get("schema-id") == wanted)
            return next((read_schema("schemas", schema) for schema in found), None)
    return None


def _schemas_since(commits: Commits) -> Sequence[Schema] | None:
    """The schema of each metadata file since the run began, inclusive; ``None`` where one is gone."""
    now = current_schema(commits.metadata)
    if commits.base is None:
        return None
    if commits.location is not None and _plain(commits.location) == _plain(commits.base):
        return [now]
    files = [str(entry.get("metadata-file")) for entry in commits.metadata.get("metadata-log", ())]
    first = next((at for at, file in enumerate(files) if _plain(file) == _plain(commits.base)), None)
    if first is None:
        return None
    schemas = []
    for file in files[first:]:
        json = commits.read(file)
        if json is None:
            return None
        schemas.append(current_schema(json))
    return [*schemas, now]


def _plain(location: str) -> str:
    """``/lake/t`` for ``file:/lake/t`` and ``file:///lake/t``."""
    return re.sub("^file:/+", "/", location)
