"""``apply``: carries out a plan that was shown, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.app.continuing import require_finished
from icemigrate.app.locking import journal
from icemigrate.app.noting import Notes
from icemigrate.app.opening import load_unapplied
from icemigrate.app.placing import placed
from icemigrate.app.planning import plan_in
from icemigrate.app.publishing import ways
from icemigrate.app.spark import engine_of
from icemigrate.app.tracing import tracer
from icemigrate.app.undoing import inverse
from icemigrate.app.world import Opened, opened
from icemigrate.errors import ConflictError, Mistakes
from icemigrate.events import Event
from icemigrate.frozen import replace
from icemigrate.history.record import Record
from icemigrate.plan import Plan
from icemigrate.plan_file import require_fresh
from icemigrate.project import Project
from icemigrate.results import ApplyResult, PlanResult, errors_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.engine.spark import SparkEngine
    from icemigrate.history.journal import Journal


def ready_plan(project: Project, saved: Plan) -> PlanResult:
    """A saved plan held against the world.

    :returns: the same plan, made anew.
    :raises StalePlan: the project, the catalog, the history, a file or a table is another one by now.
    """
    with opened(project, saved.environment) as world:
        return _again(world, saved)


def apply(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ApplyResult:
    """Carry out a plan; where it is empty, Spark is not started.

    The world is looked at again under the project's lock, and nothing is done if the plan would be another
    one; where somebody else did all of it meanwhile, that is said and is fine.  Spark goes on running in this
    process for whoever comes next.

    :param spark: a running session with Iceberg's SQL extensions; without it one is started.
    :param on_start: called before Spark is started.
    :param lock_timeout_s: how long to wait for somebody else's lock; ``None`` for longer than a lease.
    :raises LockHeld: somebody else held the lock all the while, or took it over.
    :raises Mistakes: the plan has problems, consents are missing, or Spark would not run a data step.
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
    with opened(project, plan.environment) as world:
        # Once before Spark's start, for whoever would wait for nothing.
        require_ready(_again(world, plan))
        engine = engine_of(world, spark, on_start)
        clock = (
            time.monotonic()
        )  # whether Spark ran already, or was started for the plan, makes no difference
        records, notes = _carry_out(world, plan, engine, journal(world, engine, lock_timeout_s), on_event)
    return ApplyResult(
        project=project.name,
        environment=plan.environment,
        applied=tuple(r.version.text for r in records if r.version is not None),
        elapsed_ms=round((time.monotonic() - clock) * 1000),
        is_baseline=plan.is_baseline,
        notes=notes.beside(plan),
    )


def _again(world: Opened, plan: Plan) -> PlanResult:
    """The plan made anew.

    :raises StalePlan: it is another one by now.
    """
    history = world.history()
    loaded = load_unapplied(world.project, history.applied)
    # Files that came behind its last one make it no other plan; an empty one says that there is nothing.
    last = plan.migrations[-1].version if plan.migrations else plan.to
    there = {f.version.text for f in loaded.files}
    fresh = plan_in(
        world,
        history,
        loaded.files,
        to=last if last in there and plan.redo is None else None,
        # Facts that nobody disputes any more show in the comparison.
        overwrite=plan.overwrite,
        strict=False,
        redo=plan.redo,
        baseline=plan.is_baseline,
    )
    require_fresh(plan, fresh.plan)
    return fresh


def _is_done(world: Opened, plan: Plan) -> bool:
    """Whether somebody else applied all of the plan, while this process waited for the lock."""
    there = {(a.version.text, a.checksum) for a in world.history().applied if a.standing == "applied"}
    return all((m.version, m.checksum) in there for m in plan.migrations)


def require_ready(result: PlanResult) -> None:
    """Refuse a plan that may not run.

    :raises Mistakes: there are problems, or consents are missing.
    :raises ConflictError: there are conflicts.
    """
    if errors := errors_of(result.diagnostics):
        # A problem that has no place in a file is one of the catalog or of the history.
        where = None if any(e.place for e in errors) else f"the plan cannot be applied: {errors[0].message}"
        raise Mistakes(result.diagnostics, where)
    require_finished(result.plan)
    conflicts = [c.fact for m in result.plan.migrations for c in m.conflicts]
    if conflicts:
        raise ConflictError(
            f"the catalog is neither as it was nor as it shall be: {', '.join(conflicts)}",
            "`icemigrate plan` shows the values and the ways out",
        )


def _carry_out(
    world: Opened, plan: Plan, engine: SparkEngine, journal: Journal, on_event: Callable[[Event], None]
) -> tuple[tuple[Record, ...], Notes]:
    from icemigrate import executor
    from icemigrate.engine.trial import require_understood

    notes = Notes(on_event)

    def replan() -> Plan:
        if _is_done(world, plan):
            return replace(plan, migrations=())
        fresh = _again(world, plan)
        require_ready(fresh)
        return fresh.plan

    with placed(world, plan):
        records = executor.apply(
            plan,
            engine,
            journal,
            notes,
            keep=world.environment.keep_tags,
            replan=replan,
            ways=ways(world, engine),
            inverse=inverse(world, engine, lambda: world.history().state),
            trial=partial(require_understood, engine),
            trace=tracer(world),
        )
    return records, notes
