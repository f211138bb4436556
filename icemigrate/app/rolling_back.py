"""``rollback``: which versions are taken back, the plan of it, and doing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from icemigrate import versions as installed
from icemigrate.app.continuing import choices_of, require_finished, with_recorded
from icemigrate.app.layouts import with_old_files
from icemigrate.app.locking import interrupted, journal
from icemigrate.app.noting import Notes
from icemigrate.app.publishing import ways
from icemigrate.app.spark import LazySpark, engine_of
from icemigrate.app.tracing import tracer
from icemigrate.app.undoing import Undoing, Version, state_after
from icemigrate.app.world import Opened, opened
from icemigrate.changes.base import Problem
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import ConflictError, HistoryError, Mistakes, UsageError
from icemigrate.events import Event
from icemigrate.frozen import replace
from icemigrate.history.intent import Intent
from icemigrate.history.properties import Applied, History
from icemigrate.live import with_writers
from icemigrate.model.counting import count
from icemigrate.model.sides import State
from icemigrate.plan import Direction, MigrationPlan, Plan
from icemigrate.plan_file import require_fresh
from icemigrate.project import Project
from icemigrate.results import PlanResult, RollbackResult, errors_of
from icemigrate.undo import PLAIN, Options, blockers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plan_rollback(
    project: Project,
    environment: str | None = None,
    *,
    to: str | None = None,
    only: str | None = None,
    options: Options = PLAIN,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> PlanResult:
    """The plan that takes versions back: the last one, all after ``to``, or ``only`` one.

    Spark is started only where the files of a table have to be asked.

    :param to: the version that stays the last; ``0`` takes everything back.
    :param spark: a running session; without it one is started where it is needed.
    :param on_start: called before Spark is started.
    :raises UsageError: there is no such environment or version.
    :raises ConflictError: a later migration depends on the one that alone shall be taken back.
    :raises HistoryError: the history cannot be used, or holds nothing to undo a version from.
    """
    with opened(project, environment) as world:
        history = world.history()
        chosen = _chosen(history, to, only, options)
        is_late = bool(chosen) and all(a.standing == "held" for a in chosen)
        return _plan(world, history, chosen, options, LazySpark(world, spark, on_start), is_late=is_late)


def rollback(
    project: Project,
    plan: Plan,
    *,
    options: Options = PLAIN,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RollbackResult:
    """Carry out a plan of :func:`plan_rollback`; made again under the lock, it must be the same.

    :param options: those that the plan was made with.
    :param on_start: called before Spark is started.
    :raises Mistakes: something cannot be undone.
    :raises ConflictError: the plan has conflicts, or (:class:`~icemigrate.errors.StalePlan`) is stale.
    :raises LockHeld: somebody else held the lock all the while.
    :raises EngineError: Java, Spark or a statement failed.
    """
    from icemigrate import executor

    if plan.is_empty:
        with opened(project, plan.environment) as world:
            last = next(iter(_standing(world.history())), None)
        return RollbackResult(
            project.name, plan.environment, (), 0, last=None if last is None else last.version.text
        )
    notes = Notes(on_event)
    with opened(project, plan.environment) as world:
        engine = engine_of(world, spark, on_start)
        # Whether Spark ran already, or was started for the plan, makes no difference.
        clock = time.monotonic()

        def replan() -> Plan:
            history = world.history()
            chosen = [_applied(history, m.version) for m in plan.migrations]
            is_late = all(m.refill_only for m in plan.migrations)
            if all(a.standing == "held" for a in chosen) and not is_late:
                return replace(plan, migrations=())
            again = LazySpark(world, None, lambda: None, engine)
            fresh = _plan(world, history, chosen, options, again, is_late=is_late)
            require_fresh(plan, fresh.plan)
            require_undoable(fresh)
            return fresh.plan

        held = journal(world, engine, lock_timeout_s)
        records = executor.apply(
            plan, engine, held, notes, replan=replan, ways=ways(world, engine), trace=tracer(world)
        )
        return RollbackResult(
            project=project.name,
            environment=plan.environment,
            rolled_back=tuple(r.version.text for r in records if r.version is not None),
            elapsed_ms=round((time.monotonic() - clock) * 1000),
            notes=notes.beside(plan),
            by_others=() if records else tuple(m.version for m in plan.migrations),
        )


def require_undoable(result: PlanResult) -> None:
    """Refuse a rollback that may not run.

    :raises Mistakes: something cannot be undone.
    :raises ConflictError: somebody changed since what the migration had changed.
    """
    if errors := errors_of(result.diagnostics):
        first = errors[0].message
        raise Mistakes(result.diagnostics, f"the tables cannot go back: {first}{_more(len(errors))}")
    require_finished(result.plan)
    conflicts = [c.fact for m in result.plan.migrations for c in m.conflicts]
    if conflicts:
        raise ConflictError(
            f"the catalog is neither as the migration left it nor as it was before: {', '.join(conflicts)}",
            "`--partial` undoes the rest and leaves these as they are",
        )


def _more(errors: int) -> str:
    return "" if errors == 1 else f" (and {count(errors - 1, 'other problem')})"


def _plan(
    world: Opened,
    history: History,
    chosen: Sequence[Applied],
    options: Options,
    spark: LazySpark,
    *,
    is_late: bool,
) -> PlanResult:
    """The plan.

    :param is_late: the versions are rolled back already, and only their values come back.
    """
    begun = {i.version: i for i in history.intents}
    wanted = {a.version.text: with_recorded(options, begun.get(a.version)) for a in chosen}
    versions = [
        replace(_traced(world, history, _version(history, a)), options=wanted[a.version.text]) for a in chosen
    ]
    undoing = Undoing(world, spark, frozenset(version.text for version in begun))
    if is_late:
        migrations = tuple(_refilled(undoing, version, history) for version in versions)
    else:
        migrations = undoing.plan(versions, _state(history, versions)).migrations
    migrations = tuple(replace(m, choices=choices_of(wanted[m.version])) for m in migrations)
    plan = Plan(
        project=world.project.name,
        environment=world.environment.name,
        catalog=world.catalog.identity,
        catalog_name=world.environment.catalog.name,
        migrations=with_writers(migrations, undoing.actual),
        applied=tuple((a.version.text, a.checksum) for a in history.applied),
        based_on=undoing.actual,
        base=history.state,
        tool_version=installed.ICEMIGRATE,
    )
    unfilled = [_nothing_to_refill(m) for m in migrations if wanted[m.version].refill and not _refills(m)]
    continued = [
        _continued(i, choices_of(wanted[i.version.text]))
        for i in interrupted(history)
        if i.version.text in wanted
    ]
    return PlanResult(with_old_files(plan, world.catalog), (*_diagnostics(plan), *continued, *unfilled))


def _refills(migration: MigrationPlan) -> bool:
    return any(isinstance(planned.change, RefillColumns) for planned in migration.changes())


def _nothing_to_refill(migration: MigrationPlan) -> Diagnostic:
    """What a plan says where values were to be brought back and there are none."""
    return Diagnostic(
        "nothing-to-refill",
        f"{migration.version}: `--refill` has no value to bring back",
        hint="each value of a dropped column is in the files, or no tag or snapshot keeps it",
        severity=Severity.NOTE,
    )


def _continued(intent: Intent, choices: Sequence[str]) -> Diagnostic:
    """What a plan says of a run that it continues or undoes.

    :param choices: the options of the plan.
    """
    is_undo = intent.direction is Direction.ROLLBACK
    then = "this run continues it" if is_undo else "this run undoes what it did"
    same = [f"`{choice}`" for choice in intent.choices if choice in choices]
    kept = f", and keeps {', '.join(same)}" if is_undo and same else ""
    return Diagnostic(
        "interrupted",
        f"{intent.version}: `{intent.command}` by {intent.user} on {intent.host} was interrupted; "
        f"{then}{kept}",
        severity=Severity.NOTE,
    )


def _refilled(undoing: Undoing, version: Version, history: History) -> MigrationPlan:
    """The plan of a refill.

    :raises UsageError: there is nothing to do.
    """
    migration = undoing.plan_refill(version, history.state)
    if migration.tables:
        return migration
    promised = (
        "no values depend on a tag" if version.options.refill is False else "there is no value to restore"
    )
    raise UsageError(
        f"--only {version.version}: it is rolled back already, and {promised}",
        "nothing needs to be done; `apply --redo` applies it again",
    )


def _diagnostics(plan: Plan) -> list[Diagnostic]:
    def told(version: str, problem: Problem, severity: Severity) -> Diagnostic:
        return Diagnostic(problem.rule, f"{version}: {problem.message}", None, problem.hint, severity)

    return [
        *(told(m.version, p, Severity.ERROR) for m in plan.migrations for p in m.problems),
        *(told(m.version, p, Severity.WARNING) for m in plan.migrations for p in m.warnings),
    ]


def _version(history: History, applied: Applied) -> Version:
    record = history.undo_record(applied.version)
    if record is None and applied.since:
        raise HistoryError(
            f"{applied.version} is a squash of {applied.since} to {applied.version}, "
            "which was recorded when these were applied: it cannot be taken back",
            "`icemigrate revert VERSION` writes a migration that undoes a later one",
        )
    if record is None:
        raise HistoryError(
            f"the history holds nothing that {applied.version} could be undone from",
            f"`icemigrate revert {applied.version}` writes a migration that leads back",
        )
    return Version(applied.version.text, applied.description, applied.checksum, record)


def _traced(world: Opened, history: History, version: Version) -> Version:
    """The version, its record corrected by what a run that was cut short had committed."""
    for intent in history.intents:
        if intent.version.text == version.version and intent.direction is Direction.APPLY:
            return replace(version, record=tracer(world)(version.record, intent))
    return version


def _state(history: History, versions: Sequence[Version]) -> State:
    """The declared state as the versions left it: one that was cut short on its way was not recorded."""
    forward = {i.version.text for i in history.intents if i.direction is Direction.APPLY}
    state = history.state
    for version in reversed(versions):
        if version.version in forward:
            state = state_after(version.record, state)
    return state


def _standing(history: History) -> list[Applied]:
    """What can be taken back, the last first; one that was cut short before all others."""
    there = [a for a in history.applied if a.standing != "held"]
    return sorted(there, key=lambda a: (a.standing == "interrupted", a.version), reverse=True)


def _chosen(history: History, to: str | None, only: str | None, options: Options) -> list[Applied]:
    if to is not None and only is not None:
        raise UsageError("`--to` and `--only` exclude each other", "give one of them")
    there = _standing(history)
    if only is not None:
        applied = _applied(history, only, "--only ")
        if applied.standing == "held" and options.refill is not None:
            return [applied]
        if applied.standing == "held":
            raise UsageError(
                f"--only {only}: it is rolled back already",
                "`apply --redo` applies it again; `--refill` brings back values that the rollback left",
            )
        _refuse_blocked(history, applied, there)
        return [applied]
    if to is not None:
        number = (
            0
            if to.isascii() and to.isdigit() and int(to) == 0
            else _applied(history, to, "--to ").version.number
        )
        return [a for a in there if a.version.number > number]
    return there[:1]


def _applied(history: History, text: str, option: str = "") -> Applied:
    known = {a.version.number: a for a in history.applied}
    if text.isascii() and text.isdigit() and int(text) in known:
        return known[int(text)]
    listed = ", ".join(a.version.text for a in sorted(history.applied, key=lambda a: a.version))
    hint = f"applied are {listed}" if listed else "nothing is applied yet"
    raise UsageError(f"{option}{text}: no migration of this version was applied", hint)


def _refuse_blocked(history: History, applied: Applied, there: Sequence[Applied]) -> None:
    """Refuse what later migrations depend on.

    :raises ConflictError: with the later ones and the facts that they share.
    """
    later = [a for a in there if a.version > applied.version or a.applied_at > applied.applied_at]
    records = [_version(history, a).record for a in later if a is not applied]
    found = blockers(_version(history, applied).record, records)
    if found:
        listed = "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)
        before = max((a for a in there if a.version < applied.version), default=None, key=lambda a: a.version)
        raise ConflictError(
            f"{applied.version} cannot be taken back alone, since later migrations depend on it: {listed}",
            f"`icemigrate rollback --to {before.version if before else 0}` takes all of them back",
        )
