"""A plan for people: a tree by migration and table, each change with its cost and its way back."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.base import Reversible
from icemigrate.merge import Conflict
from icemigrate.plan import Direction, MigrationPlan, Plan, PlannedChange, PlannedWork, Step, TablePlan
from icemigrate.plan_rows import RowsPart, table_parts
from icemigrate.render import words
from icemigrate.render.created import created_lines
from icemigrate.render.findings_text import diagnostics_lines
from icemigrate.render.style import Style
from icemigrate.render.writers import writer_lines
from icemigrate.results import PlanResult

_INDENT = "  "


def plan_text(result: PlanResult, style: Style) -> str:
    """The whole plan."""
    plan = result.plan
    lines = [style.dim(f"{plan.project} → {plan.environment} ({words.visible(plan.catalog)})"), ""]
    for migration in plan.migrations:
        lines += [*_migration(migration, plan, style), ""]
    found = list(diagnostics_lines(result.diagnostics, style))
    if found:
        lines += [*found, ""]
    if lying := [style.dim(line) for line in words.lying_old_lines(result)]:
        lines += [*lying, ""]
    lines.append(style.bold(words.summary_line(plan)))
    if plan.is_empty and plan.direction is Direction.APPLY and plan.base.tables:
        lines.append(style.dim(words.DRIFT_LINE))
    obstacles = words.obstacles_line(plan)
    if obstacles:
        lines.append(style.bad(obstacles))
    return "\n".join(lines) + "\n"


def _migration(migration: MigrationPlan, plan: Plan, style: Style) -> Iterator[str]:
    yield style.bold(words.migration_title(migration))
    for namespace in migration.create_namespaces:
        yield f"{_INDENT}{style.symbol('+')} create namespace {words.one_line('.'.join(namespace))}"
    for table in migration.tables:
        yield from (f"{_INDENT}{line}" for line in _table(table, migration, plan, style))
    for namespace in migration.drop_namespaces:
        yield f"{_INDENT}{style.symbol('-')} drop namespace {words.one_line('.'.join(namespace))}, left empty"
    recorded = words.recorded_text(migration)
    if recorded is not None:
        yield f"{_INDENT}{style.dim(recorded)}"
    elif not (migration.tables or migration.create_namespaces or migration.drop_namespaces):
        yield f"{_INDENT}{style.dim('nothing to do')}"


def _table(table: TablePlan, migration: MigrationPlan, plan: Plan, style: Style) -> Iterator[str]:
    yield f"{style.symbol(words.table_symbol(table))} {style.bold(words.one_line(words.table_label(table)))}"
    for part in table_parts(table, plan.catalog_name, plan.project, migration.version):
        if isinstance(part, Step):
            lines = _step(part, migration, style)
        else:
            lines = _rows(part, table, migration, style)
        yield from (f"{_INDENT * 2}{line}" for line in lines)
    files = words.old_files_text(table)
    if files is not None:
        yield f"{_INDENT * 2}{style.dim(f'files: {files}')}"
    for note in table.notes:
        yield f"{_INDENT * 2}{style.dim(f'note: {words.note_line(note)}')}"
    for writer in table.writers:
        paint = style.changed if writer.breaks else style.dim
        yield from (f"{_INDENT * 2}{paint(line)}" for line in writer_lines(writer))
    for conflict in table.conflicts:
        yield from (f"{_INDENT * 2}{line}" for line in _conflict(conflict, migration, style))
    if not (table.all_steps or table.rows or table.notes or table.conflicts):
        yield f"{_INDENT * 2}{style.dim('nothing to do')}"


def _step(step: Step, migration: MigrationPlan, style: Style) -> Iterator[str]:
    for change, tells_way_back in words.changes_of(step):
        yield f"{style.symbol(change.change.symbol)} {words.change_text(change)}"
        if tells_way_back:
            yield from _costs(change, migration, style)
        yield from (f"{_INDENT * 2}{style.dim(line)}" for line in created_lines(change.change))
    for statement in step.statements:
        for line in words.visible(words.statement_text(statement)).splitlines():
            yield f"{_INDENT * 2}{style.dim(line)}"


def _rows(part: RowsPart, table: TablePlan, migration: MigrationPlan, style: Style) -> Iterator[str]:
    for work in part.works:
        yield from _work(work, migration, style)
    for text in words.work_lines(part, table, migration):
        yield from (f"{_INDENT * 2}{style.dim(line)}" for line in words.visible(text).splitlines())


def _work(work: PlannedWork, migration: MigrationPlan, style: Style) -> Iterator[str]:
    yield f"{style.symbol(words.work_symbol(work))} {words.one_line(work.text)}"
    if work.work.writes:
        yield from _costs(work, migration, style)


def _costs(change: PlannedChange | PlannedWork, migration: MigrationPlan, style: Style) -> Iterator[str]:
    for hazard in change.hazards:
        paint = style.bad if hazard in migration.unconsented else style.changed
        yield f"{_INDENT}{paint(words.one_line(words.hazard_text(hazard, migration)))}"
    paint = style.dim if change.reversal.answer is Reversible.YES else style.changed
    yield f"{_INDENT}{paint(words.one_line(words.reversal_text(change.reversal)))}"


def _conflict(conflict: Conflict, migration: MigrationPlan, style: Style) -> Iterator[str]:
    yield style.bad(f"! conflict: {words.one_line(conflict.fact)}")
    for label, value in (("base", conflict.base), ("wanted", conflict.wanted), ("actual", conflict.actual)):
        yield f"{_INDENT * 2}{label:<7} {words.one_line(value)}"
    for number, way in enumerate(words.ways_out(conflict, migration)):
        yield f"{_INDENT * 2}{'or' if number else 'either':<7} {words.one_line(way)}"
