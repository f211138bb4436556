"""``rollback``: which versions are taken back, the plan of it, and doing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.commands.affected_views import with_affected_views
from icemigrate.commands.kept_view_checks import with_kept_view_problems
from icemigrate.commands.table_by_table import with_engine_notes
from icemigrate.commands.unlock import interrupted_intents
from icemigrate.diagnostics import Diagnostic, Severity, format_count
from icemigrate.errors import ConflictError, HistoryError, Mistakes, UsageError
from icemigrate.events import Event
from icemigrate.evidence.environment_undo import EnvironmentUndoPlanner, UndoTarget, declared_state_after
from icemigrate.evidence.old_partition_files import with_old_partition_files
from icemigrate.execution.carry_out import carry_out
from icemigrate.execution.continued_run import choices_of, require_finished, run_commit_adder, with_recorded
from icemigrate.execution.engine_choice import LazyEngine
from icemigrate.execution.environment_session import (
    EnvironmentSession,
    environment_plan,
    open_environment,
)
from icemigrate.files.version_number import number_of
from icemigrate.frozen import Frozen, replace
from icemigrate.history.continued_records import require_no_extension
from icemigrate.history.history_properties import AppliedVersion, History
from icemigrate.history.recorded_versions import Intent, VersionState
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.planning.concurrent_writers import with_affected_writers
from icemigrate.planning.plan import Direction, MigrationPlan, Plan
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.undo import DEFAULT_UNDO_OPTIONS, UndoOptions, find_blocking_migrations
from icemigrate.project import Project
from icemigrate.results.command_results import PlanResult, RollbackResult, errors_of
from icemigrate.spark.connect_session import is_jvm_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.commit_ports import CommittingEngine


def plan_rollback(
    project: Project,
    environment: str | None = None,
    *,
    to: str | None = None,
    only: str | None = None,
    options: UndoOptions = DEFAULT_UNDO_OPTIONS,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> PlanResult:
    """Plan the undo of versions: the last one, all after ``to``, or ``only`` one.

    Spark is started only where rows must be counted, or where Python cannot read a table's manifests.

    :param to: the version that becomes the last; ``0`` undoes all.
    :param spark: a running session; without it one is started where it is needed.
    :param on_start: called before Spark is started.
    :raises UsageError: there is no such environment or version.
    :raises ConflictError: a later migration depends on the one of ``only``.
    :raises HistoryError: the history cannot be used, or lacks the undo record of a version.
    """
    with open_environment(project, environment) as environment_session:
        history = environment_session.history()
        chosen = _chosen(history, to, only, options)
        is_late = bool(chosen) and all(a.state is VersionState.ROLLED_BACK for a in chosen)
        lazy = LazyEngine(environment_session, spark, on_start, is_undo=True)
        choice = f" --to {to}" if to is not None else f" --only {only}" if only is not None else ""
        given = RollbackInputs(environment_session, history, tuple(chosen), options, lazy, is_late, choice)
        result = _plan(environment_session, history, chosen, options, lazy, is_late=is_late)
        if to is None and only is None:
            result = replace(result, diagnostics=(*_last_applied(history, chosen), *result.diagnostics))
        if not any(m.conflicts or m.problems for m in result.plan.migrations):
            return result
        from icemigrate.commands.conflict_resolutions import with_rollback_resolutions, with_tried_hints

        before = _diagnostics(result.plan)
        plan = with_tried_hints(given, with_rollback_resolutions(given, result.plan))
        others = (d for d in result.diagnostics if d not in before)
        return replace(result, plan=plan, diagnostics=(*_diagnostics(plan), *others))


class RollbackInputs(Frozen):
    """Everything that the plan of a rollback is made of, read once.

    :param is_late: the versions are rolled back already, and only their values come back.
    :param choice: the options that chose the versions, with a blank before each.
    """

    environment_session: EnvironmentSession
    history: History
    chosen: tuple[AppliedVersion, ...]
    options: UndoOptions
    spark: LazyEngine
    is_late: bool
    choice: str = ""

    def plan(self, options: UndoOptions) -> tuple[MigrationPlan, ...]:
        """The migrations of the rollback with other options."""
        again = _plan(
            self.environment_session, self.history, self.chosen, options, self.spark, is_late=self.is_late
        )
        return again.plan.migrations


def rollback(
    project: Project,
    plan: Plan,
    *,
    options: UndoOptions = DEFAULT_UNDO_OPTIONS,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RollbackResult:
    """Run a plan of :func:`plan_rollback`; made again under the lock, it must be the same.

    :param options: those of the plan.
    :param on_start: called before Spark is started.
    :raises Mistakes: a fact cannot be undone.
    :raises ConflictError: the plan has conflicts, or (:class:`~icemigrate.errors.StalePlan`) is stale.
    :raises LockHeld: another process held the lock until the timeout.
    :raises EngineError: Java, Spark or a statement failed.
    """
    if plan.is_empty:
        with open_environment(project, plan.environment) as environment_session:
            last = next(iter(_undoable_versions(environment_session.history())), None)
        return RollbackResult(
            project.name, plan.environment, (), 0, last=None if last is None else last.version.text
        )
    with open_environment(project, plan.environment) as environment_session:

        def replan(engine: CommittingEngine) -> Plan:
            history = environment_session.history()
            chosen = [_applied(history, m.version) for m in plan.migrations]
            is_late = all(m.refill_only for m in plan.migrations)
            if all(a.state is VersionState.ROLLED_BACK for a in chosen) and not is_late:
                return replace(plan, migrations=())
            again = LazyEngine(environment_session, None, lambda: None, engine=engine)
            fresh = _plan(environment_session, history, chosen, options, again, is_late=is_late)
            require_not_stale(plan, fresh.plan)
            require_undoable(fresh)
            return fresh.plan

        done = carry_out(
            environment_session,
            plan,
            replan,
            engine=LazyEngine(environment_session, spark, on_start, is_undo=True),
            on_event=on_event,
            lock_timeout_s=lock_timeout_s,
        )
        return RollbackResult(
            project=project.name,
            environment=plan.environment,
            rolled_back=done.versions,
            elapsed_ms=done.elapsed_ms,
            notes=done.all_notes,
            by_others=() if done.records else tuple(m.version for m in plan.migrations),
        )


def require_undoable(result: PlanResult, command: str = "rollback --dry-run") -> None:
    """Refuse a rollback or a reconciliation that is not ready.

    :param command: the arguments of icemigrate that show the plan, with the resolutions that planning has
        tried.
    :raises Mistakes: a fact cannot be undone.
    :raises ConflictError: another client has changed facts of the migration since.
    """
    if errors := errors_of(result.diagnostics):
        first = errors[0].message
        raise Mistakes(result.diagnostics, f"cannot restore the tables: {first}{_more(len(errors))}")
    require_finished(result.plan)
    conflicts = [c.fact for m in result.plan.migrations for c in m.conflicts]
    if conflicts:
        raise ConflictError(
            "the catalog matches neither the state after the migration nor the state before it: "
            f"{', '.join(conflicts)}",
            f"`icemigrate {command}` shows the values and how to resolve each conflict",
        )


def _more(errors: int) -> str:
    return "" if errors == 1 else f" (and {format_count(errors - 1, 'other problem')})"


def _plan(
    environment_session: EnvironmentSession,
    history: History,
    chosen: Sequence[AppliedVersion],
    options: UndoOptions,
    spark: LazyEngine,
    *,
    is_late: bool,
) -> PlanResult:
    begun = {i.version: i for i in history.intents}
    wanted = {a.version.text: with_recorded(options, begun.get(a.version)) for a in chosen}
    versions = [
        replace(_traced(environment_session, history, _version(history, a)), options=wanted[a.version.text])
        for a in chosen
    ]
    has_spark = spark.runs_spark
    undoing = EnvironmentUndoPlanner(
        environment_session, spark, frozenset(version.text for version in begun), has_spark
    )
    if is_late:
        migrations = tuple(_refilled(undoing, version, history) for version in versions)
    else:
        planned = undoing.plan(versions, _state(history, versions))
        migrations = with_affected_views(
            environment_session, planned.migrations, planned.state, undoing.actual
        )
        migrations = with_kept_view_problems(environment_session, migrations)
    migrations = tuple(replace(m, choices=choices_of(wanted[m.version])) for m in migrations)
    migrations = with_affected_writers(migrations, undoing.actual)
    plan = environment_plan(environment_session, history, migrations, undoing.actual)
    unfilled = [_nothing_to_refill(m) for m in migrations if wanted[m.version].refill and not _refills(m)]
    continued = [
        _continued(i, choices_of(wanted[i.version.text]))
        for i in interrupted_intents(history)
        if i.version.text in wanted
    ]
    result = PlanResult(
        with_old_partition_files(plan, environment_session.catalog),
        (*_diagnostics(plan), *continued, *unfilled),
    )
    return with_engine_notes(environment_session, result, has_spark=is_jvm_session(spark.session))


def _last_applied(history: History, chosen: Sequence[AppliedVersion]) -> Iterator[Diagnostic]:
    """The note of a plan that undoes an earlier version than the last one, because that is rolled back."""
    for last in chosen:
        later = [a.version for a in history.applied if a.state is VersionState.ROLLED_BACK]
        undone = ", ".join(v.text for v in sorted(later) if v > last.version)
        if undone:
            yield Diagnostic(
                "last-applied",
                f"{last.version} is the last applied version; rolled back already: {undone}",
                hint="each `rollback` undoes one more version; `--only` and `--to` name the version",
                severity=Severity.NOTE,
            )


def _refills(migration: MigrationPlan) -> bool:
    return any(isinstance(planned.change, RefillColumns) for planned in migration.changes())


def _nothing_to_refill(migration: MigrationPlan) -> Diagnostic:
    """The note of a plan that was to restore values and finds none."""
    return Diagnostic(
        "nothing-to-refill",
        f"{migration.version}: `--refill` has no value to restore",
        hint="each value of a dropped column is in the data files, or no tag or snapshot has it",
        severity=Severity.NOTE,
    )


def _continued(intent: Intent, choices: Sequence[str]) -> Diagnostic:
    """The notes of a plan that continues or undoes an interrupted run.

    :param choices: the options of the plan.
    """
    is_undo = intent.direction is Direction.ROLLBACK
    then = "this run continues it" if is_undo else "this run undoes it"
    same = [f"`{choice}`" for choice in intent.choices if choice in choices]
    kept = f", with {', '.join(same)}" if is_undo and same else ""
    return Diagnostic(
        "interrupted",
        f"{intent.version}: `{intent.command}` by {intent.user} on {intent.host} was interrupted; "
        f"{then}{kept}",
        severity=Severity.NOTE,
    )


def _refilled(undoing: EnvironmentUndoPlanner, version: UndoTarget, history: History) -> MigrationPlan:
    """The plan of a refill.

    :raises UsageError: there are no values to restore.
    """
    migration = undoing.plan_refill(version, history.state)
    if migration.tables:
        return migration
    promised = (
        "no value depends on a tag" if version.options.refill is False else "there is no value to restore"
    )
    raise UsageError(
        f"--only {version.version}: it is already rolled back, and {promised}",
        "nothing to do; `apply --redo` applies it again",
    )


def _diagnostics(plan: Plan) -> list[Diagnostic]:
    def diagnostic(version: str, problem: PlanProblem, severity: Severity) -> Diagnostic:
        return Diagnostic(problem.rule, f"{version}: {problem.message}", None, problem.hint, severity)

    return [
        *(diagnostic(m.version, p, Severity.ERROR) for m in plan.migrations for p in m.problems),
        *(diagnostic(m.version, p, Severity.WARNING) for m in plan.migrations for p in m.warnings),
    ]


def _version(history: History, applied: AppliedVersion) -> UndoTarget:
    record = history.undo_record(applied.version)
    if record is None and applied.since:
        raise HistoryError(
            f"{applied.version} is a squash of {applied.since} to {applied.version} that was only "
            "recorded: it cannot be rolled back",
            "`icemigrate revert VERSION` writes a migration that undoes a later one",
        )
    if record is None:
        raise HistoryError(
            f"the history has no undo record of {applied.version}",
            f"`icemigrate revert {applied.version}` writes a migration that undoes it",
        )
    return UndoTarget(applied.version.text, applied.description, applied.checksum, record)


def _traced(environment_session: EnvironmentSession, history: History, version: UndoTarget) -> UndoTarget:
    """The version, its record with the commits of an interrupted run."""
    for intent in history.intents:
        if intent.version.text == version.version and intent.direction is Direction.APPLY:
            return replace(version, record=run_commit_adder(environment_session)(version.record, intent))
    return version


def _state(history: History, versions: Sequence[UndoTarget]) -> DeclaredState:
    """The declared state after the versions: the one of an interrupted version was not recorded."""
    unrecorded = {
        i.version.text for i in history.intents if i.direction is Direction.APPLY or i.undoes_unfinished
    }
    state = history.state
    for version in reversed(versions):
        if version.version in unrecorded:
            state = declared_state_after(version.record, state)
    return state


def _undoable_versions(history: History) -> list[AppliedVersion]:
    """The versions that can be undone, the last first; an interrupted one before all others."""
    there = [a for a in history.applied if a.state is not VersionState.ROLLED_BACK]
    return sorted(there, key=lambda a: (a.state is VersionState.INTERRUPTED, a.version), reverse=True)


def _chosen(history: History, to: str | None, only: str | None, options: UndoOptions) -> list[AppliedVersion]:
    if to is not None and only is not None:
        raise UsageError("`--to` and `--only` cannot be combined", "pass one of them")
    require_no_extension(history)
    there = _undoable_versions(history)
    if only is not None:
        applied = _applied(history, only, "--only ")
        if applied.state is VersionState.ROLLED_BACK and options.refill is not None:
            return [applied]
        if applied.state is VersionState.ROLLED_BACK:
            raise UsageError(
                f"--only {only}: it is already rolled back",
                f"{'' if applied.abandoned else '`apply --redo` applies it again; '}"
                "`--refill` restores values that the rollback left",
            )
        _refuse_blocked(history, applied, there)
        return [applied]
    if to is not None:
        number = 0 if number_of(to) == 0 else _applied(history, to, "--to ").version.number
        return [a for a in there if a.version.number > number]
    return there[:1]


def _applied(history: History, text: str, option: str = "") -> AppliedVersion:
    known: dict[int | None, AppliedVersion] = {a.version.number: a for a in history.applied}
    applied = known.get(number_of(text))
    if applied is not None:
        return applied
    applied_now = (a for a in history.applied if a.state is not VersionState.ROLLED_BACK)
    listed = ", ".join(a.version.text for a in sorted(applied_now, key=lambda a: a.version))
    hint = f"applied versions: {listed}" if listed else "nothing is applied yet"
    raise UsageError(f"{option}{text}: no migration of this version is applied", hint)


def _refuse_blocked(history: History, applied: AppliedVersion, there: Sequence[AppliedVersion]) -> None:
    """Refuse to undo a migration that later ones depend on.

    :raises ConflictError: with the later ones and the shared facts.
    """
    later = [a for a in there if a.version > applied.version or a.applied_at > applied.applied_at]
    records = [_version(history, a).record for a in later if a is not applied]
    found = find_blocking_migrations(_version(history, applied).record, records)
    if found:
        listed = "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)
        before = max((a for a in there if a.version < applied.version), default=None, key=lambda a: a.version)
        raise ConflictError(
            f"cannot roll back {applied.version} alone: later migrations depend on it: {listed}",
            f"`icemigrate rollback --to {before.version if before else 0}` rolls all of them back",
        )
