"""``reset``: moves a project's tables to the trash and empties its history, in a disposable environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from icemigrate.errors import StalePlan, UsageError
from icemigrate.execution.command_record import command_record
from icemigrate.execution.engine_choice import maintenance_engine
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.execution.project_journal import open_journal
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_ref_of
from icemigrate.iceberg.table import (
    TRASH_NAMESPACE,
    Table,
    aside_name,
    creator_of,
    owner_of,
    project_of,
    trash_name,
    unique_trash_name,
)
from icemigrate.maintenance.trash import find_trashed_tables
from icemigrate.project import Project
from icemigrate.results.reset_results import ResetResult, ResetTable
from icemigrate.spark.view_statements import drop_kept_view
from icemigrate.spark_sql.identifiers import path_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.execution.signals import StopRequest
    from icemigrate.history.journal import Journal, LockedJournal
    from icemigrate.spark.engine_port import Engine


def plan_reset(project: Project, environment: str | None = None) -> ResetResult:
    """Plan the reset; changes nothing and starts no JVM.

    :raises UsageError: there is no such environment, or it is not disposable.
    :raises CatalogError: the catalog or a table cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with open_environment(project, environment) as session:
        if not session.environment.disposable:
            name = session.environment.name
            raise UsageError(
                f"environment `{name}` is not disposable: `reset` drops its tables",
                f"for an environment without data of value, set `disposable: true` under `{name}` in "
                f"{project.file}",
            )
        return _result(session, session.history())


def reset(
    project: Project,
    plan: ResetResult,
    *,
    spark: SparkSession | None = None,
    on_table: Callable[[str], None] = lambda table: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ResetResult:
    """Run the actions of :func:`plan_reset`; made again under the lock, they must be the same or fewer.

    The history is emptied last: if the process dies before, the next reset does the rest.

    :param on_table: called before each table.
    :raises StalePlan: the project has got more tables.
    :raises LockHeld: another process held the lock until the timeout.
    :raises Stopped: the user asked to stop.
    :raises EngineError: Java, Spark or an action failed.
    """
    from icemigrate.execution.signals import watch_stop_signals

    if plan.is_empty:
        return replace(plan, done=True)
    with open_environment(project, plan.environment) as session:
        engine = maintenance_engine(session, spark, on_start)
        with watch_stop_signals() as stop:
            journal = open_journal(session, engine, lock_timeout_s)
            return run_reset(session, plan, engine, journal, stop, on_table)


def run_reset(
    session: EnvironmentSession,
    plan: ResetResult,
    engine: Engine,
    journal: Journal,
    stop: StopRequest,
    on_table: Callable[[str], None] = lambda table: None,
) -> ResetResult:
    """Run a reset with an engine; as :func:`reset`."""
    from icemigrate.execution.environment_session import current_operator
    from icemigrate.execution.fencing import fence_interrupted_migrations

    by = current_operator()
    clock, started = time.monotonic(), datetime.now(timezone.utc)
    with (
        journal.hold_lock("reset", by.user, by.host, wait=stop.wait) as held,
        fence_interrupted_migrations(engine, held),
    ):
        stop.check()
        history = held.history()
        now = _result(session, history)
        if not set(now.tables) <= set(plan.tables):
            raise StalePlan(
                "the tables of the project have changed since the plan", "run `icemigrate reset` again"
            )
        todo = [table for table in now.tables if table.action != "keep"]
        trashed = _known_in_trash(session, history)
        names = [name for table in todo for name in (table.table, table.trash) if name]
        held.may_change([*names, *(str(name) for pair in trashed.items() for name in pair)])
        held.lock.write("step")
        for table in todo:
            stop.check()
            held.step(f"reset: {table.table}")
            on_table(table.table)
            _run(engine, table, session.project.name)
        for name, new in trashed.items():
            if name != new:
                stop.check()
                held.step(f"reset: {name}")
                engine.rename(name, new)
        moved = {table.trash for table in todo if table.trash}
        record = _record(session, held, now, tuple(sorted(moved | {*map(str, trashed.values())})), started)
        held.supersede([record], lambda history: _emptied(history, session, now))
    return replace(now, done=True, elapsed_ms=round((time.monotonic() - clock) * 1000))


def _run(engine: Engine, table: ResetTable, project: str) -> None:
    name = TableName.parse(table.table)
    there = engine.table(name)
    for view in kept_views({} if there is None else there.properties):
        drop_kept_view(engine, name, view)
    if table.trash is not None:
        engine.rename(name, TableName.parse(table.trash))
        return
    if table.references:
        engine.commit(name, lambda now: _without_references_of(now, project))
    engine.set_owner(name, None)


def _without_references_of(table: Table, project: str) -> Table:
    """The table without the project's branches and tags."""
    kept = {name: ref for name, ref in table.refs.items() if not is_ref_of(name, ref, project)}
    return replace(table, refs=kept)


class _Found(Frozen):
    """A table under a name of the project.

    :param recorded: ``None`` where only an interrupted run used the name.
    """

    recorded: Table | None
    current: Table


def _result(session: EnvironmentSession, history: History) -> ResetResult:
    return ResetResult(
        session.project.name,
        session.environment.name,
        tuple(_action(found, session.project.name) for found in _tables(session, history)),
        len({*(a.version for a in history.applied), *(i.version for i in history.intents)}),
    )


def _tables(session: EnvironmentSession, history: History) -> Iterator[_Found]:
    """The tables that exist under the recorded names, and under those of interrupted runs.

    An interrupted exchange of names leaves a table under the other name, or under the name in between.
    """
    recorded, project = history.state.tables, session.project.name
    by_uuid = {table.uuid: table for table in recorded.values() if table.uuid is not None}
    names = {session.names.table(name): name for name in recorded}
    for intent in history.intents:
        for name in map(TableName.parse, intent.tables):
            there = session.names.table(name)
            names |= {there: name, aside_name(there, project, intent.version.text): name}
    for there, current in sorted(session.catalog.load(sorted(names)).items()):
        name = names[there]
        is_recorded = there == session.names.table(name) and name in recorded
        if current is not None and (is_recorded or owner_of(current) == project):
            yield _Found(by_uuid.get(current.uuid or "", recorded.get(name)), current)


def _action(found: _Found, project: str) -> ResetTable:
    current, recorded = found.current, found.recorded
    name = str(current.name)
    if owner_of(current) not in (None, project):
        return ResetTable(name, "keep", reason=f"it belongs to project `{owner_of(current)}`")
    if recorded is not None and recorded.uuid not in (None, current.uuid):
        return ResetTable(
            name, "keep", reason="another client dropped the recorded table and created this one"
        )
    if project_of(current) != project:
        references = tuple(
            f"{ref.kind.upper()} IF EXISTS {path_sql((ref_name,))}"
            for ref_name, ref in sorted(current.refs.items())
            if is_ref_of(ref_name, ref, project)
        )
        return ResetTable(name, "release", references=references)
    version = (creator_of(current) or "").rpartition("/")[2]
    trash = unique_trash_name(trash_name(current.name, project, version), current.uuid)
    return ResetTable(name, "trash", str(trash))


def _known_in_trash(session: EnvironmentSession, history: History) -> dict[TableName, TableName]:
    """The tables in the trash that the history still knows, and the names that they get.

    `maintain` may purge only recorded ones later.  When a version is applied or rolled back again, it needs
    their names without the uuid.
    """
    names = session.catalog.tables((TRASH_NAMESPACE,))
    tables = [table for table in session.catalog.load(names).values() if table is not None]
    found = find_trashed_tables(history, session.project.name, tables)
    known = [one for one in found if one.is_known]
    return {
        one.table.name: unique_trash_name(one.table.name, one.table.uuid)
        if one.table.name.name.endswith(f"__{one.version}")
        else one.table.name
        for one in known
    }


def _emptied(history: History, session: EnvironmentSession, done: ResetResult) -> History:
    """The history without versions; only its log stays.

    Earlier names of trashed tables stay too: a new table must not get the folder of a trashed one.
    """
    begun = {TableName.parse(name) for intent in history.intents for name in intent.tables}
    present = {t.table for t in done.tables if t.action != "trash"}
    names = {n for n in {*history.state.tables, *begun} if str(session.names.table(n)) not in present}
    state = DeclaredState(former=frozenset({*history.state.former, *names}))
    return History(history.project, state=state, log=history.log)


def _record(
    session: EnvironmentSession,
    held: LockedJournal,
    done: ResetResult,
    trashed: tuple[str, ...],
    started: datetime,
) -> HistoryRecord:
    released = [t.table for t in done.tables if t.action == "release"]
    return command_record(
        session,
        held,
        "reset",
        RunOutcome.RESET,
        "reset: moved the project's tables to the trash and emptied the history",
        started_at=started,
        tables=trashed,
        message=f"released: {', '.join(released)}" if released else None,
    )
