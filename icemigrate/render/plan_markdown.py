"""A plan as markdown for a pull request's comment: one line first, details folded away.

GitHub refuses a comment of more than 65,536 characters, so what is too long loses its statements
first and then its last tables, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.changes.base import Reversible
from icemigrate.diagnostics import Diagnostic, once_quoted
from icemigrate.merge import Conflict
from icemigrate.plan import MigrationPlan, Plan, PlannedChange, PlannedWork, Step, TablePlan
from icemigrate.plan_rows import RowsPart, table_parts
from icemigrate.render import words
from icemigrate.render.created import created_lines
from icemigrate.render.markdown import LIMIT, code, cut, diagnostic_line, fenced, size, text
from icemigrate.render.places import by_weight
from icemigrate.render.writers import writer_lines
from icemigrate.results import PlanResult


def plan_markdown(result: PlanResult) -> str:
    """The whole plan, as much of it as a comment can hold."""
    full = _plan(result, with_statements=True)
    return full if size(full) <= LIMIT else cut(_plan(result, with_statements=False))


def _plan(result: PlanResult, *, with_statements: bool) -> str:
    plan = result.plan
    lines = [f"### icemigrate plan: {code(plan.project)} → {code(plan.environment)}", ""]
    lines += [f"**{words.summary_line(plan)}**", ""]
    obstacles = words.obstacles_line(plan)
    if obstacles:
        lines += [f"**{obstacles}**", ""]
    lines += _diagnostics(result.diagnostics)
    for migration in plan.migrations:
        lines += _migration(migration, plan, with_statements)
    lines += [f"- {text(line)}" for line in words.lying_old_lines(result)]
    return "\n".join(lines).rstrip() + "\n"


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    lines = [diagnostic_line(d) for d in by_weight(diagnostics)]
    if lines:
        yield from (*lines, "")


def _migration(migration: MigrationPlan, plan: Plan, with_statements: bool) -> Iterator[str]:
    yield f"#### {code(migration.version)} {text(migration.description)}"
    yield ""
    for namespace in migration.create_namespaces:
        yield f"- **+** create namespace {code('.'.join(namespace))}"
    recorded = words.recorded_text(migration)
    if recorded is not None:
        yield recorded
    if migration.create_namespaces or recorded is not None:
        yield ""
    for table in migration.tables:
        yield from _table(table, migration, plan, with_statements)
    for namespace in migration.drop_namespaces:
        yield f"- **-** drop namespace {code('.'.join(namespace))}, left empty"


def _table(table: TablePlan, migration: MigrationPlan, plan: Plan, with_statements: bool) -> Iterator[str]:
    parts = [*table_parts(table, plan.catalog_name, plan.project, migration.version)]
    changes: list[PlannedChange | PlannedWork] = []
    for part in parts:
        changes += part.changes if isinstance(part, Step) else part.works
    about = [words.count(len(changes), "change") if changes else "nothing to do"]
    about += _worst(changes)
    if broken := sum(1 for w in table.writers if w.breaks):
        about.append(f"{words.count(broken, 'writer')} to look after")
    if table.conflicts:
        about.append(words.count(len(table.conflicts), "conflict"))
    label = code(words.table_label(table))
    yield f"<details><summary>{words.table_symbol(table)} {label}: {', '.join(about)}</summary>"
    yield ""
    for part in parts:
        if isinstance(part, Step):
            yield from _step(part, migration)
        else:
            for work in part.works:
                yield from _work(work, migration)
    files = words.old_files_text(table)
    if files is not None:
        yield f"- files: {text(files)}"
    yield from (f"- note: {text(once_quoted(note))}" for note in table.notes)
    for writer in table.writers:
        first, *rest = writer_lines(writer)
        yield f"- {'⚠️ ' if writer.breaks else ''}{text(first)}"
        yield from (f"  - {text(line.strip())}" for line in rest)
    for conflict in table.conflicts:
        yield from _conflict(conflict, migration)
    if with_statements:
        statements = [words.visible(one) for part in parts for one in _statements(part, table, migration)]
        if statements:
            yield from ("", *fenced("\n".join(statements)))
    yield ""
    yield "</details>"
    yield ""


def _statements(part: Step | RowsPart, table: TablePlan, migration: MigrationPlan) -> Iterator[str]:
    if isinstance(part, Step):
        yield from map(words.statement_text, part.statements)
    else:
        yield from words.work_lines(part, table, migration)


def _worst(changes: Iterable[PlannedChange | PlannedWork]) -> Iterator[str]:
    changes = list(changes)
    yield from dict.fromkeys(h.kind.value for c in changes for h in c.hazards)
    if any(c.reversal.answer is Reversible.NO for c in changes):
        yield "not reversible"


def _step(step: Step, migration: MigrationPlan) -> Iterator[str]:
    for change, tells_way_back in words.changes_of(step):
        yield f"- **{text(change.change.symbol)}** {text(change.text)}"
        if tells_way_back:
            yield from _costs(change, migration)
        yield from (f"  - {text(line)}" for line in created_lines(change.change, None))


def _work(work: PlannedWork, migration: MigrationPlan) -> Iterator[str]:
    yield f"- **{text(words.work_symbol(work))}** {text(work.text)}"
    if work.work.writes:
        yield from _costs(work, migration)


def _costs(change: PlannedChange | PlannedWork, migration: MigrationPlan) -> Iterator[str]:
    for hazard in change.hazards:
        yield f"  - ⚠️ {text(words.hazard_text(hazard, migration))}"
    yield f"  - {text(words.reversal_text(change.reversal))}"


def _conflict(conflict: Conflict, migration: MigrationPlan) -> Iterator[str]:
    yield f"- ❌ conflict: {code(conflict.fact)}"
    for label, value in (("base", conflict.base), ("wanted", conflict.wanted), ("actual", conflict.actual)):
        yield f"  - {label}: {code(value)}"
    for way in words.ways_out(conflict, migration):
        yield f"  - {text(way)}"
