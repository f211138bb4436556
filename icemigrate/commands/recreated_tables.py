"""``repair --adopt``: tables that another client dropped and created again, recorded as they are now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.commands.compared_tables import compare_recorded_tables, require_readable
from icemigrate.commands.history_corrections import correct_history, locked_for_repair
from icemigrate.errors import ConflictError
from icemigrate.execution.command_record import command_record
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.recorded_versions import blocking_intent
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, owner_of
from icemigrate.planning.drift.recreated_table import bound_to_recreated
from icemigrate.project import Project
from icemigrate.results.command_results import AdoptedTable, RepairResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal, LockedJournal


class _Recreated(Frozen):
    """A recorded table and the one that has its name now."""

    recorded: Table
    current: Table

    @property
    def result(self) -> AdoptedTable:
        assert self.current.uuid is not None
        return AdoptedTable(str(self.recorded.name), self.recorded.uuid or "", self.current.uuid)


def adopt_recreated(
    project: Project,
    environment: str | None = None,
    tables: Sequence[str] = (),
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RepairResult:
    """Record the tables that have the names of recorded ones which are gone.

    Writes only the history.  Migrations of the earlier tables cannot be rolled back on the new ones.  A table
    that is still the recorded one is passed over, so that a schedule can repeat the call.

    :param tables: declared names.
    :param on_start: called before Spark is started, which only happens where there is something to record.
    :raises UsageError: there is no such environment or recorded table.
    :raises ConflictError: a table cannot be adopted; nothing was recorded.
    :raises LockHeld: another process held the lock until the timeout.
    :raises HistoryError: the history cannot be used.
    """
    with open_environment(project, environment) as session:
        done: tuple[AdoptedTable, ...] = ()
        if find_recreated(session, session.history(), tables):
            record = partial(record_recreated, session, tables)
            done = correct_history(session, record, spark, on_start, lock_timeout_s)
        return RepairResult(project.name, session.environment.name, adopted=done, action="adopt")


def record_recreated(
    session: EnvironmentSession, tables: Sequence[str], journal: Journal
) -> tuple[AdoptedTable, ...]:
    """Look again under the lock, and record.

    :raises ConflictError: as :func:`adopt_recreated`.
    :raises LockHeld: as :func:`adopt_recreated`.
    """
    with locked_for_repair(journal) as held:
        found = find_recreated(session, held.history(), tables)
        records = [_record(session, held, one) for one in found]
        if records:
            held.supersede(records, lambda history: with_recreated(history, found))
    return tuple(one.result for one in found)


def find_recreated(session: EnvironmentSession, history: History, tables: Sequence[str]) -> list[_Recreated]:
    """The tables that were created again, of those that are named.

    :raises UsageError: no such table is recorded.
    :raises MetadataError: one of them cannot be read.
    :raises ConflictError: one of them is gone, was renamed, belongs to another project, or an interrupted
        migration changes it.
    """
    found = []
    every = compare_recorded_tables(session, history, tables)
    require_readable(every)
    for compared in every:
        declared = session.names.declared(compared.base.name)
        recorded, current = history.state.tables[declared], compared.stranger
        if current is None and compared.there is not None and not compared.is_renamed:
            continue
        if compared.there is not None:
            raise ConflictError(
                f"`{declared}` was not dropped: the recorded table is now `{compared.there.name}`",
                "rename it back, or drop it first",
            )
        if current is None:
            raise ConflictError(
                f"`{declared}` cannot be adopted: the catalog has no table `{compared.base.name}`",
                "create the table; or declare with `drift --accept` that it is gone",
            )
        if owner_of(current) not in (None, session.project.name):
            raise ConflictError(
                f"`{declared}` cannot be adopted: it belongs to project `{owner_of(current)}`",
                f"change it in project `{owner_of(current)}`",
            )
        intent = blocking_intent(history.intents, None, [str(declared)])
        if intent is not None:
            raise ConflictError(
                f"`{declared}` cannot be adopted: `{intent.command}` of {intent.version} was interrupted",
                "`icemigrate rollback` ends it",
            )
        found.append(_Recreated(recorded, current))
    return found


def with_recreated(history: History, found: Sequence[_Recreated]) -> History:
    """The history with these tables bound to the ones that have their names now."""
    return with_bound_tables(history, {one.recorded.name: one.current for one in found})


def with_bound_tables(history: History, current: Mapping[TableName, Table]) -> History:
    """The history with recorded tables bound to others.

    :param current: by declared name.
    """
    bound = {name: bound_to_recreated(history.state.tables[name], table) for name, table in current.items()}
    return replace(history, state=replace(history.state, tables={**history.state.tables, **bound}))


def _record(session: EnvironmentSession, held: LockedJournal, one: _Recreated) -> HistoryRecord:
    return command_record(
        session,
        held,
        "repair",
        RunOutcome.REPAIRED,
        f"Adopt {one.recorded.name}, which was created again",
        tables=(str(one.current.name),),
        message=f"table {one.current.uuid} takes the place of table {one.recorded.uuid}",
    )
