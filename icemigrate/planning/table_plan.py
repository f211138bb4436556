"""The plan of one table in one migration: create, adopt, rename, drop, or alter it."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.column_positions import FieldInsertion
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.keep_view import DropKeptView
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data_steps.branch_effects import branch_effect_problems
from icemigrate.data_steps.data_step_kind import (
    DataStepContext,
    DataStepStage,
    earlier_dropped_paths,
    fields_with_values_before,
    restored_fields,
)
from icemigrate.data_steps.fill_required import backfilled_columns, required_field_problems
from icemigrate.data_steps.not_null_check import not_null_check_steps
from icemigrate.data_steps.time_zone import DEFAULT_TIME_ZONE
from icemigrate.data_steps.unloadable_tables import unloadable_table_problems
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import TableTarget
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import FieldPath, TableName
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table, aside_name, differing_keys, owner_of, trash_name, trash_names
from icemigrate.iceberg.table_properties import OWNER_PROPERTY
from icemigrate.planning.create_or_adopt import plan_new_table, view_exists_problem
from icemigrate.planning.expand_contract import data_step_problems, with_data_steps
from icemigrate.planning.merge import NO_TABLE, Conflict, merge_tables
from icemigrate.planning.plan import PlannedChange
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.resolve_pins import resolve_pins
from icemigrate.planning.spark_incompatible import with_spark_hazards
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.table_input import (
    TableInput,
    TableResult,
    plan_altered_table,
    validate_table_plan,
)


def plan_table(
    wanted: TableTarget,
    base: Table | None,
    actual: Mapping[TableName, Table | None],
    version: str,
    former: frozenset[TableName],
    context: PlanningContext,
    is_aside: bool = False,
) -> TableResult:
    """Plan one table.

    :param base: the recorded table, ``None`` at its first mention.
    :param actual: the catalog's tables by their name there.
    :param former: earlier declared names of tables.
    :param is_aside: whether the plan of another table moves it out of the way first.
    """
    name = context.physical(wanted.name)
    goal = None if wanted.table is None else context.adjust(replace(wanted.table, name=name))
    inputs = TableInput(wanted, base, name, goal, version, context)
    if is_aside:
        inputs = replace(inputs, temporary_name=_waiting_name(inputs))
    if goal is None:
        return _plan_drop(inputs, actual)
    if goal.pins:
        there = _actual_table(inputs, actual) if context.is_catalog_known else None
        writes = any(work.stage is DataStepStage.WRITE for work in inputs.works)
        if there is not None or not context.is_catalog_known:
            goal, unresolved = resolve_pins(goal, base, there, wanted.name, writes)
            inputs = replace(inputs, goal=goal)
            if unresolved:
                return TableResult(inputs.plan(name), there, unresolved)
    if base is None:
        trashed = next((t for n in trash_names(name, context.project, version) if (t := actual.get(n))), None)
        outcome = plan_new_table(inputs, goal, actual.get(name), wanted.name in former, trashed)
    else:
        outcome = _plan_known_table(inputs, goal, base, actual)
    current = actual.get(outcome.plan.first_name)
    if current is not None and owner_of(current) not in (None, context.project):
        return TableResult(
            inputs.plan(current.name), current, (other_owner_problem(wanted.name, current, context.project),)
        )
    outcome = _with_rows(inputs, outcome, current)
    if current is None or outcome.after is None:
        return outcome
    return replace(outcome, plan=with_spark_hazards(outcome.plan, current, outcome.after))


def _waiting_name(inputs: TableInput) -> TableName:
    """The name under which the table waits until its new name is free."""
    assert inputs.wanted.formerly is not None, "a table that exchanges its name has one"
    return aside_name(inputs.context.physical(inputs.wanted.formerly), inputs.context.project, inputs.version)


def _actual_table(inputs: TableInput, actual: Mapping[TableName, Table | None]) -> Table | None:
    """The table in the catalog, which may have its new name already."""
    if inputs.wanted.formerly is not None:
        old = (inputs.context.physical(inputs.wanted.formerly), _waiting_name(inputs))
        for found in map(actual.get, old):
            if found is not None and (inputs.base is None or _same_table(inputs.base, found)):
                return found
    return actual.get(inputs.name)


def other_owner_problem(declared: TableName, current: Table, project: str) -> PlanProblem:
    """The problem of a table that another project owns."""
    owner = owner_of(current)
    return PlanProblem(
        "table-owned",
        declared,
        ("name",),
        f"table `{current.name}` belongs to project `{owner}`, and this is project `{project}`",
        f"change it in project `{owner}`, or hand it over: "
        f"`ALTER TABLE … SET TBLPROPERTIES ('{OWNER_PROPERTY}'='{project}')`",
    )


def _with_rows(inputs: TableInput, outcome: TableResult, current: Table | None) -> TableResult:
    """The result with its data steps, unless the table itself cannot be planned."""
    works = inputs.works if outcome.works is None else outcome.works
    if outcome.after is None or outcome.problems or outcome.plan.conflicts:
        return outcome
    requires = current is not None and current.has_rows and any(map(_makes_required, outcome.plan.changes()))
    if requires and current is not None and inputs.context.is_catalog_known:
        works = (*not_null_check_steps(works, current, outcome.after), *works)
    if not works and not requires:
        return outcome
    is_resumed = inputs.version in inputs.context.begun
    between = outcome.between or outcome.after
    assert inputs.goal is not None, "rows are of a table that stays"
    sides = (inputs.base, current)
    earlier = inputs.context.restored_fields.get(inputs.version, {}).get(inputs.wanted.name, frozenset())
    data_context = DataStepContext(
        inputs.wanted.name,
        between,
        fields_with_values_before(*sides, is_resumed),
        restored_fields(*sides, inputs.goal, is_resumed) | earlier,
        earlier_dropped_paths(inputs.base, inputs.goal),
    )
    works = tuple(work.adapted_step(data_context) for work in works)
    plan = with_data_steps(
        outcome.plan,
        works,
        data_context,
        outcome.after,
        inputs.context.catalog_name,
        inputs.context.project,
        inputs.version,
        is_resumed,
        inputs.wanted.time_zone or DEFAULT_TIME_ZONE,
    )
    problems = (
        *data_step_problems(works, data_context, inputs.context.has_branches),
        *unloadable_table_problems(works, data_context, current, outcome.after),
    )
    doubts = tuple(doubt for work in works for doubt in work.unknown_column_problems(data_context))
    if current is not None and (current.has_rows or not inputs.context.is_catalog_known):
        doubts += tuple(required_field_problems(works, data_context, current, outcome.after))
    if inputs.context.is_catalog_known:
        catalog = inputs.context.catalog_name
        left = (
            ()
            if current is None
            else tuple(branch_effect_problems(works, data_context, current, outcome.after, catalog))
        )
        return replace(outcome, plan=plan, problems=(*problems, *doubts), warnings=(*outcome.warnings, *left))
    # Without a catalog, undeclared columns and rows are unknown.
    return replace(outcome, plan=plan, problems=problems, warnings=(*outcome.warnings, *doubts))


def _makes_required(planned: PlannedChange) -> bool:
    """Whether existing data files may lack a field that a change requires."""
    change = planned.change
    return isinstance(change, MakeRequired) or (
        isinstance(change, FieldInsertion) and change.is_missing_in_rows
    )


def _plan_known_table(
    inputs: TableInput, goal: Table, base: Table, actual: Mapping[TableName, Table | None]
) -> TableResult:
    assert inputs.wanted.formerly is not None
    old_name = inputs.context.physical(inputs.wanted.formerly)
    current = actual.get(old_name)
    found: list[DetectedChange] = []
    notes: list[str] = []
    waiting = actual.get(_waiting_name(inputs)) if inputs.wanted.waits else None
    if waiting is not None and _same_table(base, waiting):
        if actual.get(inputs.name) is not None:
            return _name_taken_problem(inputs, waiting, old_name)
        rename = RenameTable(waiting.name, inputs.name, old_name)
        found.append(DetectedChange(rename, waiting))
        current = rename.apply(waiting)
        if inputs.temporary_name is None:
            notes.append(f"moved out of the way by an interrupted run: {old_name} → {waiting.name}")
            old_name = waiting.name
    elif old_name != inputs.name:
        target = actual.get(inputs.name)
        if target is not None and _is_renamed(base, current, target):
            current = target
            notes.append(f"already renamed: {old_name} → {inputs.name}")
            old_name = inputs.name
        elif current is not None:
            if target is not None:
                return _name_taken_problem(inputs, current, old_name)
            if inputs.name in inputs.context.views:
                problem = view_exists_problem(inputs, ("renamed_from",))
                return TableResult(inputs.plan(old_name), current, (problem,))
            if (left := _view_left_behind(inputs, current)) is not None:
                return TableResult(inputs.plan(old_name), current, (left,))
            rename = RenameTable(old_name, inputs.name)
            found.append(DetectedChange(rename, current))
            current = rename.apply(current)
    if current is None:
        if f"{old_name}:name" in inputs.context.keep:
            return TableResult(inputs.plan(old_name), goal)
        return _missing_table_conflict(inputs, old_name, goal)
    if not _same_table(base, current):
        return _replaced_table_conflict(inputs, base, current, old_name, f"table {base.uuid}")
    base = _with_original_properties(inputs, replace(base, name=inputs.name), goal, current)
    begun = (
        _possibly_optional_fields(inputs, goal, base)
        if inputs.version in inputs.context.begun
        else frozenset[FieldPath]()
    )
    merged = merge_tables(
        base, goal, current, inputs.wanted.positions, inputs.overwrite, begun, inputs.context.keep
    )
    return plan_altered_table(inputs, current, merged, old_name, found, notes)


def _with_original_properties(inputs: TableInput, base: Table, goal: Table, current: Table) -> Table:
    """The base with properties that no file declared before, and that the table had from the start.

    Iceberg's library and servers set some on a new table, and an adopted table has its own.
    """
    original = {
        key: current.properties[key]
        for key in differing_keys(base.properties, goal.properties)
        if key in goal.properties
        and key not in base.properties
        and key in current.properties
        and inputs.context.is_original_property(current.uuid, key, current.properties[key])
    }
    return replace(base, properties={**base.properties, **original}) if original else base


def _possibly_optional_fields(inputs: TableInput, goal: Table, base: Table) -> frozenset[FieldPath]:
    """Fields that an interrupted run may have left optional, because it fills them first."""
    fills, known = backfilled_columns(inputs.works), schema_index(base.schema)
    return frozenset(entry.path for entry in schema_index(goal.schema).values() if fills.has(entry, known))


def _is_renamed(base: Table, current: Table | None, target: Table) -> bool:
    """Whether the table already has its new name; another table may have the old one."""
    if current is None:
        return _same_table(base, target)
    return base.uuid is not None and base.uuid == target.uuid != current.uuid


def _same_table(base: Table, current: Table) -> bool:
    """Whether it is the recorded table, by uuid where both uuids are known."""
    return base.uuid is None or current.uuid is None or base.uuid == current.uuid


def _replaced_table_conflict(
    inputs: TableInput, base: Table, current: Table, name: TableName, wanted: str
) -> TableResult:
    """The conflict where another table has the recorded name."""
    conflict = Conflict(f"{name}:name", f"table {base.uuid}", wanted, f"another table, {current.uuid}")
    return TableResult(replace(inputs.plan(name), conflicts=(conflict,)), current)


def _missing_table_conflict(inputs: TableInput, name: TableName, goal: Table) -> TableResult:
    conflict = Conflict(f"{name}:name", f"table {name}", f"table {inputs.name}", NO_TABLE)
    return TableResult(replace(inputs.plan(name), conflicts=(conflict,)), goal)


def _view_left_behind(inputs: TableInput, current: Table) -> PlanProblem | None:
    """The problem of a table with a kept view that moves to another namespace; ``None`` where it may."""
    view = next(kept_views(current.properties), None)
    if view is None or current.name.namespace == inputs.name.namespace or not inputs.context.is_catalog_known:
        return None
    return PlanProblem(
        "keep-view-namespace",
        inputs.wanted.name,
        ("renamed_from",),
        f"`{current.name}` cannot move to another namespace, because its view `{view.name}` would stay",
        "drop its views in an earlier migration: `keep_view: null`",
    )


def _name_taken_problem(inputs: TableInput, current: Table, old_name: TableName) -> TableResult:
    problem = PlanProblem(
        "table-exists",
        inputs.wanted.name,
        ("renamed_from",),
        f"`{old_name}` cannot be renamed: a table `{inputs.name}` exists already",
        "choose another name, or move the other table away first",
    )
    return TableResult(inputs.plan(old_name), current, (problem,))


def _plan_drop(inputs: TableInput, actual: Mapping[TableName, Table | None]) -> TableResult:
    assert inputs.wanted.formerly is not None
    old_name = inputs.context.physical(inputs.wanted.formerly)
    current = actual.get(old_name)
    if current is None:
        return TableResult(inputs.plan(old_name, notes=("already dropped",)), None)
    if inputs.base is not None and not _same_table(inputs.base, current):
        conflict = Conflict(
            f"{old_name}:name", f"table {inputs.base.uuid}", "dropped", f"another table, {current.uuid}"
        )
        return TableResult(replace(inputs.plan(old_name), conflicts=(conflict,)), current)
    trash = trash_name(old_name, inputs.context.project, inputs.version)
    found = list[DetectedChange]()
    for view in kept_views(current.properties):
        dropped = DropKeptView(old_name, view)
        found.append(DetectedChange(dropped, current))
        current = dropped.apply(current)
    found.append(DetectedChange(DropTable(old_name, trash), current))
    return validate_table_plan(inputs, inputs.plan(old_name, found), found, None, None)
