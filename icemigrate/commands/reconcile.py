"""``plan --reconcile`` and ``apply --reconcile``: change tables back to the recorded state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.changes.change import PlanProblem
from icemigrate.commands.affected_views import with_affected_views
from icemigrate.commands.compared_tables import ComparedTable, compare_recorded_tables, require_readable
from icemigrate.commands.given_consents import parse_consents
from icemigrate.commands.rollback import require_undoable
from icemigrate.commands.table_by_table import with_table_by_table
from icemigrate.commands.unlock import interruption_notes as interrupted_notes
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.events import Event
from icemigrate.evidence.environment_undo import EnvironmentUndoPlanner, UndoTarget, declared_state_after
from icemigrate.evidence.narrowed_types import with_narrow_type_problems
from icemigrate.execution.carry_out import carry_out
from icemigrate.execution.continued_run import unfinished_rollbacks
from icemigrate.execution.engine_choice import LazyEngine
from icemigrate.execution.environment_session import (
    EnvironmentSession,
    environment_plan,
    open_environment,
)
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.past_states import last_recorded_snapshots
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.drift.reconcile_target import (
    ReconcileContext,
    ReconcileTarget,
    find_reconcile_target,
)
from icemigrate.planning.plan import (
    MISSING_CONSENT,
    RECONCILE_VERSION,
    Direction,
    MigrationPlan,
    Plan,
    ReconcileRequest,
    TablePlan,
)
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.planner import hazards_without_consent
from icemigrate.project import Project
from icemigrate.results.command_results import PlanResult
from icemigrate.results.drift_results import ReconcileResult
from icemigrate.spark.connect_session import is_jvm_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.commit_ports import CommittingEngine

_DESCRIPTION = "Restore tables to their recorded state"


class _TableReversals(Frozen):
    """The plans of each table, and their problems."""

    targets: tuple[ReconcileTarget, ...]
    problems: tuple[PlanProblem, ...]


def reconcile_request(tables: Iterable[str] = (), allow: Iterable[str] = ()) -> ReconcileRequest:
    """The request of the command line.

    :param allow: as in a file: ``destructive``, or ``destructive market_data.trades.tags``.
    :raises UsageError: a consent is invalid.
    """
    return ReconcileRequest(tuple(dict.fromkeys(tables)), parse_consents(allow))


def plan_reconcile(
    project: Project,
    environment: str | None = None,
    what: ReconcileRequest | None = None,
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> PlanResult:
    """Plan changing tables back to their recorded state.

    Spark is started only where the files of a table must be read.

    :param what: see :func:`reconcile_request`; by default all tables and no consent.
    :param spark: a running session; without it one is started where it is needed.
    :raises UsageError: there is no such environment or table.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with open_environment(project, environment) as session:
        planned = _plan(
            session, what or ReconcileRequest(), LazyEngine(session, spark, on_start, is_undo=True)
        )
        return with_table_by_table(session, planned, has_spark=is_jvm_session(spark))


def reconcile(
    project: Project,
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ReconcileResult:
    """Run a plan of :func:`plan_reconcile`; made again under the lock, it must be the same.

    :raises Mistakes: a fact cannot be reverted, or a consent is missing.
    :raises ConflictError: the plan is stale (:class:`~icemigrate.errors.StalePlan`), or an interrupted
        migration of the same tables must be finished first.
    :raises LockHeld: another process held the lock until the timeout.
    :raises EngineError: Java, Spark or a statement failed.
    """
    tables: tuple[str, ...] = tuple(str(t.declared) for m in plan.migrations for t in m.tables)
    if plan.is_empty:
        return ReconcileResult(project.name, plan.environment, (), 0)
    with open_environment(project, plan.environment) as session:

        def replan(engine: CommittingEngine) -> Plan:
            fresh = _plan(
                session,
                plan.reconcile or ReconcileRequest(),
                LazyEngine(session, None, lambda: None, engine=engine),
            )
            if not fresh.plan.is_empty:
                require_not_stale(plan, fresh.plan)
                require_undoable(fresh, "plan --reconcile")
            return fresh.plan

        done = carry_out(
            session,
            plan,
            replan,
            engine=LazyEngine(session, spark, on_start, is_undo=True),
            on_event=on_event,
            lock_timeout_s=lock_timeout_s,
        )
        return ReconcileResult(project.name, plan.environment, tables, done.elapsed_ms, done.notes)


def verify_saved_reconcile(project: Project, saved: Plan, on_start: Callable[[], None]) -> PlanResult:
    """Compare a saved plan with the current state.

    :returns: the same plan, made anew.
    :raises StalePlan: the new plan differs.
    """
    fresh = plan_reconcile(project, saved.environment, saved.reconcile, on_start=on_start)
    require_not_stale(saved, fresh.plan)
    return fresh


def unready_tables(session: EnvironmentSession, what: ReconcileRequest) -> frozenset[TableName]:
    """Declared names of the tables that cannot be restored to their recorded state, as far as planning shows
    without Spark.

    :raises UsageError: no such table is recorded.
    """

    def refuse() -> CommittingEngine:
        raise _SparkNeeded

    try:
        found = _plan(session, what, refuse, has_spark=False)
    except _SparkNeeded:
        return frozenset()
    return frozenset(p.table for m in found.plan.migrations for p in m.problems)


class _SparkNeeded(Exception):
    """Only Spark can answer a question about the files of a table."""


def _plan(
    session: EnvironmentSession,
    what: ReconcileRequest,
    spark: Callable[[], CommittingEngine],
    has_spark: bool = True,
) -> PlanResult:
    """The plan.

    :param has_spark: as in :class:`~icemigrate.evidence.environment_undo.EnvironmentUndoPlanner`.
    """
    history = session.history()
    compared = compare_recorded_tables(session, history, what.tables)
    require_readable(compared)
    found = _find_reversals(session, history, compared)
    undoing = EnvironmentUndoPlanner(session, spark, has_spark=has_spark)
    migrations: tuple[MigrationPlan, ...] = ()
    if found.targets or found.problems:
        record = UndoRecord(RECONCILE_VERSION, tuple(w.undo for w in found.targets))
        planned = undoing.plan(
            [UndoTarget(RECONCILE_VERSION, _DESCRIPTION, "", record)],
            declared_state_after(record, history.state),
        )
        led_back = with_narrow_type_problems(planned.migrations, undoing.actual, session.catalog, history)
        led_back = with_affected_views(session, led_back, planned.state, undoing.actual)
        migrations = tuple(_reconciling(m, found, what) for m in led_back)
    plan = replace(
        environment_plan(session, history, migrations, undoing.actual),
        reconcile=what,
        unfinished=unfinished_rollbacks(history),
    )
    return PlanResult(plan, (*_diagnostics(plan), *interrupted_notes(history)))


def _reconciling(migration: MigrationPlan, found: _TableReversals, what: ReconcileRequest) -> MigrationPlan:
    """Convert the plan of an undo to that of a reconcile."""
    notes = {w.undo.declared_before: w.notes for w in found.targets}
    tables = tuple(
        replace(_scoped(table), notes=(*notes.get(table.declared, ()), *table.notes))
        for table in migration.tables
    )
    hazards = [h for table in tables for change in table.changes() for h in change.hazards]
    return replace(
        migration,
        tables=tables,
        direction=Direction.RECONCILE,
        problems=(*found.problems, *(_with_reconcile_hint(p) for p in migration.problems)),
        unconsented=tuple(hazards_without_consent(hazards, what.allow)),
    )


def _with_reconcile_hint(problem: PlanProblem) -> PlanProblem:
    """Facts that cannot be reverted, with hints for a reconcile."""
    return replace(
        problem, hint="`drift --accept` declares the current state; `--table` reconciles the other tables"
    )


def _scoped(table: TablePlan) -> TablePlan:
    """Its hazards scoped by the declared name, as in a file."""
    steps, finish = (tuple(s.scoped(table.declared) for s in part) for part in (table.steps, table.finish))
    return replace(table, steps=steps, finish=finish)


def _find_reversals(
    session: EnvironmentSession, history: History, met: Sequence[ComparedTable]
) -> _TableReversals:
    found, problems = list[ReconcileTarget](), list[PlanProblem]()
    bases = [replace(one.base, name=session.names.declared(one.base.name)) for one in met]
    # Later files of a table may have the current types.
    then = last_recorded_snapshots(history, (b for b, one in zip(bases, met, strict=True) if one.there))
    for base, one in zip(bases, met, strict=True):
        if one.there is None:
            problems.append(_gone(one, base.name))
            continue
        if one.stranger is not None:
            problems.append(_taken(one, base.name))
            continue
        way = find_reconcile_target(base, one.there, _known(session, one, one.there, then.get(base.name)))
        if way is not None:
            found.append(way)
            problems += way.problems
    return _TableReversals(tuple(found), tuple(problems))


def _known(
    session: EnvironmentSession, met: ComparedTable, there: Table, then: Snapshot | None
) -> ReconcileContext:
    metadata = (session.catalog.metadata_json(there.name) or {}) if met.base.refs else {}
    return ReconcileContext(
        name=met.base.name,
        declared=session.names.declared(there.name),
        machines=server_managed_predicate(session.catalog.capabilities),
        snapshots=frozenset(s["snapshot-id"] for s in metadata.get("snapshots") or ()),
        then=then,
    )


def _gone(met: ComparedTable, declared: TableName) -> PlanProblem:
    if met.stranger is not None:
        return PlanProblem(
            "table-gone",
            declared,
            ("name",),
            f"cannot restore `{declared}`: another table has its name",
            f"`icemigrate repair --adopt {declared}` records that table; or move it away, and register "
            "the last metadata file of the recorded table again (`CALL … system.register_table`)",
        )
    return PlanProblem(
        "table-gone",
        declared,
        ("name",),
        f"cannot restore `{declared}`: the catalog has no such table",
        "register its last metadata file again (`CALL … system.register_table`), or declare "
        "with `drift --accept` that it is gone",
    )


def _taken(met: ComparedTable, declared: TableName) -> PlanProblem:
    assert met.there is not None, "it is there, under another name"
    return PlanProblem(
        "table-exists",
        declared,
        ("name",),
        f"cannot restore the name of `{declared}`: the table is now `{met.there.name}`, and "
        "another table has the name",
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
                MISSING_CONSENT,
                f"`{hazard.scope}`: {hazard.reason}",
                None,
                f'to consent, pass --allow "{hazard.kind.value} {hazard.scope}"',
            )


def _located(problem: PlanProblem) -> str:
    """A problem with its table, because it has no position in a file."""
    table = str(problem.table)
    return problem.message if f"`{table}`" in problem.message else f"{table}: {problem.message}"
