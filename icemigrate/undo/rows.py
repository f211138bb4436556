"""The rows of a migration that changed rows: back to the snapshot before it, or not at all."""

from __future__ import annotations

from icemigrate.changes.base import Problem
from icemigrate.changes.rewind_rows import RewindRows
from icemigrate.frozen import Frozen
from icemigrate.model.counting import count
from icemigrate.model.evidence import Evidence
from icemigrate.model.table import Snapshot, Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo.values import Options, Unanswered


class Rows(Frozen):
    """What becomes of the rows.

    :param change: ``None`` where they stay.
    """

    change: RewindRows | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def rewind(undo: TableUndo, there: Table, evidence: Evidence | None, options: Options) -> Rows:
    """What becomes of the rows of a table when a migration of it is undone."""
    if not undo.rows_changed:
        return Rows()
    if options.metadata_only:
        return Rows(notes=("the rows stay as they are (--metadata-only)",))
    if evidence is None:
        raise Unanswered("the undo needs to know of the table's snapshots, and nobody looked")
    before, last = _snapshot(undo.actual_before), _snapshot(undo.actual_after)
    is_gone = before is not None and before.id not in evidence.there
    if undo.rows_open:
        if evidence.published is None:
            return Rows()  # nobody has seen what the migration wrote
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
    if _id(there.snapshot) == _id(before) != _id(last):
        return Rows(notes=("the rows are back already",))  # an undo that was cut short got so far
    newer = _id(there.snapshot) != _id(last) and not _are_taken_back(evidence, options)
    if newer and not options.discard_new_data:
        unknown, known = "an unknown number of snapshots", evidence.snapshots
        snapshots = unknown if known is None else count(known, "snapshot")
        return _refused(
            undo,
            "newer-rows",
            f"`{there.name}` was written to since the migration: {snapshots},"
            f" {count(evidence.rows, 'row')} in {count(evidence.files, 'new file')}",
            "`--discard-new-data` gives them up; `--metadata-only` leaves the rows as they are",
        )
    return Rows(RewindRows(there.name, before, discarded=newer))


def _are_taken_back(evidence: Evidence, options: Options) -> bool:
    """Whether all snapshots since are those of migrations that the same plan takes back before."""
    return evidence.steps is not None and options.taken_back.issuperset(evidence.steps)


def _snapshot(table: Table | None) -> Snapshot | None:
    return None if table is None else table.snapshot


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id


def _refused(undo: TableUndo, rule: str, message: str, hint: str) -> Rows:
    return Rows(problems=(Problem(rule, undo.declared, ("rows",), message, hint),))
