"""The inputs of one table's plan, and the plan of a table that exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.keep_view import MISSING_COLUMN, missing_column_notes
from icemigrate.data_steps.branch_repair_sql import violation_hint
from icemigrate.data_steps.data_step_kind import DataStepStage, TableDataStep
from icemigrate.data_steps.retype import Retype
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.declared_sides import TableTarget
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.planning.expand_contract import (
    carried_over,
    is_retype_pending,
    split_difference,
    with_former_requirement,
)
from icemigrate.planning.merge import Fact, MergedTable, done_notes
from icemigrate.planning.plan import Step, TablePlan
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.steps import as_steps, as_unwritten_steps
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.value_restore import deferred_refill
from icemigrate.spark_sql.type_sql import spark_loads

_UNREADABLE = "keep-view-unreadable"


class TableResult(Frozen):
    """A table's plan, the problems that prevent it, and the table after it (``None`` where it is dropped).

    :param between: the table when its rows are written, where that differs.
    :param works: the remaining data steps; ``None`` for all.
    :param done: the facts that the catalog already has as declared.
    """

    plan: TablePlan
    after: Table | None
    problems: tuple[PlanProblem, ...] = ()
    warnings: tuple[PlanProblem, ...] = ()
    between: Table | None = None
    works: tuple[TableDataStep, ...] | None = None
    done: tuple[Fact, ...] = ()

    def namespaces_needed(self) -> Iterator[TableName]:
        """Names whose namespaces must exist before the plan runs."""
        if self.plan.steps and self.after is not None:
            yield self.after.name


class TableInput(Frozen):
    """All inputs of one table's plan.

    :param temporary_name: the table's name when its steps begin, if the plan of another table moves it out of
        the way.
    """

    wanted: TableTarget
    base: Table | None
    name: TableName
    goal: Table | None
    version: str
    context: PlanningContext
    temporary_name: TableName | None = None

    def plan(
        self, name: TableName, found: Sequence[DetectedChange] = (), notes: Sequence[str] = ()
    ) -> TablePlan:
        """The table's plan with these changes."""
        return TablePlan(
            name=name,
            declared=self.wanted.name,
            wanted=self.wanted.table if self.wanted.table is None else self.declared_goal(),
            formerly=self.wanted.formerly,
            steps=self.steps(found),
            notes=tuple(notes),
            temporary_name=self.temporary_name,
        )

    def steps(self, found: Sequence[DetectedChange]) -> tuple[Step, ...]:
        """The steps of these changes, their hazards scoped by the declared name."""
        is_read = self.context.are_statements_read
        made = as_steps(found, self.context.catalog_name) if is_read else as_unwritten_steps(found)
        return tuple(step.scoped(self.wanted.name) for step in made)

    @property
    def overwrite(self) -> frozenset[str]:
        """The facts that are set whatever their current value is."""
        return self.context.overwrite | self.context.overwrite_of.get(self.version, frozenset())

    @property
    def works(self) -> tuple[TableDataStep, ...]:
        """The data steps of the file."""
        return tuple(step for step in self.wanted.data if isinstance(step, TableDataStep))

    def declared_goal(self) -> Table:
        """The target under its declared name."""
        assert self.goal is not None
        return replace(self.goal, name=self.wanted.name)


def plan_altered_table(
    inputs: TableInput,
    current: Table,
    merged: MergedTable,
    name: TableName,
    found: list[DetectedChange],
    notes: list[str],
) -> TableResult:
    """Plan the changes from the current table to the merged target."""
    notes = [*notes, *done_notes(merged.done)]
    if taken := validation.duplicate_names(merged.target, current):
        # Another client uses a name that the migration gives, so a path could mean two fields.
        plan = replace(inputs.plan(name, (), notes), conflicts=merged.conflicts)
        return TableResult(plan, current, tuple(_problem(inputs, violation, current) for violation in taken))
    works = tuple(
        w for w in inputs.works if not isinstance(w, Retype) or is_retype_pending(current, merged.target, w)
    )
    stages = split_difference(current, merged.target, works)
    refilled = inputs.wanted.refilled
    copies = inputs.context.last_copies.get(current.uuid, {}) if refilled else {}
    refill = deferred_refill(stages.first.after, (inputs.context.project, inputs.version), refilled, copies)
    found = [*found, *stages.first.found, *refill.before, *refill.after]
    notes += missing_column_notes(f.change for f in (*found, *stages.last.found))
    last = with_former_requirement(stages.last.found, inputs.works, current, inputs.base)
    plan = replace(
        inputs.plan(name, found, notes),
        conflicts=merged.conflicts,
        finish=carried_over(inputs.steps(last), works),
    )
    between = stages.first.after
    written = between if any(work.stage is DataStepStage.WRITE for work in works) else None
    validated = validate_table_plan(inputs, plan, [*found, *last], stages.last.after, current, written)
    validated = replace(validated, between=between, works=works, done=merged.done)
    if validated.problems or merged.conflicts or not stages.left:
        return validated
    return replace(validated, problems=_unproven_plan_problems(inputs, current, stages.target, stages.left))


def _unproven_plan_problems(
    inputs: TableInput, current: Table, target: Table, left: Sequence[str]
) -> tuple[PlanProblem, ...]:
    """Problems where the changes do not produce the target.

    :param left: the differences that remain.
    """
    # The declared table itself may be invalid, so that Iceberg cannot produce it.
    wrong = (b for b in validation.find_violations(target, current) if not b.is_warning)
    if violations := tuple(_problem(inputs, violation, current) for violation in wrong):
        return violations
    problem = PlanProblem(
        "unproved",
        inputs.wanted.name,
        (),
        f"the plan for `{inputs.name}` does not produce the declared table; still different: "
        f"{', '.join(left)}",
        "split the migration into smaller ones, and report this as a bug",
    )
    return (problem,)


def validate_table_plan(
    inputs: TableInput,
    plan: TablePlan,
    found: Sequence[DetectedChange],
    after: Table | None,
    before: Table | None,
    written: Table | None = None,
) -> TableResult:
    """The plan with the problems of its changes and of the resulting table.

    :param written: the table when its rows are written; ``None`` where none are.
    """
    own = [p for f in found for p in f.change.problems(f.before)]
    if plan.conflicts:
        # A column that is in conflict keeps its current name: the view would repeat the conflict.
        own = [p for p in own if p.rule != MISSING_COLUMN]
    problems = [replace(p, table=inputs.wanted.name) for p in own]
    warnings: list[PlanProblem] = []
    if after is not None and before is not None and not any(p.rule == _UNREADABLE for p in own):
        problems += _unreadable_views(inputs, before, after)
    if after is not None and (found or before is None):
        for violation in validation.find_violations(after, before, written):
            (warnings if violation.is_warning else problems).append(_problem(inputs, violation, before))
    return TableResult(plan, after, tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(warnings)))


def _unreadable_views(inputs: TableInput, before: Table, after: Table) -> Iterator[PlanProblem]:
    """The problem of a table that keeps a view, and that Spark can no longer load after its changes."""
    view = next(kept_views(after.properties), None)
    if view is None or spark_loads(after.schema) or not spark_loads(before.schema):
        return
    column = next(f.name for f in after.schema.fields if not spark_loads(Schema((f,))))
    yield PlanProblem(
        _UNREADABLE,
        inputs.wanted.name,
        ("columns", format_path((column,))),
        f"Spark cannot read `{column}`, so no query could read view `{view.name}` of `{inputs.wanted.name}`",
        "drop the views of the table in the same entry: `keep_view: null`",
    )


def _problem(inputs: TableInput, violation: validation.Violation, before: Table | None) -> PlanProblem:
    """A broken rule of Iceberg, as a problem of the declared table."""
    hint = violation_hint(violation, before, inputs.context.catalog_name)
    return PlanProblem(violation.rule, inputs.wanted.name, violation.subject, violation.message, hint)
