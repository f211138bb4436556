"""The project's lock: who holds it, and taking it away."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from icemigrate import versions
from icemigrate.app.spark import engine_of
from icemigrate.app.world import Opened, opened
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import UsageError
from icemigrate.history.intent import Intent
from icemigrate.history.journal import TIMEOUT_S, Journal
from icemigrate.history.lock import LEASE_S
from icemigrate.history.properties import History
from icemigrate.history.record import Record
from icemigrate.history.write import HistoryWriter
from icemigrate.plan import Direction
from icemigrate.project import Project
from icemigrate.status_results import LockStatus, UnlockResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.engine.spark import SparkEngine

LEASE_VARIABLE = "ICEMIGRATE_LOCK_LEASE"
"""Seconds after which a silent holder of the lock is taken for gone."""


def journal(world: Opened, engine: SparkEngine, timeout_s: float | None = None) -> Journal:
    """The journal of a project in an environment.

    :param timeout_s: how long to wait for somebody else's lock.
    :raises UsageError: the lease in the environment is no number of seconds.
    """
    writer = HistoryWriter(engine, world.history_name, world.project.name)
    return Journal(writer, _lease_s(), TIMEOUT_S if timeout_s is None else timeout_s)


def _lease_s() -> float:
    text = os.environ.get(LEASE_VARIABLE)
    if text is None:
        return LEASE_S
    try:
        lease = float(text)
    except ValueError:
        lease = 0.0
    if not 0 < lease < float("inf"):
        raise UsageError(
            f"{LEASE_VARIABLE} is {text!r}, not a number of seconds", f"the default is {LEASE_S:g}"
        )
    return lease


def lock_status(history: History) -> LockStatus | None:
    """Who holds the lock; ``None`` where nobody does."""
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


def notes(history: History) -> tuple[Diagnostic, ...]:
    """What whoever plans should know of what is going on, or was broken off."""
    found = []
    if history.lock is not None:
        found.append(
            Diagnostic(
                "lock-held",
                f"the lock is held by {history.lock.words()}",
                hint="`apply` waits for it; the plan may be another one by then",
                severity=Severity.NOTE,
            )
        )
    for intent in interrupted(history):
        is_apply = intent.direction is Direction.APPLY
        ways = "`apply` finishes it, `rollback` undoes it" if is_apply else "`rollback` finishes undoing it"
        found.append(
            Diagnostic(
                "interrupted",
                f"{intent.version} was interrupted ({intent.command} by {intent.user} on {intent.host})",
                hint=f"{ways}; other migrations of {', '.join(intent.tables)} wait until then",
                severity=Severity.WARNING,
            )
        )
    return tuple(found)


def interrupted(history: History) -> tuple[Intent, ...]:
    """The runs that began with a version and ended without an outcome; one that goes on just now is none."""
    running = None if history.lock is None else history.lock.run
    return tuple(intent for intent in history.intents if intent.run != running)


def interrupted_words(history: History) -> tuple[str, ...]:
    """Each version that is begun and has no outcome, with its command; as long as a lease may run, nobody can
    tell whether it was interrupted."""
    return tuple(f"{intent.version} ({intent.command})" for intent in history.intents)


def unlock(
    project: Project,
    environment: str | None = None,
    *,
    approve: Callable[[LockStatus], bool] = lambda lock: True,
    spark: SparkSession | None = None,
) -> UnlockResult:
    """Take the lock away from whoever holds it; the history keeps a row of it.

    :param approve: shown who holds it, before Spark is started; ``False`` leaves it with him.
    :raises LockHeld: the holder renewed it meanwhile, so he is alive.
    :raises HistoryError: the history cannot be used.
    """
    from icemigrate.executor import operator

    with opened(project, environment) as world:
        history = world.history()
        held = lock_status(history)
        if held is None or not approve(held):
            return UnlockResult(project.name, world.environment.name, held, taken=False)
        engine = engine_of(world, spark)
        now, by = datetime.now(timezone.utc), operator()
        assert history.lock is not None
        record = Record(
            version=None,
            description="",
            checksum="",
            project=project.name,
            environment=world.environment.name,
            outcome="unlocked",
            started_at=now,
            finished_at=now,
            user=by.user,
            host=by.host,
            tool_version=versions.ICEMIGRATE,
            message=f"the lock was taken away from {held.words}",
            action="unlock",
            run=history.lock.run,
        )
        journal(world, engine).unlock(history.head, record)
        return UnlockResult(project.name, world.environment.name, held, taken=True)
