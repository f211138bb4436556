"""``maintain``: what retention asks for, looked at first, and carried out under the project's lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, TypeAlias

from icemigrate import versions
from icemigrate.app.locking import interrupted_words, journal
from icemigrate.app.spark import LazySpark, engine_of
from icemigrate.app.tidying import deleting_rows, expiring_snapshots, removing_orphans
from icemigrate.app.trash import emptying
from icemigrate.app.upkeep import Act, Found, Look
from icemigrate.app.world import Opened, opened
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.history.record import Record
from icemigrate.model.retention import LEAST_ORPHAN_AGE, format_duration
from icemigrate.model.upkeep import Kept, MaintainResult, Upkeep
from icemigrate.project import Project
from icemigrate.project.values import NO_SETTING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.engine.spark import SparkEngine
    from icemigrate.executor.signals import Stop
    from icemigrate.history.journal import Held

PARTS = ("trash", "snapshots", "rows", "orphans")
RETENTION = ("trash", "snapshots", "rows")
"""What is done unless something is chosen: what files declare."""

Told: TypeAlias = Callable[[str, str], None]


class Maintenance(Frozen):
    """What is to be done, and how.

    :param result: how people are told of it.
    """

    result: MaintainResult
    acts: tuple[Act, ...]
    older_than: timedelta = timedelta()


def least_orphan_age(project: Project) -> timedelta:
    """How old files that no table knows must be: three days, or more by the project's IM204."""
    from icemigrate.checks import im204_orphans_too_young

    said = project.rules.get(im204_orphans_too_young.RULE.id, NO_SETTING).options.get("at_least")
    return timedelta(milliseconds=max(LEAST_ORPHAN_AGE, said if isinstance(said, int) else 0))


def plan_maintenance(
    project: Project,
    environment: str | None = None,
    *,
    parts: Iterable[str] = RETENTION,
    older_than: timedelta | None = None,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> Maintenance:
    """Look at what retention asks for; nothing is changed.

    Spark is started only where manifests or folders have to be read: for rows and for orphans.

    :param parts: of :data:`PARTS`.
    :param older_than: how old files that no table knows must be; ``None`` for no more than they have to.
    :raises UsageError: there is no such environment or part, or orphans shall go that are too young.
    :raises CatalogError: the catalog cannot be read.
    :raises MetadataError: of a table that could share files with another nobody can tell where they are.
    :raises HistoryError: the history cannot be used.
    """
    chosen = tuple(part for part in PARTS if part in set(parts))
    if unknown := sorted(set(parts) - set(PARTS)):
        raise UsageError(f"there is nothing called {unknown[0]} to maintain", f"known are {', '.join(PARTS)}")
    least = least_orphan_age(project)
    if older_than is None:
        older_than = least
    elif older_than < least:
        shown = format_duration(least // timedelta(milliseconds=1))
        raise UsageError(
            f"files that are younger than {shown} are no orphans yet",
            "they may belong to a write that goes on",
        )
    with opened(project, environment) as world:
        at = datetime.now(timezone.utc)
        return _plan(world, world.history(), at, chosen, older_than, LazySpark(world, spark, on_start))


def maintain(
    project: Project,
    plan: Maintenance,
    *,
    spark: SparkSession | None = None,
    on_act: Told = lambda part, table: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> MaintainResult:
    """Carry out what :func:`plan_maintenance` found, under the project's lock.

    All is looked at again first.  What is not to be done any more, or would cost more than was shown, is
    passed over, and nothing else is done; what is refused is as of then.
    Each act stands on its own: one that fails, or a process that dies, leaves those before it done.

    :param on_act: told of each act before it.
    :raises LockHeld: somebody else held the lock all the while.
    :raises Stopped: the user asked to stop; what was done before is recorded.
    :raises EngineError: Java, Spark or an act failed.
    """
    from icemigrate.executor import operator
    from icemigrate.executor.fencing import guarded
    from icemigrate.executor.signals import heard

    result = plan.result
    if not plan.acts:
        return replace(result, done=True)
    with opened(project, result.environment) as world:
        engine = engine_of(world, spark, on_start)
        by = operator()
        clock = time.monotonic()
        with (
            heard() as stop,
            journal(world, engine, lock_timeout_s).held("maintain", by.user, by.host, wait=stop.wait) as held,
            guarded(engine, held),
        ):
            stop.check()
            now = _again(world, plan, held.history(), engine)
            due, passed = still_due(plan.acts, now.acts)
            done: list[Upkeep] = []
            for part in result.parts:
                mine = [act for act in due if act.shown.part == part]
                done += _part(world, held, part, mine, engine, stop, on_act)
        elapsed = round((time.monotonic() - clock) * 1000)
        return replace(now.result, acts=tuple(done), done=True, elapsed_ms=elapsed, notes=passed)


def _again(world: Opened, plan: Maintenance, history: History, engine: SparkEngine) -> Maintenance:
    """What is to be done by now, as of the same moment."""
    result = plan.result
    spark = LazySpark(world, None, lambda: None, engine)
    return _plan(world, history, result.at, result.parts, plan.older_than, spark)


def still_due(shown: Iterable[Act], now: Iterable[Act]) -> tuple[tuple[Act, ...], tuple[str, ...]]:
    """What was shown and may still be done as it is now, and a note on each of the others."""
    by_key = {act.key: act for act in now}
    due, passed = [], []
    for act in shown:
        fresh = by_key.get(act.key)
        if fresh is None:
            passed.append(f"{act.name}: {act.shown.part} is not to be done any more")
        elif more := [text for text in fresh.shown.consequences if text not in act.shown.consequences]:
            passed.append(f"{act.name}: {act.shown.part} would cost more than was shown: {'; '.join(more)}")
        else:
            due.append(fresh)
    return tuple(due), tuple(passed)


def _plan(
    world: Opened,
    history: History,
    at: datetime,
    parts: Sequence[str],
    older_than: timedelta,
    spark: LazySpark,
) -> Maintenance:
    found = list(_found(Look(world, history, at, spark), parts, older_than))
    acts = tuple(one for one in found if isinstance(one, Act))
    kept = {(k.table, k.reason): k for k in reversed(found) if isinstance(k, Kept)}
    result = MaintainResult(
        project=world.project.name,
        environment=world.environment.name,
        parts=tuple(parts),
        at=at,
        acts=tuple(act.shown for act in acts),
        kept=tuple(reversed(kept.values())),
        interrupted=interrupted_words(history),
    )
    return Maintenance(result, acts, older_than)


def _found(look: Look, parts: Sequence[str], older_than: timedelta) -> Iterator[Found]:
    if "trash" in parts:
        yield from emptying(look, look.world.project.trash_max_age)
    if "snapshots" in parts:
        yield from expiring_snapshots(look)
    if "rows" in parts:
        yield from deleting_rows(look)
    if "orphans" in parts:
        yield from removing_orphans(look, older_than)


def _part(
    world: Opened,
    held: Held,
    part: str,
    acts: Sequence[Act],
    engine: SparkEngine,
    stop: Stop,
    on_act: Told,
) -> list[Upkeep]:
    """Do the acts of one part, and record those that were done, also where the next one fails.

    After a ``KeyboardInterrupt``, which the second Ctrl-C is, nothing is recorded: a call to the JVM may be
    torn apart, so nothing more is asked of it from this thread.
    """
    started = datetime.now(timezone.utc)
    done: list[Upkeep] = []

    def record() -> None:
        if done:
            held.supersede([_record(world, held, part, done, started)], lambda history: history)

    try:
        for act in acts:
            stop.check()
            held.step(f"{part}: {act.name}")
            on_act(part, str(act.name))
            done.append(replace(act.shown, outcome=act.run(engine)))
    except IcemigrateError:
        with suppress(IcemigrateError):  # why the act failed is what people have to know
            record()
        raise
    record()
    return done


_WORDS = {
    "trash": "emptied the trash of",
    "snapshots": "expired snapshots of",
    "rows": "deleted old rows of",
    "orphans": "removed orphan files of",
}


def _record(world: Opened, held: Held, part: str, done: Sequence[Upkeep], started: datetime) -> Record:
    tables = tuple(sorted(act.table for act in done))
    lost = "; ".join(text for act in done for text in act.consequences)
    return Record(
        version=None,
        description=f"{_WORDS[part]} {', '.join(tables)}",
        checksum="",
        project=world.project.name,
        environment=world.environment.name,
        outcome="maintained",
        started_at=started,
        finished_at=datetime.now(timezone.utc),
        user=held.lock.mine.user,
        host=held.lock.mine.host,
        tool_version=versions.ICEMIGRATE,
        tables=tables,
        statements=tuple(act.statement for act in done),
        message=lost or None,
        action="maintain",
        run=held.run,
    )
