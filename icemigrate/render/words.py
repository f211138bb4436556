"""What several formats say alike: counts, the summary of a plan, the ways out of a conflict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import groupby

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.base import Deferred, Hazard, Reversal, Reversible, Sql, Statement
from icemigrate.data.base import Ask
from icemigrate.data.rewrite import Rewrite
from icemigrate.diagnostics import once_quoted
from icemigrate.frozen import Frozen
from icemigrate.hidden_characters import escaped, escaped_lines
from icemigrate.merge import UNKNOWN_BASE, Conflict
from icemigrate.model.counting import count as count
from icemigrate.model.layout import OldShare
from icemigrate.plan import Direction, MigrationPlan, Plan, PlannedChange, PlannedWork, Step, TablePlan
from icemigrate.plan_rows import RowsPart, When
from icemigrate.redaction import redact
from icemigrate.results import ApplyResult, PlanResult


class Summary(Frozen):
    """A plan in numbers; ``add``, ``change``, ``drop`` count changes by their symbol.

    :param adopt: tables that are taken in as they are; they are no additions.
    """

    migrations: int = 0
    tables: int = 0
    adopt: int = 0
    add: int = 0
    change: int = 0
    drop: int = 0
    conditional: int = 0
    irreversible: int = 0
    conflicts: int = 0
    problems: int = 0
    unconsented: int = 0


def summarise(plan: Plan) -> Summary:
    """The numbers of a plan."""
    changes = [c for m in plan.migrations for c in m.changes()]
    writes = [w for m in plan.migrations for t in m.tables for w in t.rows if w.work.writes]
    kept = [c for c in changes if not isinstance(c.change, AdoptTable)]
    symbols = [*(c.change.symbol for c in kept), *("~" for _ in writes)]
    answers = [r.answer for m in plan.migrations for t in m.tables for r in t.reversals()]
    tables = {t.declared for m in plan.migrations for t in m.tables if t.all_steps or t.rows or t.conflicts}
    namespaces = sum(len(m.create_namespaces) for m in plan.migrations)
    return Summary(
        migrations=len(plan.migrations),
        tables=len(tables),
        adopt=len(changes) - len(kept),
        add=symbols.count("+") + namespaces,
        change=len(symbols) - symbols.count("+") - symbols.count("-"),
        drop=symbols.count("-") + sum(len(m.drop_namespaces) for m in plan.migrations),
        conditional=answers.count(Reversible.WHILE),
        irreversible=answers.count(Reversible.NO),
        conflicts=sum(len(m.conflicts) for m in plan.migrations),
        problems=sum(len(m.problems) for m in plan.migrations),
        unconsented=sum(len(m.unconsented) for m in plan.migrations),
    )


def listed(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *front, last = [*parts]
    return f"{', '.join(front)} and {last}" if front else last


def summary_line(plan: Plan) -> str:
    """A plan in one line."""
    if plan.is_empty:
        return LED_BACK if plan.reconcile is not None else nothing_line(plan)
    s = summarise(plan)
    migrations = "" if plan.reconcile is not None else f"{count(s.migrations, 'migration')}, "
    title = "Baseline" if plan.is_baseline else _TITLES[plan.direction]
    line = (
        f"{title}: {migrations}{count(s.tables, 'table')}: "
        f"{f'{s.adopt} to adopt, ' if s.adopt else ''}{s.add} to add, {s.change} to change, {s.drop} to drop"
    )
    asides = [
        f"{s.irreversible} not reversible" if s.irreversible else "",
        f"{s.conditional} reversible on a condition" if s.conditional else "",
    ]
    return "; ".join([line, *filter(None, asides)]) + "."


_TITLES = {Direction.APPLY: "Plan", Direction.ROLLBACK: "Rollback", Direction.RECONCILE: "Reconcile"}
LED_BACK = "Nothing to lead back: the tables are as they were recorded."

DRIFT_LINE = "Whether the tables are still as they were recorded, `icemigrate drift` tells."


def interrupted_line(versions: tuple[str, ...]) -> str:
    """That runs were interrupted, and what finishes them.

    :param versions: each with the command of its run.
    """
    return (
        f"Running or interrupted: {', '.join(map(one_line, versions))}. After an interruption `icemigrate "
        "rollback` finishes a rollback and undoes an apply; `icemigrate apply` finishes an apply."
    )


def nothing_line(found: Plan | ApplyResult) -> str:
    """That there is nothing to apply, and what is not applied all the same."""
    parts = []
    if isinstance(found, Plan) and found.unfinished:
        versions = ", ".join(found.unfinished)
        return f"Nothing can be applied: the rollback of {versions} is running or was interrupted."
    if found.beyond:
        verb = "is" if len(found.beyond) == 1 else "are"
        parts.append(f"{count(len(found.beyond), 'migration')} {verb} pending beyond it")
    parts += [_held(version, found) for version in found.held]
    if found.beyond:
        return f"Nothing to apply up to {found.to}; {'; '.join(parts)}."
    return f"Nothing to apply: {'; '.join(parts) or 'every migration file is applied'}."


def _held(version: str, found: Plan | ApplyResult) -> str:
    if version in found.held_gone:
        return f"{version} is held, and its file is gone"
    edited = ", and its file says something else now" if version in found.held_edited else ""
    return f"{version} is held{edited}: `apply --redo {version}` applies it"


def obstacles_line(plan: Plan) -> str | None:
    """What keeps a plan from running, in one line; ``None`` when nothing does."""
    s = summarise(plan)
    parts = [
        count(s.conflicts, "conflict") if s.conflicts else "",
        count(s.problems, "problem") if s.problems else "",
        count(s.unconsented, "missing consent") if s.unconsented else "",
        f"the unfinished rollback of {', '.join(plan.unfinished)}" if plan.unfinished else "",
    ]
    parts = [p for p in parts if p]
    done = "recorded" if plan.is_baseline else _DONE[plan.direction]
    return f"It cannot be {done} as it is: {listed(parts)}." if parts else None


_DONE = {Direction.APPLY: "applied", Direction.ROLLBACK: "rolled back", Direction.RECONCILE: "done"}


def ways_out(conflict: Conflict, migration: MigrationPlan) -> tuple[str, ...]:
    """The ways out of a conflict of a migration."""
    if migration.baseline and migration.direction is Direction.APPLY:
        return (
            "keep what is there: say in the migration file what the catalog has now, then plan again",
            "set what the file says: record up to the version before it with `--to`, then `apply` the rest",
        )
    if migration.direction is Direction.ROLLBACK:
        return (
            "bring the catalog back to what the migration made of it, then roll back again",
            "leave it as it is and undo the rest: `rollback --partial`",
        )
    if conflict.base == UNKNOWN_BASE:
        return (
            "keep what is there: say in the migration file what the catalog has now, then plan again",
            "set what the file says: take the table in as it is, and change it in a later migration",
        )
    return (
        "keep what is there: `drift --accept` writes the migration that declares it",
        f"set what the file says: `plan --overwrite {shell_word(conflict.fact)}`",
        "undo what others did: `plan --reconcile` shows the way back to what is recorded",
    )


def shell_word(text: str) -> str:
    """A word for a shell's command line, quoted where it must be."""
    import shlex

    return shlex.quote(text)


def statement_text(statement: Statement) -> str:
    """A statement as it is shown: SQL ends with a semicolon, so that the next one is another."""
    if isinstance(statement, Sql):
        return f"{statement.text};"
    if isinstance(statement, Deferred):
        return f"(when it runs) {statement.summary}"
    return f"(metadata commit) {statement.summary}"


def work_symbol(work: PlannedWork) -> str:
    """How a data step is marked: it changes rows, or asks."""
    return "~" if work.work.writes else "?"


_MANY = 5


def changes_of(step: Step) -> Iterator[tuple[PlannedChange, bool]]:
    """A step's changes, each with whether its way back is told behind it.

    Hundreds of columns may have one way back: it is told behind the last of five or more of a kind, where
    nothing else is to be said of them.
    """
    for (_, _, is_plain), alike in groupby(
        step.changes, lambda c: (c.change.kind, c.reversal, not c.hazards)
    ):
        changes = list(alike)
        told_once = is_plain and len(changes) >= _MANY
        for number, change in enumerate(changes, start=1):
            yield change, not told_once or number == len(changes)


def work_lines(part: RowsPart, table: TablePlan, migration: MigrationPlan) -> Iterator[str]:
    """Statements about a table's rows, in running order, as they are shown."""
    tables = migration.tables
    # Said only where something runs in between.
    is_apart = {
        When.FIRST: bool(migration.create_namespaces) or table is not tables[0],
        When.CHECKED: len(tables) > 1,
        When.LAST: table is not tables[-1],
    }
    if part.when is not None and is_apart[part.when]:
        yield f"-- {part.when.value}:"
    for statement in part.statements:
        gives = ""
        if isinstance(statement, Ask):
            gives = f"  -- gives {'no rows' if statement.gives == '[]' else statement.gives}"
        yield f"{statement.text};{gives}"


def reversal_text(reversal: Reversal) -> str:
    """``reversible``, ``reversible while no row is written``, ``irreversible: the format cannot go back``."""
    if not reversal.reason:
        return reversal.answer.value
    between = " " if reversal.answer is Reversible.WHILE else ": "
    return f"{reversal.answer.value}{between}{once_quoted(reversal.reason)}"


def hazard_text(hazard: Hazard, migration: MigrationPlan) -> str:
    """A hazard, its reason, and whether the file consents to it; no file is asked about an undo."""
    reason = once_quoted(hazard.reason)
    if migration.direction is Direction.ROLLBACK:
        return f"{hazard.kind.value}: {reason}"
    if migration.direction is Direction.RECONCILE:
        consent = "not allowed" if hazard in migration.unconsented else "allowed"
        return f"{hazard.kind.value}, {consent}: {reason}"
    consent = "not allowed by the file" if hazard in migration.unconsented else "allowed"
    return f"{hazard.kind.value}, {consent}: {reason}"


def table_symbol(table: TablePlan) -> str:
    """How a table is marked: made, removed, or changed."""
    kinds = {c.change.kind: c.change.symbol for c in table.changes()}
    for kind in ("create_table", "drop_table"):
        if kind in kinds:
            return kinds[kind]
    return "!" if table.conflicts else "~" if kinds or table.rows else "·"


def table_label(table: TablePlan) -> str:
    """A table's declared name, with its name in the catalog where that is another."""
    declared, name = str(table.declared), str(table.name)
    return declared if declared == name else f"{declared} (in the catalog: {name})"


def old_files_text(table: TablePlan) -> str | None:
    """How many files a change of the partitioning leaves as they are; ``None`` where that is not asked."""
    share = table.old_files
    if share is None:
        return None
    if any(isinstance(planned.work, Rewrite) for planned in table.rows):
        return f"{share} lie the old way and are rewritten" if share.files else "none lies the old way"
    return f"{share} lie the old way; they are read as before"


def lying_old_lines(result: PlanResult) -> Iterator[str]:
    """How files lie of tables that a plan leaves alone."""
    yield from (lying_old_line(one.name, one.old_files) for one in result.lying_old)
    if result.lying_unasked:
        tables = count(result.lying_unasked, "more table")
        yield f"{tables} had another partitioning before; how their files lie, `icemigrate status` tells."


def lying_old_line(name: str, share: OldShare) -> str:
    """How much of a table lies the old way."""
    return f"{one_line(name)}: {share} lie as it was partitioned before."


def change_text(change: PlannedChange) -> str:
    """A change in a few words, on one line."""
    return one_line(change.text)


def migration_title(migration: MigrationPlan) -> str:
    """``0003  Rename volume``, or ``undo 0003  Rename volume``."""
    undo = "undo " if migration.direction is Direction.ROLLBACK else ""
    return f"{undo}{migration.version}  {one_line(migration.description)}".rstrip()


def recorded_text(migration: MigrationPlan) -> str | None:
    """What is done for a squash whose files are all applied; ``None`` for every other migration."""
    if migration.squash is None or not migration.squash.versions:
        return None
    return f"only recorded: it stands for {listed(migration.squash.versions)}, which are applied"


_BREAKS = re.compile(r"[\t ]*[\r\n]\s*|\t+")


def one_line(text: str) -> str:
    """A text without line breaks, secrets masked, hidden characters as escapes.

    Blanks stay as they are: two in a name make another name than one.
    """
    return escaped(redact(_BREAKS.sub(" ", text.strip())))


def note_line(text: str) -> str:
    """A note on one line, its names in backticks once."""
    return one_line(once_quoted(text))


def visible(text: str) -> str:
    """A text of several lines, secrets masked, hidden characters as escapes."""
    return escaped_lines(redact(text))


def moment(at: datetime | None) -> str:
    """``2026-11-27 20:37:00 UTC``."""
    return "" if at is None else at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(milliseconds: int | None) -> str:
    """``0.4 s``, ``12 s``, ``3 min 5 s``."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
