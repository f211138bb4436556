"""``plan --reconcile`` and ``apply --reconcile``: tables led back to what the history recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from icemigrate import versions as installed
from icemigrate.app.continuing import half_undone
from icemigrate.app.drifting import Met, meet
from icemigrate.app.locking import journal
from icemigrate.app.locking import notes as interrupted_notes
from icemigrate.app.noting import Notes
from icemigrate.app.observing import records
from icemigrate.app.publishing import ways
from icemigrate.app.rolling_back import require_undoable
from icemigrate.app.spark import LazySpark, engine_of
from icemigrate.app.undoing import Undoing, Version, state_after
from icemigrate.app.wider_files import with_wider_files
from icemigrate.app.world import Opened, opened
from icemigrate.catalog.capabilities import is_set_by_machines
from icemigrate.changes.base import HazardKind, Problem
from icemigrate.diagnostics import Diagnostic, Severity, did_you_mean
from icemigrate.drift.reconciling import Known, WayBack, way_back
from icemigrate.drift.results import ReconcileResult
from icemigrate.errors import UsageError
from icemigrate.events import Event
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.model.table import Snapshot, Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import RECONCILED, Consent, Direction, MigrationPlan, Plan, Reconcile, TablePlan
from icemigrate.plan_file import require_fresh
from icemigrate.planner import unconsented
from icemigrate.project import Project
from icemigrate.results import PlanResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "Lead tables back to what is recorded"


class _Found(Frozen):
    """What leads each table back, and what keeps it from going."""

    ways: tuple[WayBack, ...]
    problems: tuple[Problem, ...]


def asked(tables: Iterable[str] = (), allow: Iterable[str] = ()) -> Reconcile:
    """What is asked for on the command line.

    :param allow: as in a file: ``destructive``, or ``destructive market_data.trades.tags``.
    :raises UsageError: a consent is none.
    """
    consents = []
    for text in allow:
        kind, _, scope = text.strip().partition(" ")
        kinds = [k.value for k in HazardKind]
        if kind not in kinds:
            hint = did_you_mean(kind, kinds) or f"one of {', '.join(kinds)}, and what for"
            raise UsageError(f"--allow {text}: there is no consent `{kind}`", hint)
        consents.append(Consent(kind, scope.strip() or None))
    return Reconcile(tuple(dict.fromkeys(tables)), tuple(consents))


def plan_reconcile(
    project: Project,
    environment: str | None = None,
    what: Reconcile | None = None,
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> PlanResult:
    """The plan that leads tables back to what the history recorded of them.

    Spark is started only where the files of a table have to be asked.

    :param what: see :func:`asked`; all tables and no consent where left out.
    :param spark: a running session; without it one is started where it is needed.
    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with opened(project, environment) as world:
        return _plan(world, what or Reconcile(), LazySpark(world, spark, on_start))


def reconcile(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ReconcileResult:
    """Carry out a plan of :func:`plan_reconcile`; made again under the lock, it must be the same.

    :raises Mistakes: something cannot go back, or a consent is missing.
    :raises ConflictError: the plan is stale (:class:`~icemigrate.errors.StalePlan`), or an interrupted
        migration of the same tables comes first.
    :raises LockHeld: somebody else held the lock all the while.
    :raises EngineError: Java, Spark or a statement failed.
    """
    from icemigrate import executor

    done: tuple[str, ...] = tuple(str(t.declared) for m in plan.migrations for t in m.tables)
    if plan.is_empty:
        return ReconcileResult(project.name, plan.environment, (), 0)
    notes = Notes(on_event)
    with opened(project, plan.environment) as world:
        engine = engine_of(world, spark, on_start)

        def replan() -> Plan:
            fresh = _plan(world, plan.reconcile or Reconcile(), LazySpark(world, None, lambda: None, engine))
            if not fresh.plan.is_empty:
                require_fresh(plan, fresh.plan)
                require_undoable(fresh)
            return fresh.plan

        clock = time.monotonic()
        held = journal(world, engine, lock_timeout_s)
        executor.apply(plan, engine, held, notes, replan=replan, ways=ways(world, engine))
        elapsed = round((time.monotonic() - clock) * 1000)
        return ReconcileResult(project.name, plan.environment, done, elapsed, notes.heard)


def ready_reconcile(project: Project, saved: Plan, on_start: Callable[[], None]) -> PlanResult:
    """A saved plan held against the world.

    :returns: the same plan, made anew.
    :raises StalePlan: it would be another one by now.
    """
    fresh = plan_reconcile(project, saved.environment, saved.reconcile, on_start=on_start)
    require_fresh(saved, fresh.plan)
    return fresh


def _plan(world: Opened, what: Reconcile, spark: LazySpark) -> PlanResult:
    history = world.history()
    found = _found(world, history, meet(world, history, what.tables))
    undoing = Undoing(world, spark)
    migrations: tuple[MigrationPlan, ...] = ()
    if found.ways or found.problems:
        record = UndoRecord(RECONCILED, tuple(w.undo for w in found.ways))
        planned = undoing.plan(
            [Version(RECONCILED, _DESCRIPTION, "", record)], state_after(record, history.state)
        )
        led_back = with_wider_files(planned.migrations, undoing.actual, world.catalog, history)
        migrations = tuple(_reconciling(m, found, what) for m in led_back)
    plan = Plan(
        project=world.project.name,
        environment=world.environment.name,
        catalog=world.catalog.identity,
        catalog_name=world.environment.catalog.name,
        migrations=migrations,
        applied=tuple((a.version.text, a.checksum) for a in history.applied),
        based_on=undoing.actual,
        base=history.state,
        tool_version=installed.ICEMIGRATE,
        reconcile=what,
        unfinished=half_undone(history),
    )
    return PlanResult(plan, (*_diagnostics(plan), *interrupted_notes(history)))


def _reconciling(migration: MigrationPlan, found: _Found, what: Reconcile) -> MigrationPlan:
    """The undo of what others did, as what it is."""
    notes = {w.undo.declared_before: w.notes for w in found.ways}
    tables = tuple(
        replace(_scoped(table), notes=(*notes.get(table.declared, ()), *table.notes))
        for table in migration.tables
    )
    hazards = [h for table in tables for change in table.changes() for h in change.hazards]
    return replace(
        migration,
        tables=tables,
        direction=Direction.RECONCILE,
        problems=(*found.problems, *(_told(p) for p in migration.problems)),
        unconsented=tuple(unconsented(hazards, what.allow)),
    )


def _told(problem: Problem) -> Problem:
    """What cannot go back, with the ways out that there are here."""
    return replace(problem, hint="`drift --accept` declares what is there; `--table` leads the others back")


def _scoped(table: TablePlan) -> TablePlan:
    """Its hazards scoped by the declared name, as in a file."""
    steps, finish = (tuple(s.scoped(table.declared) for s in part) for part in (table.steps, table.finish))
    return replace(table, steps=steps, finish=finish)


def _found(world: Opened, history: History, met: Iterable[Met]) -> _Found:
    found, problems = list[WayBack](), list[Problem]()
    for one in met:
        declared = world.names.declared(one.base.name)
        if one.there is None:
            problems.append(_gone(one, declared))
            continue
        if one.stranger is not None:
            problems.append(_taken(one, declared))
            continue
        base = replace(one.base, name=declared)
        way = way_back(base, one.there, _known(world, history, one))
        if way is not None:
            found.append(way)
            problems += way.problems
    return _Found(tuple(found), tuple(problems))


def _known(world: Opened, history: History, met: Met) -> Known:
    assert met.there is not None, "what is gone has no way back"
    declared = world.names.declared(met.base.name)
    metadata = (world.catalog.metadata_json(met.there.name) or {}) if met.base.refs else {}
    return Known(
        name=met.base.name,
        declared=world.names.declared(met.there.name),
        machines=is_set_by_machines(world.catalog.capabilities),
        snapshots=frozenset(s["snapshot-id"] for s in metadata.get("snapshots") or ()),
        then=_then(history, replace(met.base, name=declared)),
    )


def _then(history: History, base: Table) -> Snapshot | None:
    """The table's snapshot when it was recorded: what came later may have been written as it is now."""
    found = (undo.actual_after for _, undo in records(history, base) if undo.actual_after is not None)
    last = next(found, None)
    return None if last is None else last.snapshot


def _gone(met: Met, declared: TableName) -> Problem:
    what = "another table has its name" if met.stranger is not None else "the catalog has no such table"
    return Problem(
        "table-gone",
        declared,
        ("name",),
        f"`{declared}` cannot be led back: {what}",
        "register its last metadata file again (`CALL … system.register_table`), or declare that it is gone "
        "with `drift --accept`",
    )


def _taken(met: Met, declared: TableName) -> Problem:
    assert met.there is not None, "it is there, under another name"
    return Problem(
        "table-exists",
        declared,
        ("name",),
        f"`{declared}` cannot have its name back: it is called `{met.there.name}` now, and another table has "
        "the name",
        "move the other table away first",
    )


def _diagnostics(plan: Plan) -> Iterator[Diagnostic]:
    for migration in plan.migrations:
        for severity, problems in (
            (Severity.ERROR, migration.problems),
            (Severity.WARNING, migration.warnings),
        ):
            for problem in problems:
                yield Diagnostic(problem.rule, _located(problem), None, problem.hint, severity)
        for hazard in migration.unconsented:
            yield Diagnostic(
                "missing-allow",
                f"`{hazard.scope}`: {hazard.reason}",
                None,
                f'to consent to it: --allow "{hazard.kind.value} {hazard.scope}"',
            )


def _located(problem: Problem) -> str:
    """What is wrong, with the table that it is about: no line of a file tells it here."""
    table = str(problem.table)
    return problem.message if f"`{table}`" in problem.message else f"{table}: {problem.message}"
