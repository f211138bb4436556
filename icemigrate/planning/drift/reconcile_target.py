"""Reverts other clients' changes of a table, planned as the undo of a migration; pure.

The recorded state is the side before, and the catalog the side after, so the rules of an undo apply:
undeclared additions stay, a dropped column returns under its own field id, and a change that would lose data
is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.locations import normalize_location
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Snapshot, Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.drift.comparable_tables import ServerManaged, as_declared, is_never_server_managed
from icemigrate.planning.drift.differing_facts import find_differing_facts, is_expired_reference
from icemigrate.planning.undo import UndoStates, invert_migration


class ReconcileTarget(Frozen):
    """The target of reconciling one table.

    :param problems: changes that cannot be reverted, with any consent.
    :param notes: differences that stay.
    """

    undo: TableUndo
    problems: tuple[PlanProblem, ...] = ()
    notes: tuple[str, ...] = ()


class ReconcileContext(Frozen):
    """Inputs beside the two sides.

    :param name: the table's recorded name in the catalog.
    :param declared: the declared name for the table's current name.
    :param machines: facts that the catalog's server and its clients set automatically.
    :param snapshots: ids of the table's current snapshots.
    :param then: the table's snapshot when it was recorded; ``None`` where it is unknown.
    """

    name: TableName
    declared: TableName
    machines: ServerManaged = is_never_server_managed
    snapshots: Collection[int] = ()
    then: Snapshot | None = None


def find_reconcile_target(base: Table, current: Table, context: ReconcileContext) -> ReconcileTarget | None:
    """The target that reverts the current table to the recorded one; ``None`` without a difference.

    :param base: the recorded table, under its declared name.
    :param current: the table in the catalog.
    """
    now = replace(as_declared(base, current, context.machines, foreign=False), name=context.declared)
    problems, notes = list[PlanProblem](), list[str]()
    wanted, now = _references(base, now, context, problems, notes)
    problems += _location(base, current)
    differs = any(
        f.managed and not is_expired_reference(f, base)
        for f in find_differing_facts(base, current, context.machines)
    )
    if not differs and now.name == base.name and not problems:
        return None
    target = invert_migration(UndoStates(wanted, now), current).target
    was = replace(target, name=context.name, snapshot=context.then)
    undo = TableUndo(base.name, now.name, wanted, now, was, current)
    return ReconcileTarget(undo, tuple(problems), tuple(notes))


def _references(
    base: Table, now: Table, context: ReconcileContext, problems: list[PlanProblem], notes: list[str]
) -> tuple[Table, Table]:
    """Both sides without the branches and tags that cannot, or need not, be restored."""
    wanted, left = dict(base.refs), dict(now.refs)
    for name, ref in base.refs.items():
        current = now.refs.get(name)
        if current is not None and ref.kind == current.kind:
            if ref.snapshot_id == CURRENT_SNAPSHOT:
                continue
            if name not in base.pins:
                wanted[name] = replace(ref, snapshot_id=current.snapshot_id)
            elif ref.snapshot_id != current.snapshot_id and ref.snapshot_id not in context.snapshots:
                problems.append(_gone(base, name, ref, f"its snapshot {ref.snapshot_id} has expired"))
                wanted[name] = left[name] = current
        elif current is None and ref.max_ref_age_ms is not None:
            notes.append(f"{ref.kind} {name} had a limited retention, and is not restored")
            left[name] = ref
        elif current is None and ref.snapshot_id not in context.snapshots:
            expired = f"its snapshot {ref.snapshot_id} has expired"
            unknown = "the history did not record its snapshot"
            problems.append(
                _gone(base, name, ref, unknown if ref.snapshot_id == CURRENT_SNAPSHOT else expired)
            )
            left[name] = ref
    return replace(base, refs=wanted), replace(now, refs=left)


def _gone(base: Table, name: str, ref: Ref, why: str) -> PlanProblem:
    subject: Subject = ("tags" if ref.kind == "tag" else "branches", name)
    message = f"{ref.kind} `{name}` of `{base.name}` cannot be restored: {why}"
    return PlanProblem("snapshot-expired", base.name, subject, message, _ACCEPT)


def _location(base: Table, current: Table) -> Iterator[PlanProblem]:
    if (
        base.location is None
        or current.location is None
        or normalize_location(base.location) == normalize_location(current.location)
    ):
        return
    message = f"`{base.name}` is in {current.location}, not in {base.location}: its files cannot be moved"
    yield PlanProblem("location", base.name, ("location",), message, _ACCEPT)


_ACCEPT = "`drift --accept` declares the current state; `--table` reconciles the other tables alone"
