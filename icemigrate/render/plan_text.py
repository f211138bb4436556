"""A plan as text: a tree by migration and table, each change with its hazards and its reversal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.changes.change import Reversibility
from icemigrate.planning.merge import Conflict
from icemigrate.planning.plan import (
    Direction,
    MigrationPlan,
    Plan,
    PlannedChange,
    PlannedDataStep,
    Step,
    TablePlan,
)
from icemigrate.planning.stages import StagesOfTables, TableStage, plan_stages, shown_statement
from icemigrate.render import display, phrases
from icemigrate.render.alike_tables import alike_tables, planned_tables
from icemigrate.render.findings_text import diagnostics_lines
from icemigrate.render.plan_details import affected_writers_lines, new_table_lines, writer_lines
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import PlanResult

_INDENT = "  "


def plan_text(result: PlanResult, style: TerminalStyle) -> str:
    """The whole plan."""
    plan = result.plan
    lines = [style.dim(f"{plan.project} → {plan.environment} ({display.visible_text(plan.catalog)})"), ""]
    for migration in plan.migrations:
        lines += [*_migration(migration, plan, style), ""]
    found = list(diagnostics_lines(result.diagnostics, style))
    if found:
        lines += [*found, ""]
    old_files = phrases.old_partition_lines(result, shows_all=style.details)
    remarks = (*phrases.table_by_table_lines(result), *old_files)
    if remarks:
        lines += [*(style.dim(line) for line in remarks), ""]
    lines.append(style.bold(phrases.summary_line(plan)))
    if plan.is_empty and plan.direction is Direction.APPLY and plan.base.tables:
        lines.append(style.dim(phrases.DRIFT_LINE))
    obstacles = phrases.obstacles_line(plan)
    if obstacles:
        lines.append(style.bad(obstacles))
    return "\n".join(lines) + "\n"


def _migration(migration: MigrationPlan, plan: Plan, style: TerminalStyle) -> Iterator[str]:
    yield style.bold(phrases.migration_title(migration))
    for namespace in migration.create_namespaces:
        yield f"{_INDENT}{style.symbol('+')} create namespace {display.one_line('.'.join(namespace))}"
    stages = StagesOfTables(plan_stages(plan, migration))
    tables = planned_tables(migration.tables, lambda table: _table(table, stages.of(table), migration, style))
    values = (value for one in migration.lists for value in one.values)
    groups = alike_tables(tables, shows_all=style.details, values=values)
    for group in groups:
        head, *rest = group.lines
        yield f"{_INDENT}{head}"
        if (others := group.others_text(display.one_line)) is not None:
            yield f"{_INDENT * 3}{style.dim(others)}"
        yield from (f"{_INDENT}{line}" for line in rest)
    for namespace in migration.drop_namespaces:
        dropped = display.one_line(".".join(namespace))
        yield f"{_INDENT}{style.symbol('-')} drop namespace {dropped}, left empty"
    recorded = phrases.recorded_text(migration)
    if recorded is not None:
        yield f"{_INDENT}{style.dim(recorded)}"
    elif not (migration.tables or migration.create_namespaces or migration.drop_namespaces):
        yield f"{_INDENT}{style.dim('nothing to do')}"


def _table(
    table: TablePlan, stages: Iterable[TableStage], migration: MigrationPlan, style: TerminalStyle
) -> Iterator[str]:
    label = style.bold(display.one_line(phrases.table_label(table)))
    yield f"{style.symbol(phrases.table_symbol(table))} {label}"
    for stage in stages:
        yield from (f"{_INDENT * 2}{line}" for line in _stage(stage, migration, style))
    files = phrases.old_files_text(table)
    if files is not None:
        yield f"{_INDENT * 2}{style.dim(f'files: {files}')}"
    for note in table.notes:
        yield f"{_INDENT * 2}{style.dim(f'note: {display.note_line(note)}')}"
    for writer in table.writers if style.details else ():
        paint = style.changed if writer.breaks else style.dim
        yield from (f"{_INDENT * 2}{paint(line)}" for line in writer_lines(writer))
    for line in () if style.details else affected_writers_lines(table.writers):
        yield f"{_INDENT * 2}{style.changed(line)}"
    for conflict in table.conflicts:
        yield from (f"{_INDENT * 2}{line}" for line in _conflict(conflict, style))
    if not (table.all_steps or table.rows or table.notes or table.conflicts):
        yield f"{_INDENT * 2}{style.dim('nothing to do')}"


def _stage(stage: TableStage, migration: MigrationPlan, style: TerminalStyle) -> Iterator[str]:
    for data_step in stage.data_steps:
        yield from _work(data_step, migration, style)
    for text in phrases.row_statement_lines(stage, migration):
        yield from (f"{_INDENT * 2}{style.dim(line)}" for line in display.visible_text(text).splitlines())
    for step in stage.steps:
        yield from _step(step, migration, style)


def _step(step: Step, migration: MigrationPlan, style: TerminalStyle) -> Iterator[str]:
    for change, shows_reversal in phrases.changes_with_reversal_flag(step):
        yield f"{style.symbol(change.change.symbol)} {phrases.change_text(change)}"
        if shows_reversal:
            yield from _costs(change, migration, style)
        yield from (f"{_INDENT * 2}{style.dim(line)}" for line in new_table_lines(change.change))
    for statement in step.statements:
        for line in display.visible_text(shown_statement(statement)).splitlines():
            yield f"{_INDENT * 2}{style.dim(line)}"


def _work(work: PlannedDataStep, migration: MigrationPlan, style: TerminalStyle) -> Iterator[str]:
    yield f"{style.symbol(phrases.data_step_symbol(work))} {display.one_line(work.text)}"
    if work.work.writes:
        yield from _costs(work, migration, style)


def _costs(
    change: PlannedChange | PlannedDataStep, migration: MigrationPlan, style: TerminalStyle
) -> Iterator[str]:
    for hazard in change.hazards:
        paint = style.bad if hazard in migration.unconsented else style.changed
        yield f"{_INDENT}{paint(display.one_line(phrases.hazard_text(hazard, migration)))}"
    paint = style.dim if change.reversal.answer is Reversibility.YES else style.changed
    yield f"{_INDENT}{paint(display.one_line(phrases.reversal_text(change.reversal)))}"


def _conflict(conflict: Conflict, style: TerminalStyle) -> Iterator[str]:
    yield style.bad(f"! conflict: {display.one_line(conflict.fact)}")
    for label, value in (("base", conflict.base), ("wanted", conflict.wanted), ("actual", conflict.actual)):
        yield f"{_INDENT * 2}{label:<7} {display.one_line(value)}"
    for label, text in phrases.labelled_resolutions(conflict):
        yield f"{_INDENT * 2}{label:<7} {display.one_line(text)}"
