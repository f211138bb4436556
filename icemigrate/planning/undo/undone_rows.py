"""Rows after an undo: those of the main branch, and those that other branches wrote since."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.rewind_rows import RewindRows
from icemigrate.diagnostics import format_count
from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.undo.undo_inputs import MissingEvidence, UndoOptions


def other_branch_notes(current: Table, after: Table, then: Table | None) -> Iterator[str]:
    """Notes about restored columns that branches were written without.

    :param current: the current table.
    :param after: the table after the undo.
    :param then: the table before the migration, where that is recorded.
    """
    now = schema_index(current.schema)
    back = [
        entry
        for field_id, entry in schema_index(after.schema).items()
        if field_id not in now and (entry.parent is None or entry.parent in now)
    ]
    for name, head in sorted(current.heads.items()) if back else ():
        if head.schema is None or name not in after.refs or not head.has_rows:
            continue
        since = then is not None and _is_written_since(name, current, then)
        without = [e for e in back if _is_gone(e, head.schema, then.schema if since and then else None)]
        if without:
            columns = ", ".join(format_path(entry.path) for entry in without)
            yield (
                f"branch `{name}` ({head.rows_text}) was written to without {columns}: rows written that "
                f"way read {_read(without)} there"
            )


def _is_gone(entry: IndexedField, known: Schema, then: Schema | None) -> bool:
    """Whether a column had been dropped before the newest snapshot of a branch was written.

    :param known: the schema of that snapshot.
    :param then: the table's schema from before it; ``None`` where it is unknown.  A column with a lower id
        than others of the snapshot existed before them even then.
    """
    if known.by_id(entry.field.id) is not None:
        return False
    was_there = then is not None and then.by_id(entry.field.id) is not None
    return was_there or entry.field.id < max(schema_index(known), default=0)


def _is_written_since(name: str, current: Table, then: Table) -> bool:
    """Whether a branch got its newest snapshot after the table was as it was recorded."""
    if name in then.refs:
        return then.refs[name].snapshot_id != current.refs[name].snapshot_id
    return then.snapshot is None or current.heads[name].snapshot.timestamp_ms > then.snapshot.timestamp_ms


def _read(without: list[IndexedField]) -> str:
    """The value that readers get from files without these columns."""
    has_default = [entry.field.initial_default is not None for entry in without]
    if not any(has_default):
        return "null"
    return "the default" if all(has_default) else "null, or the default of those that have one,"


class RowsUndo(Frozen):
    """The effect on the rows.

    :param change: ``None`` where they stay.
    """

    change: RewindRows | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[PlanProblem, ...] = ()


def plan_rows_undo(
    undo: TableUndo, current: Table, evidence: Evidence | None, options: UndoOptions
) -> RowsUndo:
    """Plan the rows of a table whose migration is undone."""
    if not undo.rows_changed:
        return RowsUndo()
    if options.metadata_only:
        return RowsUndo(notes=("the rows stay as they are (--metadata-only)",))
    if evidence is None:
        raise MissingEvidence("the undo needs evidence about the table's snapshots, and has none")
    before, last = _snapshot(undo.actual_before), _snapshot(undo.actual_after)
    is_gone = before is not None and before.id not in evidence.existing_snapshots
    if undo.rows_open:
        if evidence.published is None:
            return RowsUndo()  # no reader has seen the rows of the migration
        before, last = evidence.published.before, evidence.published.last
        is_gone = before is None
    if is_gone:
        which = "" if before is None else f" ({before.id})"
        return _refused(
            undo,
            "snapshot-expired",
            f"the snapshot before the migration{which} has expired, and its rows with it",
            "`--metadata-only` undoes the rest and leaves the rows as they are",
        )
    if _id(current.snapshot) == _id(before) != _id(last):
        return RowsUndo(notes=("the rows are back already",))  # an interrupted undo got this far
    newer = _id(current.snapshot) != _id(last) and not _are_taken_back(evidence, options)
    if newer and not options.discard_new_data:
        return _newer_rows(undo, current, evidence)
    return RowsUndo(RewindRows(current.name, before, discarded=newer))


def _newer_rows(undo: TableUndo, current: Table, evidence: Evidence) -> RowsUndo:
    ways = "`--discard-new-data` gives them up; `--metadata-only` leaves the rows as they are"
    if evidence.steps and "" not in evidence.steps:
        later = ", ".join(sorted({name.rpartition("/")[2] for name in evidence.steps}))
        return _refused(
            undo,
            "newer-rows",
            f"later migrations wrote rows of `{current.name}` ({later}); no other client did",
            f"roll them back too, with `rollback --to VERSION`; {ways}",
        )
    unknown, known = "an unknown number of snapshots", evidence.snapshots
    snapshots = unknown if known is None else format_count(known, "snapshot")
    return _refused(
        undo,
        "newer-rows",
        f"`{current.name}` was written to since the migration: {snapshots},"
        f" {format_count(evidence.rows, 'row')} in {format_count(evidence.files, 'new file')}",
        ways,
    )


def _are_taken_back(evidence: Evidence, options: UndoOptions) -> bool:
    """Whether all snapshots since are from migrations that the same plan undoes earlier."""
    return evidence.steps is not None and options.taken_back.issuperset(evidence.steps)


def _snapshot(table: Table | None) -> Snapshot | None:
    return None if table is None else table.snapshot


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id


def _refused(undo: TableUndo, rule: str, message: str, hint: str) -> RowsUndo:
    return RowsUndo(problems=(PlanProblem(rule, undo.declared, ("rows",), message, hint),))
