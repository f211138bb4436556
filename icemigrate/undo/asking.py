"""What has to be known of a table's files before a migration of it can be undone."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.end_refill import is_refilling
from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Questions
from icemigrate.model.makers import made_by
from icemigrate.model.marks import before_tag_name, before_tag_names, older_tag_names
from icemigrate.model.names import TableName
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.undo.finding import find
from icemigrate.undo.keeping import dropped, is_required, made_optional, narrowed
from icemigrate.undo.own import own
from icemigrate.undo.values import both_sides


class Asked(Frozen):
    """A question about one table of one version.

    :param version: of the migration.
    :param declared: the table as people know it.
    :param name: the table in the catalog.
    """

    version: str
    declared: TableName
    name: TableName
    questions: Questions


def questions(
    record: UndoRecord, actual: dict[TableName, Table | None], project: str, rows_stay: bool = False
) -> tuple[Asked, ...]:
    """The questions about all tables of a migration; none where the answer cannot matter.

    :param actual: the catalog's tables by their name there.
    :param project: whose migration it is.
    :param rows_stay: rows that it changed do not go back, so its own files count as added since.
    """
    asked: list[Asked] = []
    for undo in () if record.baseline else record.tables:
        there = find(undo, actual)
        found = None if there is None else questions_about(undo, there, record.version, project, rows_stay)
        if there is not None and found is not None:
            asked.append(Asked(record.version, undo.declared, there.name, found))
    return tuple(asked)


def questions_about(
    undo: TableUndo, there: Table, version: str, project: str, rows_stay: bool = False
) -> Questions | None:
    """What must be known of a table that was altered; ``None`` where nothing must.

    :param version: of the migration.
    :param project: whose it is.
    :param rows_stay: as in :func:`questions`.
    """
    if undo.before is None or undo.after is None:
        return None
    before, after = both_sides(own(undo))
    old = index(before.schema)
    narrow = {i: old[i].field.type for i in narrowed(before, after)}
    # A refill that was cut short has its columns back already, and so have values that stayed away.
    copied = {i for copy in undo.last_copies for i in copy.fields}
    gone = [
        i
        for i in dropped(before, after)
        if there.schema.by_id(i) is None or is_refilling(there) or i in copied
    ]
    away = [i for i in gone if there.schema.by_id(i) is None or is_refilling(there)]
    nulls = frozenset((*made_optional(before, after), *(i for i in away if is_required(before, i))))
    held = {i: before.schema.leaves(i) for i in gone}
    snapshots = {
        undo.actual_before.refs[name].snapshot_id
        for name in before.refs.keys() - after.refs.keys()
        if undo.actual_before is not None and name in undo.actual_before.refs
    }
    if undo.rows_changed and undo.actual_before is not None and undo.actual_before.snapshot is not None:
        snapshots.add(undo.actual_before.snapshot.id)
    if not (narrow or nulls or held or snapshots or undo.rows_changed):
        return None
    # What was written while the migration ran may have been written under either schema: it counts as new.
    is_recorded = undo.rows_changed and not undo.rows_open and not rows_stay
    then = undo.actual_after if is_recorded else undo.actual_before
    since = None if then is None or then.snapshot is None else then.snapshot.id
    versions = tuple(_keeping(undo, project, version, there)) if held else ()
    key = made_by(project, version) if undo.rows_open and not rows_stay else None
    leaves = {leaf for i in away for leaf in held[i]}
    return Questions(
        since,
        nulls,
        narrow,
        held,
        frozenset(snapshots),
        versions,
        _copies(undo),
        rows_of=key,
        steps=undo.rows_changed,
        columns={i: old[i].field.type for i in leaves},
    )


def questions_of_refill(undo: TableUndo, there: Table, version: str, project: str) -> Questions | None:
    """What must be known of a table before values come back to columns that an undo brought back;
    ``None`` where the table has none of these columns.

    :param version: of the migration that was undone.
    :param project: whose it is.
    """
    if undo.before is None or undo.after is None:
        return None
    before, after = both_sides(own(undo))
    # A file that was mended for a redo may drop no column any more, and values of the first run are left.
    copies = _copies(undo)
    fields = dict.fromkeys((*dropped(before, after), *copies))
    back = frozenset(i for i in fields if there.schema.by_id(i) is not None)
    if not back:
        return None
    then = undo.actual_before
    return Questions(
        since=None if then is None or then.snapshot is None else then.snapshot.id,
        held={i: there.schema.leaves(i) for i in sorted(back)},
        versions=tuple(_keeping(undo, project, version, there)),
        last_copies=copies,
        back=back & copies.keys(),
    )


def _copies(undo: TableUndo) -> dict[int, tuple[str, ...]]:
    """The versions that keep values which an undo did not bring back, by field, the newest first."""
    found: dict[int, tuple[str, ...]] = {}
    for copy in undo.last_copies:
        for field_id in copy.fields:
            found[field_id] = (*found.get(field_id, ()), copy.version)
    return found


def _keeping(undo: TableUndo, project: str, version: str, there: Table) -> Iterator[str]:
    """What keeps the rows from before the migration: its tags, and the snapshot itself until it expires."""
    yield from before_tag_names(project, version, there.refs) or (before_tag_name(project, version),)
    yield older_tag_names(version)[1]
    if undo.actual_before is not None and undo.actual_before.snapshot is not None:
        yield str(undo.actual_before.snapshot.id)
