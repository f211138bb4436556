"""A plan as Markdown for a pull request's comment: one line first, details collapsed.

GitHub refuses a comment of more than 65,536 characters, so a long plan loses its statements first and then
its last tables, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from icemigrate.changes.change import Reversibility
from icemigrate.diagnostics import Diagnostic, format_count, once_quoted
from icemigrate.planning.merge import Conflict
from icemigrate.planning.plan import MigrationPlan, Plan, PlannedChange, PlannedDataStep, Step, TablePlan
from icemigrate.planning.stages import StagesOfTables, TableStage, plan_stages, shown_statement
from icemigrate.render import display, phrases
from icemigrate.render.alike_findings import finding_lines
from icemigrate.render.alike_tables import alike_tables, planned_tables
from icemigrate.render.finding_locations import by_severity
from icemigrate.render.markdown_text import (
    COMMENT_LIMIT,
    comment_size,
    cut_to_limit,
    fenced_sql,
    inline_code,
    safe_text,
)
from icemigrate.render.plan_details import new_table_lines, writer_lines
from icemigrate.results.command_results import PlanResult


def plan_markdown(result: PlanResult) -> str:
    """The plan, as much of it as a comment can contain."""
    full = _plan(result, with_statements=True)
    return full if comment_size(full) <= COMMENT_LIMIT else cut_to_limit(_plan(result, with_statements=False))


def _plan(result: PlanResult, *, with_statements: bool) -> str:
    plan = result.plan
    lines = [f"### icemigrate plan: {inline_code(plan.project)} → {inline_code(plan.environment)}", ""]
    lines += [f"**{phrases.summary_line(plan)}**", ""]
    obstacles = phrases.obstacles_line(plan)
    if obstacles:
        lines += [f"**{obstacles}**", ""]
    lines += _diagnostics(result.diagnostics)
    for migration in plan.migrations:
        lines += _migration(migration, plan, with_statements)
    lines += [f"- {safe_text(line)}" for line in phrases.table_by_table_lines(result)]
    lines += [f"- {safe_text(line)}" for line in phrases.old_partition_lines(result)]
    return "\n".join(lines).rstrip() + "\n"


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    lines = [*finding_lines(by_severity(diagnostics))]
    if lines:
        yield from (*lines, "")


def _migration(migration: MigrationPlan, plan: Plan, with_statements: bool) -> Iterator[str]:
    yield f"#### {inline_code(migration.version)} {safe_text(migration.description)}"
    yield ""
    for namespace in migration.create_namespaces:
        yield f"- **+** create namespace {inline_code('.'.join(namespace))}"
    recorded = phrases.recorded_text(migration)
    if recorded is not None:
        yield recorded
    if migration.create_namespaces or recorded is not None:
        yield ""
    stages = StagesOfTables(plan_stages(plan, migration))
    tables = planned_tables(
        migration.tables,
        lambda table: _table(table, stages.of(table), migration, with_statements),
    )
    values = (value for one in migration.lists for value in one.values)
    groups = alike_tables(tables, safe_text, values=values)
    for group in groups:
        head, *rest = group.lines
        yield head
        if (others := group.others_text(inline_code)) is not None:
            yield from ("", others)
        yield from rest
    for namespace in migration.drop_namespaces:
        yield f"- **-** drop namespace {inline_code('.'.join(namespace))}, left empty"


def _table(
    table: TablePlan, stages: Sequence[TableStage], migration: MigrationPlan, with_statements: bool
) -> Iterator[str]:
    changes = [change for stage in stages for change in stage.changes()]
    about = [format_count(len(changes), "change") if changes else "nothing to do"]
    about += _worst(changes)
    if broken := sum(1 for w in table.writers if w.breaks):
        about.append(f"{format_count(broken, 'writer')} affected")
    if table.conflicts:
        about.append(format_count(len(table.conflicts), "conflict"))
    label = inline_code(phrases.table_label(table))
    yield f"<details><summary>{phrases.table_symbol(table)} {label}: {', '.join(about)}</summary>"
    yield ""
    for stage in stages:
        for data_step in stage.data_steps:
            yield from _work(data_step, migration)
        for step in stage.steps:
            yield from _step(step, migration)
    files = phrases.old_files_text(table)
    if files is not None:
        yield f"- files: {safe_text(files)}"
    yield from (f"- note: {safe_text(once_quoted(note))}" for note in table.notes)
    for writer in (writer for writer in table.writers if writer.breaks):
        first, *rest = writer_lines(writer)
        yield f"- ⚠️ {safe_text(first)}"
        yield from (f"  - {safe_text(line.strip())}" for line in rest)
    for conflict in table.conflicts:
        yield from _conflict(conflict)
    if with_statements:
        statements = [display.visible_text(one) for stage in stages for one in _statements(stage, migration)]
        if statements:
            yield from ("", *fenced_sql("\n".join(statements)))
    yield ""
    yield "</details>"
    yield ""


def _statements(stage: TableStage, migration: MigrationPlan) -> Iterator[str]:
    yield from phrases.row_statement_lines(stage, migration)
    for step in stage.steps:
        yield from map(shown_statement, step.statements)


def _worst(changes: Iterable[PlannedChange | PlannedDataStep]) -> Iterator[str]:
    changes = list(changes)
    yield from dict.fromkeys(h.kind.value for c in changes for h in c.hazards)
    if any(c.reversal.answer is Reversibility.NO for c in changes):
        yield "not reversible"


def _step(step: Step, migration: MigrationPlan) -> Iterator[str]:
    for change, shows_reversal in phrases.changes_with_reversal_flag(step):
        yield f"- **{safe_text(change.change.symbol)}** {safe_text(change.text)}"
        if shows_reversal:
            yield from _costs(change, migration)
        yield from (f"  - {safe_text(line)}" for line in new_table_lines(change.change, None))


def _work(work: PlannedDataStep, migration: MigrationPlan) -> Iterator[str]:
    yield f"- **{safe_text(phrases.data_step_symbol(work))}** {safe_text(work.text)}"
    if work.work.writes:
        yield from _costs(work, migration)


def _costs(change: PlannedChange | PlannedDataStep, migration: MigrationPlan) -> Iterator[str]:
    for hazard in change.hazards:
        yield f"  - ⚠️ {safe_text(phrases.hazard_text(hazard, migration))}"
    yield f"  - {safe_text(phrases.reversal_text(change.reversal))}"


def _conflict(conflict: Conflict) -> Iterator[str]:
    yield f"- ❌ conflict: {inline_code(conflict.fact)}"
    for label, value in (("base", conflict.base), ("wanted", conflict.wanted), ("actual", conflict.actual)):
        yield f"  - {label}: {inline_code(value)}"
    yield from (f"  - {safe_text(text)}" for text in conflict.resolutions)
