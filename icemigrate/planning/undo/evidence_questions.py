"""Questions about a table's files that an undo of a migration depends on."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.end_refill import has_open_refill
from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import before_tag_name, before_tag_names, older_tag_names
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table, made_by
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.undo.inverse import with_net_change
from icemigrate.planning.undo.retained_facts import (
    dropped_fields,
    fields_made_optional,
    fields_with_changed_type,
    is_required_in_files,
)
from icemigrate.planning.undo.undo_inputs import both_declared_states, find_undo_table, moved_references


class TableQuestions(Frozen):
    """A question about one table of one version.

    :param version: of the migration.
    :param declared: the table's declared name.
    :param name: the table in the catalog.
    """

    version: str
    declared: TableName
    name: TableName
    questions: EvidenceQuery


def undo_questions(
    record: UndoRecord, actual: dict[TableName, Table | None], project: str, rows_stay: bool = False
) -> tuple[TableQuestions, ...]:
    """The questions about all tables of a migration; empty where no answer matters.

    :param actual: the catalog's tables by their name there.
    :param project: the migration's project.
    :param rows_stay: whether the rows that it changed stay, so that its own files count as added since.
    """
    asked: list[TableQuestions] = []
    for undo in () if record.baseline else record.tables:
        current = find_undo_table(undo, actual)
        found = (
            None if current is None else questions_about(undo, current, record.version, project, rows_stay)
        )
        if current is not None and found is not None:
            asked.append(TableQuestions(record.version, undo.declared, current.name, found))
    return tuple(asked)


def questions_about(
    undo: TableUndo, current: Table, version: str, project: str, rows_stay: bool = False
) -> EvidenceQuery | None:
    """The questions about an altered table; ``None`` without any.

    :param version: of the migration.
    :param project: the migration's project.
    :param rows_stay: as in :func:`undo_questions`.
    """
    if undo.before is None or undo.after is None:
        return None
    before, after = both_declared_states(with_net_change(undo))
    old = schema_index(before.schema)
    narrow = {i: old[i].field.type for i in fields_with_changed_type(before, after)}
    # An interrupted refill has already restored its columns, and so have values that were not restored.
    copied = {i for copy in undo.last_copies for i in copy.fields}
    gone = [
        i
        for i in dropped_fields(before, after)
        if current.schema.by_id(i) is None or has_open_refill(current) or i in copied
    ]
    away = [i for i in gone if current.schema.by_id(i) is None or has_open_refill(current)]
    nulls = frozenset(
        (*fields_made_optional(before, after), *(i for i in away if is_required_in_files(before, i)))
    )
    held = {i: before.schema.leaves(i) for i in gone}
    snapshots = {
        undo.actual_before.refs[name].snapshot_id
        for name in (*(before.refs.keys() - after.refs.keys()), *moved_references(before, after))
        if undo.actual_before is not None and name in undo.actual_before.refs
    }
    if undo.rows_changed and undo.actual_before is not None and undo.actual_before.snapshot is not None:
        snapshots.add(undo.actual_before.snapshot.id)
    if not (narrow or nulls or held or snapshots or undo.rows_changed):
        return None
    # Files written while the migration ran may have either schema: they count as new.
    is_recorded = undo.rows_changed and not undo.rows_open and not rows_stay
    then = undo.actual_after if is_recorded else undo.actual_before
    since = None if then is None or then.snapshot is None else then.snapshot.id
    sources = tuple(_sources_with_rows(undo, project, version, current)) if held else ()
    key = made_by(project, version) if undo.rows_open and not rows_stay else None
    leaves = {leaf for i in away for leaf in held[i]}
    return EvidenceQuery(
        since,
        nulls,
        narrow,
        held,
        frozenset(snapshots),
        sources,
        _copies(undo),
        rows_of=key,
        steps=undo.rows_changed,
        columns={i: old[i].field.type for i in leaves},
    )


def refill_questions(undo: TableUndo, current: Table, version: str, project: str) -> EvidenceQuery | None:
    """The questions before values are written back to columns that an undo restored.

    ``None`` where the table has none of these columns.

    :param version: of the undone migration.
    :param project: the migration's project.
    """
    if undo.before is None or undo.after is None:
        return None
    before, after = both_declared_states(with_net_change(undo))
    # A file that was edited for a redo may not drop a column any more, and values of the first run remain.
    copies = _copies(undo)
    fields = dict.fromkeys((*dropped_fields(before, after), *copies))
    back = frozenset(i for i in fields if current.schema.by_id(i) is not None)
    if not back:
        return None
    then = undo.actual_before
    return EvidenceQuery(
        since=None if then is None or then.snapshot is None else then.snapshot.id,
        held={i: current.schema.leaves(i) for i in sorted(back)},
        sources=tuple(_sources_with_rows(undo, project, version, current)),
        last_copies=copies,
        to_restore=back & copies.keys(),
    )


def _copies(undo: TableUndo) -> dict[int, tuple[str, ...]]:
    """The sources of values that an undo did not restore, by field, the newest first."""
    found: dict[int, tuple[str, ...]] = {}
    for copy in undo.last_copies:
        for field_id in copy.fields:
            found[field_id] = (*found.get(field_id, ()), copy.version)
    return found


def _sources_with_rows(undo: TableUndo, project: str, version: str, current: Table) -> Iterator[str]:
    """The references to the rows from before the migration: its tags, and the snapshot itself until it
    expires.
    """
    yield from before_tag_names(project, version, current.refs) or (before_tag_name(project, version),)
    yield older_tag_names(version)[1]
    if undo.actual_before is not None and undo.actual_before.snapshot is not None:
        yield str(undo.actual_before.snapshot.id)
