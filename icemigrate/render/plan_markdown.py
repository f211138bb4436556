"""A plan and findings as markdown for a pull request's comment: one line first, details folded away.

GitHub refuses a comment of more than 65,536 characters, so what is too long loses its statements
first and then its last tables, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from icemigrate.changes.base import Reversible
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.merge import Conflict
from icemigrate.plan import MigrationPlan, PlannedChange, TablePlan
from icemigrate.render import words
from icemigrate.render.created import created_lines
from icemigrate.render.findings_text import tally
from icemigrate.results import CheckResult, PlanResult

LIMIT = 65_000
_MARKS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def plan_markdown(result: PlanResult) -> str:
    """The whole plan, as much of it as a comment can hold."""
    full = _plan(result, with_statements=True)
    return full if len(full) <= LIMIT else _cut(_plan(result, with_statements=False))


def check_markdown(result: CheckResult) -> str:
    """All findings, as many of them as a comment can hold."""
    head = f"### icemigrate check: {_code(result.project)}: {tally(result.diagnostics)}\n"
    seen = f"{words.count(result.migrations, 'migration')}, {words.count(result.tables, 'table')}."
    return _cut("\n".join([head, seen, "", *_diagnostics(result.diagnostics)]).rstrip() + "\n")


def _cut(text: str) -> str:
    """The text up to the last whole line that fits."""
    if len(text) <= LIMIT:
        return text
    kept = text[: text.rfind("\n", 0, LIMIT)]
    unfinished = kept.count("<details>") - kept.count("</details>")
    note = "The rest does not fit into a comment; the command prints all of it."
    return kept + "\n\n</details>" * unfinished + f"\n\n_{note}_\n"


def _plan(result: PlanResult, *, with_statements: bool) -> str:
    plan = result.plan
    lines = [f"### icemigrate plan: {_code(plan.project)} → {_code(plan.environment)}", ""]
    lines += [f"**{words.summary_line(plan)}**", ""]
    obstacles = words.obstacles_line(plan)
    if obstacles:
        lines += [f"**{obstacles}**", ""]
    lines += _diagnostics(result.diagnostics)
    for migration in plan.migrations:
        lines += _migration(migration, with_statements)
    return "\n".join(lines).rstrip() + "\n"


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    any_shown = False
    for d in diagnostics:
        where = f"{_code(str(d.place))}: " if d.place else ""
        hint = f" <br>{_text(d.hint)}" if d.hint else ""
        yield f"- {_MARKS[d.severity]} {where}{_text(d.message)} <sub>{d.code}</sub>{hint}"
        any_shown = True
    if any_shown:
        yield ""


def _migration(migration: MigrationPlan, with_statements: bool) -> Iterator[str]:
    yield f"#### {_code(migration.version)} {_text(migration.description)}"
    yield ""
    for namespace in migration.create_namespaces:
        yield f"- **+** create namespace {_code('.'.join(namespace))}"
    recorded = words.recorded_text(migration)
    if recorded is not None:
        yield recorded
    if migration.create_namespaces or recorded is not None:
        yield ""
    for table in migration.tables:
        yield from _table(table, migration, with_statements)


def _table(table: TablePlan, migration: MigrationPlan, with_statements: bool) -> Iterator[str]:
    changes = list(table.changes())
    about = [words.count(len(changes), "change") if changes else "nothing to do"]
    about += _worst(changes)
    if table.conflicts:
        about.append(words.count(len(table.conflicts), "conflict"))
    label = _code(words.table_label(table))
    yield f"<details><summary>{words.table_symbol(table)} {label}: {', '.join(about)}</summary>"
    yield ""
    for change in changes:
        yield from _change(change, migration)
    yield from (f"- note: {_text(note)}" for note in table.notes)
    for conflict in table.conflicts:
        yield from _conflict(conflict)
    if with_statements:
        statements = [words.visible(words.statement_text(s)) for step in table.steps for s in step.statements]
        if statements:
            yield from ("", *_fenced("\n".join(statements)))
    yield ""
    yield "</details>"
    yield ""


def _worst(changes: Iterable[PlannedChange]) -> Iterator[str]:
    changes = list(changes)
    yield from dict.fromkeys(h.kind.value for c in changes for h in c.hazards)
    if any(c.reversal.answer is Reversible.NO for c in changes):
        yield "not reversible"


def _change(change: PlannedChange, migration: MigrationPlan) -> Iterator[str]:
    yield f"- **{_text(change.change.symbol)}** {_text(change.text)}"
    for hazard in change.hazards:
        yield f"  - ⚠️ {_text(words.hazard_text(hazard, migration))}"
    yield f"  - {_text(words.reversal_text(change.reversal))}"
    yield from (f"  - {_text(line)}" for line in created_lines(change.change, None))


def _conflict(conflict: Conflict) -> Iterator[str]:
    yield f"- ❌ conflict: {_code(conflict.fact)}"
    for label, value in (("base", conflict.base), ("wanted", conflict.wanted), ("actual", conflict.actual)):
        yield f"  - {label}: {_code(value)}"
    for way in words.ways_out(conflict):
        yield f"  - {_text(way)}"


def _fenced(text: str) -> tuple[str, str, str]:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return (f"{fence}sql", text, fence)


def _code(text: str) -> str:
    """Code that may hold backticks; HTML, since it also stands in a summary."""
    return f"<code>{_harmless(words.one_line(text))}</code>"


def _text(text: str) -> str:
    """Running text: `code` stays code, all else that markdown or HTML would act on is made harmless."""
    parts = re.split(r"(`[^`]+`)", words.one_line(text))
    return "".join(_code(p[1:-1]) if i % 2 else _harmless(p) for i, p in enumerate(parts))


def _harmless(text: str) -> str:
    # Entities rather than backslashes: they work inside HTML tags too.  `@` would call people.
    harmless = escape(text, quote=False)
    for character in "\\`*_[]@|~":
        harmless = harmless.replace(character, f"&#{ord(character)};")
    return harmless
