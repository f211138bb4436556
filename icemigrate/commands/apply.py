"""``apply``: runs exactly the plan that was shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.commands.data_step_locations import locate_data_step_errors
from icemigrate.commands.list_values import load_with_list_values
from icemigrate.commands.plan import plan_in_environment
from icemigrate.errors import ConflictError, Mistakes
from icemigrate.events import Event
from icemigrate.evidence.environment_undo import failed_run_undo_planner
from icemigrate.execution.carry_out import carry_out
from icemigrate.execution.continued_run import require_finished
from icemigrate.execution.engine_choice import LazyEngine
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.list_sources import by_list_name
from icemigrate.frozen import replace
from icemigrate.history.recorded_versions import VersionState
from icemigrate.planning.plan import MigrationPlan, Plan
from icemigrate.planning.plan_staleness import as_stale, require_not_stale
from icemigrate.project import Project
from icemigrate.results.command_results import ApplyResult, PlanResult, errors_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.commit_ports import CommittingEngine


def verify_saved_plan(project: Project, saved: Plan) -> PlanResult:
    """Compare a saved plan with the files, the history and the catalog.

    :returns: the same plan, made anew.
    :raises StalePlan: the project, the catalog, the history, a file or a table has changed.
    """
    with open_environment(project, saved.environment) as session:
        return _replan(session, saved)


def apply(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ApplyResult:
    """Run a plan; an empty plan does not start Spark.

    The plan is made again under the project's lock, and nothing runs if it has changed; if another process
    applied all of it meanwhile, the result shows that.  Spark stays running in this process for later calls.

    :param spark: a running session with Iceberg's SQL extensions; without it one is started.
    :param on_start: called before Spark is started.
    :param lock_timeout_s: how long to wait for the lock of another process; ``None`` for longer than a lease.
    :raises LockHeld: another process held the lock until the timeout, or took it over.
    :raises Mistakes: the plan has problems, consents are missing, or Spark cannot run a data step.
    :raises ConflictError: the plan has conflicts, or (:class:`~icemigrate.errors.StalePlan`) is stale.
    :raises EngineError: Java, Spark or a statement failed.
    """
    if plan.is_empty:
        return ApplyResult(
            project.name,
            plan.environment,
            (),
            0,
            to=plan.to,
            beyond=plan.beyond,
            held=plan.held,
            held_gone=plan.held_gone,
            held_edited=plan.held_edited,
        )
    with open_environment(project, plan.environment) as session:
        # Once before Spark's start, so that a refused plan does not wait for it.
        require_ready(_replan(session, plan))

        def replan(_: CommittingEngine) -> Plan:
            if _is_done(session, plan):
                return replace(plan, migrations=())
            fresh = _replan(session, plan)
            require_ready(fresh)
            return fresh.plan

        with locate_data_step_errors(session):
            done = carry_out(
                session,
                plan,
                replan,
                engine=LazyEngine(session, spark, on_start, is_undo=plan.is_baseline),
                on_event=on_event,
                lock_timeout_s=lock_timeout_s,
                inverse=lambda engine: failed_run_undo_planner(
                    session, engine, lambda: session.history().state
                ),
            )
    return ApplyResult(
        project=project.name,
        environment=plan.environment,
        applied=done.versions,
        elapsed_ms=done.elapsed_ms,
        is_baseline=plan.is_baseline,
        notes=done.all_notes,
    )


def _replan(session: EnvironmentSession, plan: Plan) -> PlanResult:
    """The plan made anew.

    :raises StalePlan: it is another one by now.
    """
    with as_stale():
        return _plan_again_and_compare(session, plan)


def _plan_again_and_compare(session: EnvironmentSession, plan: Plan) -> PlanResult:
    history = session.history()
    session, loaded = load_with_list_values(session, history, plan.lists)
    # Files after its last one do not change the plan; an empty plan claims that there are none.
    last = plan.migrations[-1].version if plan.migrations else plan.to
    there = {f.version.text for f in loaded.files}
    fresh = plan_in_environment(
        session,
        history,
        loaded.files,
        to=last if last in there and plan.redo is None else None,
        # Facts without a conflict any more are part of the comparison.
        overwrite=plan.overwrite,
        strict=False,
        redo=plan.redo,
        baseline=plan.is_baseline,
        only_extends=plan.only_extends,
    )
    require_not_stale(plan, fresh.plan)
    return fresh


def _is_done(session: EnvironmentSession, plan: Plan) -> bool:
    """Whether another process applied all of the plan while this one waited for the lock."""
    there = {
        (a.version.text, a.checksum): by_list_name(a.list_values)
        for a in session.history().applied
        if a.state is VersionState.APPLIED
    }

    def is_done(migration: MigrationPlan) -> bool:
        lists = there.get((migration.version, migration.checksum))
        return lists is not None and all(
            set(one.values) <= set(lists.get(one.name, ())) for one in migration.lists
        )

    return all(map(is_done, plan.migrations))


def require_ready(result: PlanResult) -> None:
    """Refuse a plan that is not ready.

    :raises Mistakes: there are problems, or consents are missing.
    :raises ConflictError: there are conflicts.
    """
    if errors := errors_of(result.diagnostics):
        # A problem without a position in a file is about the catalog or the history.
        where = None if any(e.place for e in errors) else f"cannot apply the plan: {errors[0].message}"
        raise Mistakes(result.diagnostics, where)
    require_finished(result.plan)
    conflicts = [c.fact for m in result.plan.migrations for c in m.conflicts]
    if conflicts:
        raise ConflictError(
            f"the catalog conflicts with the migrations: {', '.join(conflicts)}",
            "`icemigrate plan` shows the values and how to resolve each conflict",
        )
