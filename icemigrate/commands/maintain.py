"""``maintain``: plans the actions of retention, and runs them under the project's lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from icemigrate.commands.unlock import unfinished_run_texts
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.execution.command_record import command_record
from icemigrate.execution.connect_start import open_connect_engine, uses_connect
from icemigrate.execution.engine_choice import maintenance_engine
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.spark_start import LazySpark
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.retention import LEAST_ORPHAN_AGE, format_duration
from icemigrate.maintenance.context import (
    JVM_PARTS,
    NO_JVM,
    ActionOrSkipped,
    ActionSkipped,
    MaintenanceAction,
    MaintenanceContext,
)
from icemigrate.maintenance.expired_views import find_expired_views
from icemigrate.maintenance.old_schemas import find_old_schemas
from icemigrate.maintenance.retention_actions import (
    find_expired_rows,
    find_expiring_snapshots,
    find_orphan_files,
)
from icemigrate.maintenance.trash import find_expired_trash
from icemigrate.project import Project
from icemigrate.project.project_values import NO_SETTING
from icemigrate.results.maintain_results import ActionSummary, MaintainResult, SkippedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.execution.signals import StopRequest
    from icemigrate.history.journal import LockedJournal
    from icemigrate.spark.commit_ports import CommittingEngine

MAINTENANCE_PARTS = ("trash", "snapshots", "rows", "schemas", "views", "orphans")
DEFAULT_PARTS = ("trash", "snapshots", "rows", "schemas", "views")
"""The declared retention, and old schemas."""

ActionCallback: TypeAlias = Callable[[str, str], None]


class MaintenancePlan(Frozen):
    """The actions of maintenance.

    :param result: the result that a user sees.
    """

    result: MaintainResult
    acts: tuple[MaintenanceAction, ...]
    older_than: timedelta = timedelta()


def least_orphan_age(project: Project) -> timedelta:
    """The minimum age of orphan files: three days, or more by the project's IM204."""
    from icemigrate.rules import im204_orphans_too_young

    said = project.rules.get(im204_orphans_too_young.RULE.id, NO_SETTING).options.get("at_least")
    return timedelta(milliseconds=max(LEAST_ORPHAN_AGE, said if isinstance(said, int) else 0))


def plan_maintenance(
    project: Project,
    environment: str | None = None,
    *,
    parts: Iterable[str] = DEFAULT_PARTS,
    older_than: timedelta | None = None,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> MaintenancePlan:
    """Plan the actions of retention; changes nothing.

    Spark is started only where manifests or folders must be read: for rows and for orphans.

    :param parts: of :data:`MAINTENANCE_PARTS`.
    :param older_than: age of orphan files; ``None`` for the minimum.
    :raises UsageError: there is no such environment or part, or the age of orphans is too low.
    :raises CatalogError: the catalog cannot be read.
    :raises MetadataError: the files of a table that could share files with another cannot be located.
    :raises HistoryError: the history cannot be used.
    """
    chosen = tuple(part for part in MAINTENANCE_PARTS if part in set(parts))
    if unknown := sorted(set(parts) - set(MAINTENANCE_PARTS)):
        raise UsageError(
            f"there is no maintenance part `{unknown[0]}`", f"use {', '.join(MAINTENANCE_PARTS)}"
        )
    least = least_orphan_age(project)
    if older_than is None:
        older_than = least
    elif older_than < least:
        shown = format_duration(least // timedelta(milliseconds=1))
        raise UsageError(
            f"files younger than {shown} cannot be removed as orphans",
            "they can belong to a write that is still running",
        )
    with open_environment(project, environment) as environment_session:
        at = datetime.now(timezone.utc)
        return _plan(
            environment_session,
            environment_session.history(),
            at,
            chosen,
            older_than,
            _reading_engine(environment_session, spark, on_start),
            not uses_connect(environment_session.environment, spark),
        )


def maintain(
    project: Project,
    plan: MaintenancePlan,
    *,
    spark: SparkSession | None = None,
    on_act: ActionCallback = lambda part, table: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> MaintainResult:
    """Run the actions of :func:`plan_maintenance`, under the project's lock.

    Everything is planned again first.  Actions that are no longer due, or would remove more than was shown,
    are skipped, and no new ones are added; refused actions are those of the new plan.

    Each action is independent: if one fails, or the process dies, the earlier ones stay.

    :param on_act: called before each action.
    :raises LockHeld: another process held the lock until the timeout.
    :raises Stopped: the user asked to stop; earlier actions are recorded.
    :raises EngineError: Java, Spark or an action failed.
    """
    from icemigrate.execution.environment_session import current_operator
    from icemigrate.execution.fencing import fence_interrupted_migrations
    from icemigrate.execution.signals import watch_stop_signals

    result = plan.result
    if not plan.acts:
        return replace(result, done=True)
    with open_environment(project, result.environment) as environment_session:
        engine = maintenance_engine(environment_session, spark, on_start)
        by = current_operator()
        clock = time.monotonic()
        with (
            watch_stop_signals() as stop,
            open_journal(environment_session, engine, lock_timeout_s).hold_lock(
                "maintain", by.user, by.host, wait=stop.wait
            ) as held,
            fence_interrupted_migrations(engine, held),
        ):
            stop.check()
            has_jvm = not uses_connect(environment_session.environment, spark)
            now = _again(environment_session, plan, held.history(), engine, has_jvm)
            due, passed = still_due(plan.acts, now.acts)
            _announce(held, due)
            done: list[ActionSummary] = []
            for part in result.parts:
                mine = [act for act in due if act.shown.part == part]
                now_done, skipped = _part(environment_session, held, part, mine, engine, stop, on_act)
                done, passed = [*done, *now_done], (*passed, *skipped)
        elapsed = round((time.monotonic() - clock) * 1000)
        return replace(now.result, acts=tuple(done), done=True, elapsed_ms=elapsed, notes=passed)


def _reading_engine(
    environment_session: EnvironmentSession, spark: SparkSession | None, on_start: Callable[[], None]
) -> Callable[[], CommittingEngine]:
    """What gives Spark for a plan, on first access."""
    if uses_connect(environment_session.environment, spark):
        return cache(lambda: open_connect_engine(environment_session, spark, on_start))
    return LazySpark(environment_session, spark, on_start)


def _announce(held: LockedJournal, due: Sequence[MaintenanceAction]) -> None:
    """Write the tables of all actions to the lock before the first one: a process that takes it over fences
    them.
    """
    if due:
        held.may_change(str(name) for act in due for name in act.names(held.run))
        held.lock.write("step")


def _again(
    environment_session: EnvironmentSession,
    plan: MaintenancePlan,
    history: History,
    engine: CommittingEngine,
    has_jvm: bool,
) -> MaintenancePlan:
    """The actions that are due now, for the time of the first plan."""
    result = plan.result
    return _plan(
        environment_session,
        history,
        result.at,
        result.parts,
        plan.older_than,
        lambda: engine,
        has_jvm,
    )


def still_due(
    shown: Iterable[MaintenanceAction], now: Iterable[MaintenanceAction]
) -> tuple[tuple[MaintenanceAction, ...], tuple[str, ...]]:
    """The shown actions that are still due, and a note about each of the others."""
    by_key = {act.key: act for act in now}
    due, passed = [], []
    for act in shown:
        fresh = by_key.get(act.key)
        if fresh is None:
            passed.append(f"{act.name}: `{act.shown.part}` has nothing to do any more")
        elif more := [text for text in fresh.shown.consequences if text not in act.shown.consequences]:
            passed.append(
                f"{act.name}: {act.shown.part} would now lose more than was shown: {'; '.join(more)}"
            )
        elif not fresh.snapshots <= act.snapshots:
            passed.append(f"{act.name}: more snapshots would now expire than were shown")
        elif not fresh.schemas <= act.schemas:
            passed.append(f"{act.name}: more schemas would now be removed than were shown")
        elif not fresh.views <= act.views:
            passed.append(f"{act.name}: more views would now be dropped than were shown")
        else:
            due.append(fresh)
    return tuple(due), tuple(passed)


def _plan(
    environment_session: EnvironmentSession,
    history: History,
    at: datetime,
    parts: Sequence[str],
    older_than: timedelta,
    engine: Callable[[], CommittingEngine],
    has_jvm: bool,
) -> MaintenancePlan:
    look = MaintenanceContext(environment_session, history, at, engine, has_jvm)
    found = list(_find_actions(look, parts, older_than))
    if not has_jvm:
        is_rest = environment_session.catalog.settings.type == "rest"
        parts_of_jvm = JVM_PARTS | {"schemas"} if is_rest else JVM_PARTS
        found = [_without_jvm(one, parts_of_jvm) for one in found]
    acts = tuple(one for one in found if isinstance(one, MaintenanceAction))
    kept = {(k.table, k.reason): k for k in reversed(found) if isinstance(k, SkippedTable)}
    result = MaintainResult(
        project=environment_session.project.name,
        environment=environment_session.environment.name,
        parts=tuple(parts),
        at=at,
        acts=tuple(act.shown for act in acts),
        kept=tuple(reversed(kept.values())),
        interrupted=unfinished_run_texts(history),
    )
    return MaintenancePlan(result, acts, older_than)


def _without_jvm(one: ActionOrSkipped, parts: Container[str]) -> ActionOrSkipped:
    """The action; refused where it is of a part that needs Iceberg's Java library."""
    if isinstance(one, MaintenanceAction) and one.shown.part in parts:
        return SkippedTable(one.shown.part, one.shown.table, NO_JVM, is_refused=True)
    return one


def _find_actions(
    look: MaintenanceContext, parts: Sequence[str], older_than: timedelta
) -> Iterator[ActionOrSkipped]:
    if "trash" in parts:
        yield from find_expired_trash(look, look.session.project.trash_max_age)
    expiring: dict[TableName, frozenset[int]] = {}
    if "snapshots" in parts:
        for one in find_expiring_snapshots(look):
            if isinstance(one, MaintenanceAction):
                expiring[one.name] = one.snapshots
            yield one
    if "rows" in parts:
        yield from find_expired_rows(look)
    if "schemas" in parts:
        yield from find_old_schemas(look, expiring)
    if "views" in parts:
        yield from find_expired_views(look)
    if "orphans" in parts:
        yield from find_orphan_files(look, older_than)


def _part(
    environment_session: EnvironmentSession,
    held: LockedJournal,
    part: str,
    acts: Sequence[MaintenanceAction],
    engine: CommittingEngine,
    stop: StopRequest,
    on_act: ActionCallback,
) -> tuple[list[ActionSummary], list[str]]:
    """Run the actions of one part, and record the finished ones, also where the next one fails.

    Returns them, and a note about each one that did nothing.

    After a ``KeyboardInterrupt``, from the second Ctrl-C, nothing is recorded: a call to the JVM may be
    interrupted, so this thread makes no more calls.
    """
    from icemigrate.execution.recovery import cause_of

    started = datetime.now(timezone.utc)
    done, skipped = list[ActionSummary](), list[str]()

    def record() -> None:
        if done:
            held.supersede([_record(environment_session, held, part, done, started)], lambda history: history)

    try:
        for act in acts:
            stop.check()
            held.step(f"{part}: {act.name}")
            on_act(part, str(act.name))
            try:
                done.append(replace(act.shown, outcome=act.run(engine)))
            except ActionSkipped as error:
                skipped.append(f"{act.name}: {error.reason}")
                if error.ends_part:
                    break
    except IcemigrateError as error:
        with suppress(IcemigrateError):  # the user needs the cause of the failure
            record()
        cause = cause_of(error, held)
        if cause is error:
            raise
        raise cause from error
    record()
    return done, skipped


_WORDS = {
    "trash": "emptied the trash of",
    "snapshots": "expired snapshots of",
    "rows": "deleted old rows of",
    "schemas": "removed old schemas of",
    "views": "dropped old views of",
    "orphans": "removed orphan files of",
}


def _record(
    environment_session: EnvironmentSession,
    held: LockedJournal,
    part: str,
    done: Sequence[ActionSummary],
    started: datetime,
) -> HistoryRecord:
    tables = tuple(sorted(act.table for act in done))
    lost = "; ".join(text for act in done for text in act.consequences)
    return command_record(
        environment_session,
        held,
        "maintain",
        RunOutcome.MAINTAINED,
        f"{_WORDS[part]} {', '.join(tables)}",
        started_at=started,
        tables=tables,
        statements=tuple(act.statement for act in done),
        message=lost or None,
    )
