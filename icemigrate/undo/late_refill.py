"""Values brought back to columns whose migration was rolled back earlier; pure.

The rollback left them in a snapshot, since nobody asked for them then.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.base import Problem
from icemigrate.frozen import replace
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.plan import Direction, MigrationPlan, TablePlan
from icemigrate.undo.altered import one_commit
from icemigrate.undo.finding import declared_now, find
from icemigrate.undo.planning import Place, Undo
from icemigrate.undo.refilling import plan_refill, unasked
from icemigrate.undo.values import Options


def plan_late_refill(
    undo: Undo, state: State, actual: Mapping[TableName, Table | None], place: Place, options: Options
) -> MigrationPlan:
    """Plan the refill of a version that is held, or with ``refill=False`` the end of its promise.

    :param undo: the version, with the evidence that the questions of a refill ask for.
    :param state: as declared by what is applied.
    """
    plans = list[TablePlan]()
    warnings = list[Problem]()
    for table in undo.record.tables:
        there = find(table, actual)
        now = declared_now(table, state) or table.declared_before
        if there is None or now is None or now not in state.tables:
            continue
        plan, missed = _table(table, there, undo, state.tables[now], place, options)
        plans += [plan] if plan.steps or plan.notes else []
        warnings += missed
    return MigrationPlan(
        version=undo.version,
        description=undo.description,
        checksum=undo.checksum,
        tables=tuple(plans),
        namespaces=state.namespaces,
        warnings=tuple(warnings),
        direction=Direction.ROLLBACK,
        refill_only=True,
    )


def _table(
    undo: TableUndo, there: Table, version: Undo, declared: Table, place: Place, options: Options
) -> tuple[TablePlan, tuple[Problem, ...]]:
    evidence = version.evidence.get(undo.declared)
    owner = (place.project, version.version)
    found = plan_refill(there, owner, place.catalog_name, evidence, options, undo.declared)
    steps = (*((one_commit(version.version, [*found.before]),) if found.before else ()), *found.steps)
    plan = TablePlan(
        there.name,
        declared.name,
        declared,
        declared.name,
        steps=steps,
        notes=found.notes,
        stays=found.stays,
        last_copies=(*found.last_copies, *unasked(undo, evidence)),
    )
    if options.refill:
        return plan, found.warnings
    # A column may have been dropped once more since.
    fields = {**({} if undo.before is None else index(undo.before.schema)), **index(there.schema)}
    given_up = tuple(
        f"{format_path(fields[i].path)} stays as it is: {copy.version} is no longer kept for its values"
        for copy in undo.last_copies
        for i in copy.fields
        if i in fields
    )
    return replace(plan, notes=given_up, last_copies=()), ()
