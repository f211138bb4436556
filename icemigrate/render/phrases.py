"""What several formats say alike: counts, the summary of a plan, the resolutions of a conflict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.change import Hazard, Reversal, Reversibility
from icemigrate.data_steps.rewrite import Rewrite
from icemigrate.diagnostics import format_count, once_quoted
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.partition_evolution import OldSpecFiles
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
from icemigrate.planning.stages import (
    CheckPreconditions,
    PublishTable,
    RewriteFiles,
    TableStage,
    shown_statement,
)
from icemigrate.render import display
from icemigrate.render.alike_tables import alike_lines, some_names
from icemigrate.results.command_results import ApplyResult, PlanResult
from icemigrate.results.status_results import KeptViewStatus, ListProgress

WRITTEN_NEXT = "Next: review it, then run `icemigrate check --fix`, which updates the lock file."
"""What follows a command that wrote a migration file."""


class PlanSummary(Frozen):
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


def summarise_plan(plan: Plan) -> PlanSummary:
    """The numbers of a plan."""
    changes = [c for m in plan.migrations for c in m.changes()]
    writes = [w for m in plan.migrations for t in m.tables for w in t.rows if w.work.writes]
    kept = [c for c in changes if not isinstance(c.change, AdoptTable)]
    symbols = [*(c.change.symbol for c in kept), *("~" for _ in writes)]
    answers = [r.answer for m in plan.migrations for t in m.tables for r in t.reversals()]
    tables = {t.declared for m in plan.migrations for t in m.tables if t.all_steps or t.rows or t.conflicts}
    namespaces = sum(len(m.create_namespaces) for m in plan.migrations)
    return PlanSummary(
        migrations=len(plan.migrations),
        tables=len(tables),
        adopt=len(changes) - len(kept),
        add=symbols.count("+") + namespaces,
        change=len(symbols) - symbols.count("+") - symbols.count("-"),
        drop=symbols.count("-") + sum(len(m.drop_namespaces) for m in plan.migrations),
        conditional=answers.count(Reversibility.WHILE),
        irreversible=answers.count(Reversibility.NO),
        conflicts=sum(len(m.conflicts) for m in plan.migrations),
        problems=sum(len(m.problems) for m in plan.migrations),
        unconsented=sum(len(m.unconsented) for m in plan.migrations),
    )


def join_with_and(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *front, last = [*parts]
    return f"{', '.join(front)} and {last}" if front else last


def summary_line(plan: Plan) -> str:
    """A plan in one line."""
    if plan.is_empty:
        return NOTHING_TO_RECONCILE if plan.reconcile is not None else nothing_line(plan)
    s = summarise_plan(plan)
    migrations = "" if not plan.direction.has_versions else f"{format_count(s.migrations, 'migration')}, "
    title = "Baseline" if plan.is_baseline else _TITLES[plan.direction]
    line = (
        f"{title}: {f'{s.adopt} to adopt, ' if s.adopt else ''}{s.add} to add, {s.change} to change, "
        f"{s.drop} to drop ({migrations}{format_count(s.tables, 'table')})"
    )
    asides = [
        f"{s.irreversible} not reversible" if s.irreversible else "",
        f"{s.conditional} reversible on a condition" if s.conditional else "",
    ]
    return "; ".join([line, *filter(None, asides)]) + "."


_TITLES = {
    Direction.APPLY: "Plan",
    Direction.ROLLBACK: "Rollback",
    Direction.RECONCILE: "Reconcile",
    Direction.ALTER: "Alter",
}
NOTHING_TO_RECONCILE = "Nothing to reconcile: the tables match their recorded state."

DRIFT_LINE = "`icemigrate drift` shows whether the tables still match their recorded state."


def interrupted_line(versions: tuple[str, ...]) -> str:
    """The note about interrupted runs, with the commands that finish them.

    :param versions: each with the command of its run.
    """
    return (
        f"Running or interrupted: {', '.join(map(display.one_line, versions))}. "
        "After an interruption `icemigrate rollback` finishes a rollback and undoes an apply; "
        "`icemigrate apply` finishes an apply."
    )


def nothing_line(found: Plan | ApplyResult) -> str:
    """The note that there is nothing to apply, with the versions that are skipped."""
    parts = []
    if isinstance(found, Plan) and found.unfinished:
        versions = ", ".join(found.unfinished)
        return f"Nothing can be applied: the rollback of {versions} is running or was interrupted."
    if found.beyond:
        verb = "is" if len(found.beyond) == 1 else "are"
        parts.append(f"{format_count(len(found.beyond), 'migration')} {verb} pending after it")
    parts += [_rolled_back_text(version, found) for version in found.held]
    if found.beyond:
        return f"Nothing to apply up to {found.to}; {'; '.join(parts)}."
    return f"Nothing to apply: {'; '.join(parts) or 'every migration is applied'}."


def _rolled_back_text(version: str, found: Plan | ApplyResult) -> str:
    if version in found.held_gone:
        return (
            f"{version} is rolled back, and its file is missing: restore the file, or give the version up "
            f"with `repair --abandon {version}`"
        )
    edited = ", and its file has changed" if version in found.held_edited else ""
    return f"{version} is rolled back{edited}: `apply --redo {version}` applies it"


def obstacles_line(plan: Plan) -> str | None:
    """The reasons why a plan cannot run, in one line; ``None`` without any."""
    s = summarise_plan(plan)
    parts = [
        format_count(s.conflicts, "conflict") if s.conflicts else "",
        format_count(s.problems, "problem") if s.problems else "",
        format_count(s.unconsented, "missing consent") if s.unconsented else "",
        f"the unfinished rollback of {', '.join(plan.unfinished)}" if plan.unfinished else "",
    ]
    parts = [p for p in parts if p]
    done = "recorded" if plan.is_baseline else _DONE[plan.direction]
    return f"This plan cannot be {done}: {join_with_and(parts)}." if parts else None


_DONE = {
    Direction.APPLY: "applied",
    Direction.ROLLBACK: "rolled back",
    Direction.RECONCILE: "done",
    Direction.ALTER: "done",
}


def labelled_resolutions(conflict: Conflict) -> Iterator[tuple[str, str]]:
    """The resolutions of a conflict, each with the word before it."""
    for number, text in enumerate(conflict.resolutions):
        yield ("hint" if len(conflict.resolutions) == 1 else "or" if number else "either"), text


def data_step_symbol(work: PlannedDataStep) -> str:
    """The symbol of a data step: for changing rows, or for a query."""
    return "~" if work.work.writes else "?"


_MANY = 5


def changes_with_reversal_flag(step: Step) -> Iterator[tuple[PlannedChange, bool]]:
    """A step's changes, each with whether its reversal is shown after it.

    Hundreds of columns may have the same reversal: it is shown after the last of five or more of a kind
    without other remarks.
    """
    for (_, _, is_plain), alike in groupby(
        step.changes, lambda c: (c.change.kind, c.reversal, not c.hazards)
    ):
        changes = list(alike)
        announced_once = is_plain and len(changes) >= _MANY
        for number, change in enumerate(changes, start=1):
            yield change, not announced_once or number == len(changes)


def row_statement_lines(stage: TableStage, migration: MigrationPlan) -> Iterator[str]:
    """The statements of a stage about the rows of its table, in running order, as they are shown."""
    tables, statements = migration.tables, stage.row_statements
    # The heading is shown only where something runs in between.
    is_apart = {
        CheckPreconditions: bool(migration.create_namespaces) or stage.table is not tables[0],
        PublishTable: len(tables) > 1,
        RewriteFiles: stage.table is not tables[-1],
    }
    if statements and is_apart.get(type(stage), False):
        yield f"-- {stage.heading}:"
    yield from map(shown_statement, statements)


def reversal_text(reversal: Reversal) -> str:
    """``reversible``, ``reversible while no row is written``, ``irreversible: the format cannot go back``."""
    if not reversal.reason:
        return reversal.answer.value
    between = " " if reversal.answer is Reversibility.WHILE else ": "
    return f"{reversal.answer.value}{between}{once_quoted(reversal.reason)}"


def hazard_text(hazard: Hazard, migration: MigrationPlan) -> str:
    """A hazard, its reason, and whether the file consents to it; an undo needs no consent of a file."""
    reason = once_quoted(hazard.reason)
    if migration.direction is Direction.ROLLBACK:
        return f"{hazard.kind.value}: {reason}"
    if not migration.direction.has_versions:
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
    """How many files a new partitioning leaves as they are; ``None`` where this was not counted."""
    share = table.old_files
    if share is None:
        return None
    if any(isinstance(planned.work, Rewrite) for planned in table.rows):
        return (
            f"{share} with the old partitioning, which are rewritten"
            if share.files
            else "none with the old partitioning"
        )
    return f"{share} with the old partitioning, which stay as they are"


def old_partition_lines(result: PlanResult, *, shows_all: bool = False) -> Iterator[str]:
    """Old files of tables that a plan does not change.

    :param shows_all: whether each table has its line.
    """
    lines = ((one.name, old_partition_line(one.name, one.old_files)) for one in result.old_partition_tables)
    yield from alike_lines(lines, shows_all=shows_all)
    if result.uncounted_tables:
        tables = format_count(result.uncounted_tables, "more table")
        yield (
            f"{tables} had another partitioning before; `icemigrate status` shows how many files "
            "still have it."
        )


def table_by_table_lines(result: PlanResult) -> Iterator[str]:
    """The line about migrations whose tables are not committed in one transaction; nothing without one."""
    versions = dict[str, list[str]]()
    for one in result.table_by_table:
        versions.setdefault(display.one_line(one.reason), []).append(one.version)
    if versions:
        parts = (f"{', '.join(listed)} ({reason})" for reason, listed in versions.items())
        yield f"Readers can see some tables changed before others: {'; '.join(parts)}."


def old_partition_line(name: str, share: OldSpecFiles) -> str:
    """The old files of a table."""
    return f"{display.one_line(name)}: {share} with an earlier partitioning."


def extension_lines(
    progress: Mapping[str, Sequence[ListProgress]], *, is_plan: bool = False, shows_all: bool = False
) -> Iterator[str]:
    """``0001 applied to 20 of 22 tenants; `icemigrate apply` extends it``, equal versions in one line.

    :param is_plan: whether this is shown with the plan that extends them.
    :param shows_all: whether each version is named.
    """
    versions: dict[ListProgress, list[str]] = {}
    for version, lists in progress.items():
        for one in lists:
            if one.new:
                versions.setdefault(replace(one, left=()), []).append(version)
    for one, extended in versions.items():
        what = "tenants" if one.list in ("seen", "tenants") else f"values of the list `{one.list}`"
        them = "it" if len(extended) == 1 else "them"
        end = f"this plan extends {them}" if is_plan else f"`icemigrate apply` extends {them}"
        named = join_with_and(some_names(extended, shows_all=shows_all))
        yield f"{named} applied to {one.applied:,} of {one.values:,} {what}; {end}"


def left_value_lines(
    progress: Mapping[str, Sequence[ListProgress]], *, shows_all: bool = False
) -> Iterator[str]:
    """The values that left each list, once for all versions that are applied to them.

    :param shows_all: whether each value is named.
    """
    left: dict[str, dict[str, None]] = {}
    for lists in progress.values():
        for one in lists:
            left.setdefault(one.list, {}).update(dict.fromkeys(one.left))
    for name, values in left.items():
        if values:
            named = join_with_and(some_names(list(values), "`{}`".format, shows_all=shows_all))
            verb, their = ("is", "its") if len(values) == 1 else ("are", "their")
            yield (
                f"{named} {verb} no longer in the list `{name}`: {their} tables stay, and new migrations for "
                "the list leave them as they are; a migration with `drop: true` drops them"
            )


def hidden_losses_lines(count: int) -> Iterator[str]:
    """The line that names ``status -v`` where rollbacks cannot restore everything; nothing for 0."""
    if count:
        yield (
            f"{format_count(count, 'rollback')} cannot restore all values: `icemigrate status -v` shows "
            f"{'it' if count == 1 else 'them'}."
        )


def kept_view_line(table: str, view: KeptViewStatus) -> str:
    """A view with old column names, and the time until which it is kept."""
    name, table = display.one_line(view.name), display.one_line(table)
    if not view.exists:
        return f"{table}: view {name} of {view.version} is missing."
    until = "" if view.until is None else f" until {display.timestamp_text(view.until)}"
    return f"{table}: view {name} has the column names from before {view.version}{until}."


def change_text(change: PlannedChange) -> str:
    """A change in a few words, on one line."""
    return display.one_line(change.text)


def migration_title(migration: MigrationPlan) -> str:
    """``0003  Rename volume``, ``undo 0003  Rename volume``, or ``extend 0003  Rename volume``."""
    undo = "undo " if migration.direction is Direction.ROLLBACK else "extend " if migration.extends else ""
    return f"{undo}{migration.version}  {display.one_line(migration.description)}".rstrip()


def recorded_text(migration: MigrationPlan) -> str | None:
    """The text of a squash whose files are all applied; ``None`` for every other migration."""
    if migration.squash is None or not migration.squash.versions:
        return None
    return f"only recorded: it replaces {join_with_and(migration.squash.versions)}, which are applied"


OTHER_FILE = "other file"
"""The text for a version that is applied from another file than this branch has."""
REFUSED_STATES = {
    "edited": "was edited after it was applied: restore the file, or run `icemigrate repair` if it still "
    "declares the same",
    OTHER_FILE: "is applied from another file than the one here: merge the branch that has it, then run "
    "`icemigrate rebase`",
    "missing": "is applied, but its file is missing: restore the file",
    "late": "is out of order: `icemigrate plan` shows why it cannot be applied",
    "partial": "replaces versions of which only some are applied: `icemigrate plan` shows which",
}
"""What is wrong with a version that `plan` refuses, by its state."""
