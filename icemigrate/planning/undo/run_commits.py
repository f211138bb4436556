"""The fields of a table that a migration itself added, from the metadata that its own commits produced.

A plan predicts field ids.  Where another client adds a column before the commit of a migration, the commit is
made on top of it and its fields get other ids.  So an undo record is corrected with the committed ids, and an
undo drops no field that is not proven to be the migration's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata_check import read_schema
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.table_properties import COMMIT_PROPERTY, SUMMARY_PREFIX
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.merge import rebind_field_ids

_Json: TypeAlias = Mapping[str, Any]

RUN_KEY = f"{SUMMARY_PREFIX}run"
"""In the summary of a migration's marker: the run of the lock under which it was committed."""


class InterruptedCommits(Frozen):
    """The metadata in which an interrupted run's commits can be found.

    :param metadata: the table's current metadata.
    :param location: of the file with it.
    :param base: of the metadata file when the run began; ``None`` where it is unknown.
    :param tag: the tag that the migration puts on its tables.
    :param run: id of its lock's acquisition.
    :param read: reads an older metadata file; ``None`` where that cannot be read.
    """

    metadata: _Json
    location: str | None
    base: str | None
    tag: str
    run: str
    read: Callable[[str], _Json | None]


def with_committed_fields(undo: TableUndo, before: Schema, committed: Schema) -> TableUndo:
    """The record with the fields that one commit of the migration added.

    :param before: the schema that the commit was made on.
    :param committed: the schema that the commit produced.
    """
    known = schema_index(before)
    return _with_created(undo, committed, (i for i in schema_index(committed) if i not in known))


def with_interrupted_commits(undo: TableUndo, commits: InterruptedCommits) -> TableUndo:
    """The record with the fields that an interrupted run committed.

    They are found by the first of these that applies:

    1. The marker of the run has a schema: the fields that it has, and the table before did not.
    2. Commits of the run have a property that names it: the commits, by the metadata files since its start.
    3. A statement of Spark is the commit (``publish: direct``): commits that add fields of the migration, of
       the same types, and nothing else.

    Where metadata files are missing, the record is marked as unproved.
    """
    first = undo.actual_before
    if undo.before is None or undo.after is None or first is None:
        return undo
    undo = undo if undo.creates else replace(undo, creates=dict(_foreseen(undo)))
    undo = replace(undo, created=undo.created or frozenset())
    if not undo.creates:
        return undo
    if (marked := _marked_schema(commits)) is not None:
        there = schema_index(first.schema)
        return _with_created(undo, marked, (i for i in schema_index(marked) if i not in there))
    if undo.is_tagged:
        return undo  # its one commit would have created the tag
    states = _states_since(commits)
    if states is None:
        return replace(undo, is_unproved=True)
    types = dict(_types(undo))
    for earlier, later in pairwise(states):
        after, known = schema_index(current_schema(later)), schema_index(current_schema(earlier))
        added = [i for i in after if i not in known]
        if undo.is_signed:
            is_own = _is_signed(commits.run, earlier, later)
        else:
            paths = {format_path(after[i].path): _type(after[i]) for i in added}
            is_own = all(path in types and types[path] in (None, text) for path, text in paths.items())
        if added and is_own:
            undo = _with_created(undo, current_schema(later), added)
    return undo


def _is_signed(run: str, before: _Json, after: _Json) -> bool:
    """Whether the commit between two metadata files is one of a run."""
    was, now = (state.get("properties", {}).get(COMMIT_PROPERTY, "") for state in (before, after))
    return bool(run) and now != was and str(now).startswith(f"{run}/")


def _types(undo: TableUndo) -> Iterator[tuple[str, str | None]]:
    """The types of the fields that the migration adds, by each path that they have while it runs; ``None``
    for one that is gone when the migration ends."""
    entries = {} if undo.after is None else schema_index(undo.after.schema)
    for field_id, paths in undo.creates.items():
        text = _type(entries[field_id]) if field_id in entries else None
        yield from ((path, text) for path in paths)


def _type(entry: IndexedField) -> str:
    return format_type(entry.field.type)


def unproven_fields(undo: TableUndo, now: Schema) -> Iterator[int]:
    """The topmost fields with the id or the name of a field that the migration was to add, but without a
    known commit.

    :param now: the table's current schema.
    """
    if undo.created is None or undo.actual_before is None:
        return
    then, there = schema_index(undo.actual_before.schema), schema_index(now)
    names = {path for paths in undo.creates.values() for path in paths}
    for field_id, entry in there.items():
        if field_id in then or field_id in undo.created:
            continue
        is_topmost = entry.parent is None or entry.parent in then
        if is_topmost and (field_id in undo.creates or format_path(entry.path) in names):
            yield field_id


def _with_created(undo: TableUndo, committed: Schema, added: Iterable[int]) -> TableUndo:
    """The record with fields that a commit added, the predicted ids replaced by those of the commit.

    :param added: ids in ``committed`` of its new fields; fields of others are ignored.
    """
    entries = schema_index(committed)
    names = {path: i for i, paths in undo.creates.items() for path in paths}
    earlier = undo.created or frozenset()
    ids = {format_path(entries[i].path): i for i in {*added, *earlier} if i in entries}
    found = {names[path]: i for path, i in ids.items() if path in names}
    changed = {old: new for old, new in found.items() if old != new}
    created = earlier | set(found.values())
    if not changed:
        return replace(undo, created=created)
    # A predicted field must not be confused with another field that has its id now.
    taken = set(changed.values()) - changed.keys()
    highest = max((0, *(abs(i) for i in undo.creates), *entries))
    aside = {i: -(highest + n) for n, i in enumerate((i for i in undo.creates if i in taken), 1)}
    ids_now = {**aside, **changed}
    return replace(
        undo,
        created=created,
        creates={ids_now.get(i, i): paths for i, paths in undo.creates.items()},
        after=None if undo.after is None else rebind_field_ids(undo.after, ids_now),
        actual_after=None if undo.actual_after is None else rebind_field_ids(undo.actual_after, ids_now),
    )


def _foreseen(undo: TableUndo) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The new fields, each with its path after the migration, for records of releases that did not store
    them.
    """
    if undo.after is None or undo.actual_before is None:
        return
    there = schema_index(undo.actual_before.schema)
    for field_id, entry in schema_index(undo.after.schema).items():
        if field_id not in there:
            yield field_id, (format_path(entry.path),)


def _marked_schema(commits: InterruptedCommits) -> Schema | None:
    """The schema of the run's marker; ``None`` without one."""
    ref = commits.metadata.get("refs", {}).get(commits.tag)
    if ref is None or not commits.run:
        return None
    for snapshot in commits.metadata.get("snapshots", ()):
        if snapshot.get("snapshot-id") == ref.get("snapshot-id"):
            if (snapshot.get("summary") or {}).get(RUN_KEY) != commits.run:
                return None
            wanted = snapshot.get("schema-id")
            found = (s for s in commits.metadata.get("schemas", ()) if s.get("schema-id") == wanted)
            return next((read_schema("schemas", schema) for schema in found), None)
    return None


def _states_since(commits: InterruptedCommits) -> Sequence[_Json] | None:
    """Each metadata file since the run began, inclusive; ``None`` where one is gone."""
    if commits.base is None:
        return None
    if commits.location is not None and _plain(commits.location) == _plain(commits.base):
        return [commits.metadata]
    files = [str(entry.get("metadata-file")) for entry in commits.metadata.get("metadata-log", ())]
    first = next((at for at, file in enumerate(files) if _plain(file) == _plain(commits.base)), None)
    if first is None:
        return None
    states = list[_Json]()
    for file in files[first:]:
        json = commits.read(file)
        if json is None:
            return None
        states.append(json)
    return [*states, commits.metadata]


def _plain(location: str) -> str:
    """``/lake/t`` for ``file:/lake/t`` and ``file:///lake/t``."""
    return re.sub("^file:/+", "/", location)
