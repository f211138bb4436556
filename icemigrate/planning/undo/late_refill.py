"""Writes values back to columns whose migration was rolled back earlier; pure.

That rollback left them in a snapshot, because no refill was requested.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.change import PlanProblem
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.plan import Direction, MigrationPlan, TablePlan
from icemigrate.planning.undo.refill_plan import plan_refill, unchecked_last_copies
from icemigrate.planning.undo.undo_inputs import (
    UndoEnvironment,
    UndoOptions,
    current_declared_name,
    find_undo_table,
)
from icemigrate.planning.undo.undo_planner import MigrationUndo
from icemigrate.planning.undo.undo_steps import single_commit_step


def plan_late_refill(
    undo: MigrationUndo,
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
    place: UndoEnvironment,
    options: UndoOptions,
) -> MigrationPlan:
    """Plan the refill of a rolled-back version, or with ``refill=False`` give its retained values up.

    :param undo: the version, with the evidence for the questions of a refill.
    :param state: the declared state of the applied migrations.
    """
    plans = list[TablePlan]()
    warnings = list[PlanProblem]()
    for table in undo.record.tables:
        current = find_undo_table(table, actual)
        now = current_declared_name(table, state) or table.declared_before
        if current is None or now is None or now not in state.tables:
            continue
        plan, missed = _table(table, current, undo, state.tables[now], place, options)
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
    undo: TableUndo,
    current: Table,
    version: MigrationUndo,
    declared: Table,
    place: UndoEnvironment,
    options: UndoOptions,
) -> tuple[TablePlan, tuple[PlanProblem, ...]]:
    evidence = version.evidence.get(undo.declared)
    owner = (place.project, version.version)
    found = plan_refill(current, owner, place.catalog_name, evidence, options, undo.declared)
    steps = (*((single_commit_step(version.version, [*found.before]),) if found.before else ()), *found.steps)
    plan = TablePlan(
        current.name,
        declared.name,
        declared,
        declared.name,
        steps=steps,
        notes=found.notes,
        stays=found.stays,
        last_copies=(*found.last_copies, *unchecked_last_copies(undo, evidence)),
    )
    if options.refill:
        return plan, found.warnings
    # A column may have been dropped once more since.
    fields = {
        **({} if undo.before is None else schema_index(undo.before.schema)),
        **schema_index(current.schema),
    }
    given_up = tuple(
        f"{format_path(fields[i].path)} stays as it is: {copy.version} is no longer kept for its values"
        for copy in undo.last_copies
        for i in copy.fields
        if i in fields
    )
    return replace(plan, notes=given_up, last_copies=()), ()
