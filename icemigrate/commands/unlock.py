"""The project's lock: shows its holder, and removes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from icemigrate import versions
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.execution.engine_choice import history_engine
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.spark_start import engine_of
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.recorded_versions import Intent
from icemigrate.planning.plan import Direction
from icemigrate.project import Project
from icemigrate.render.display import timestamp_text
from icemigrate.results.status_results import LockStatus, UnlockResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lock_status(history: History) -> LockStatus | None:
    """The holder of the lock; ``None`` while no process holds it."""
    lock = history.lock
    if lock is None:
        return None
    return LockStatus(
        user=lock.user,
        host=lock.host,
        pid=lock.pid,
        since=lock.since,
        seen_at=lock.seen_at,
        action=lock.action,
        step=lock.step,
        words=lock.words(),
    )


def interruption_notes(history: History) -> tuple[Diagnostic, ...]:
    """Notes of a plan about running and interrupted migrations."""
    found = []
    if history.lock is not None:
        found.append(
            Diagnostic(
                "lock-held",
                f"the lock is held by {history.lock.words()}",
                hint="`apply` waits for it; the plan can be different by then",
                severity=Severity.NOTE,
            )
        )
    for intent in interrupted_intents(history):
        found.append(
            Diagnostic(
                "interrupted",
                f"{intent.version} was interrupted ({intent.command} by {intent.user} on {intent.host})",
                hint=_next_step(intent),
                severity=Severity.WARNING,
            )
        )
    return tuple(found)


def interruption_text(intent: Intent) -> str:
    """Which run of a version was interrupted, and what finishes it."""
    began = timestamp_text(intent.started_at)
    run = f"`{intent.command}` by {intent.user} on {intent.host} began at {began}, and was interrupted"
    return f"{run}; {_next_step(intent)}"


def _next_step(intent: Intent) -> str:
    is_apply = intent.direction is Direction.APPLY
    ways = (
        "`icemigrate apply` finishes it, `icemigrate rollback` undoes it"
        if is_apply
        else "`icemigrate rollback` finishes it"
    )
    return f"{ways}; other migrations of {', '.join(intent.tables)} wait until then"


def interrupted_intents(history: History) -> tuple[Intent, ...]:
    """The intents of runs that ended without an outcome, without a running one."""
    running = None if history.lock is None else history.lock.run
    return tuple(intent for intent in history.intents if intent.run != running)


def unfinished_run_texts(history: History) -> tuple[str, ...]:
    """Each version with an intent and without an outcome, with its command.

    Until a lease has run out, an interrupted run looks like a running one.
    """
    return tuple(f"{intent.version} ({intent.command})" for intent in history.intents)


def unlock(
    project: Project,
    environment: str | None = None,
    *,
    approve: Callable[[LockStatus], bool] = lambda lock: True,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> UnlockResult:
    """Remove the lock from its holder; the history gets a row of it.

    A lock with entries that cannot be read is removed too.

    :param approve: called with the holder; ``False`` keeps the lock.
    :param on_start: called before Spark is started, which only happens where Python cannot write the history.
    :raises LockHeld: the holder renewed it meanwhile, so it is alive.
    :raises HistoryError: the history cannot be used.
    """
    from icemigrate.execution.environment_session import current_operator

    with open_environment(project, environment) as session:
        history = session.history(accepts_damaged_lock=True)
        held = lock_status(history)
        if held is None or not approve(held):
            return UnlockResult(project.name, session.environment.name, held, taken=False)
        engine = history_engine(session, spark, lambda: engine_of(session, spark, on_start))
        now, by = datetime.now(timezone.utc), current_operator()
        assert history.lock is not None
        record = HistoryRecord(
            version=None,
            description="",
            checksum="",
            project=project.name,
            environment=session.environment.name,
            outcome=RunOutcome.UNLOCKED,
            started_at=now,
            finished_at=now,
            user=by.user,
            host=by.host,
            tool_version=versions.ICEMIGRATE,
            message=f"released the lock of {held.words}",
            action="unlock",
            run=history.lock.run,
        )
        open_journal(session, engine).unlock(history.head, record)
        return UnlockResult(project.name, session.environment.name, held, taken=True)
