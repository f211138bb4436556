"""Renames that ran after the lock was lost, taken back.

No catalog has a compare-and-swap for a rename, so no fence refuses one.  A process that is paused right
before it, and replaced, renames a table that the other process has left where the history says.  When the
first process notices that the lock is lost, it takes the lock again, and moves the table back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from icemigrate.declare.version import Version
from icemigrate.engine.port import Engine
from icemigrate.errors import IcemigrateError
from icemigrate.events import Event, Noted
from icemigrate.executor.faults import Interrupted
from icemigrate.executor.fencing import guarded
from icemigrate.executor.means import Operator
from icemigrate.frozen import Frozen
from icemigrate.history.journal import Journal
from icemigrate.history.properties import History
from icemigrate.model.makers import made_by, maker_of, trash_name
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.plan import Direction


class Replaced(Frozen):
    """A run during which the lock was lost.

    :param undo: the tables on which it had begun, before and after the run.
    :param direction: of the run; a rollback begins where the version is applied.
    """

    undo: UndoRecord
    direction: Direction


class Renamed(Frozen):
    """A table that has a name which the history does not say, and the one that it says."""

    belongs: TableName
    late: TableName


@contextmanager
def taking_back(
    engine: Engine, journal: Journal, action: str, by: Operator, on_event: Callable[[Event], None]
) -> Iterator[list[Replaced]]:
    """A block around the lock: where the lock is lost in it, late renames are taken back under the lock.

    :yields: takes the runs during which the lock was lost.
    """
    lost: list[Replaced] = []
    try:
        yield lost
    except Interrupted:
        # The user has to see this failure; whatever comes of the renames is no other one.
        with suppress(IcemigrateError):
            for run in lost:
                _take_back(engine, journal, action, by, run, on_event)
        raise


def _take_back(
    engine: Engine,
    journal: Journal,
    action: str,
    by: Operator,
    run: Replaced,
    on_event: Callable[[Event], None],
) -> None:
    project = journal.writer.project
    if not any(_misplaced(engine, journal.writer.read(), project, run)):
        return  # the lock stays with those who need it
    with journal.held(action, by.user, by.host) as held, guarded(engine, held):
        for one in _misplaced(engine, held.history(), project, run):
            engine.rename(one.late, one.belongs)
            text = f"renamed back to `{one.belongs}`: the lock was lost before the rename"
            on_event(Noted(run.undo.version, one.late, text))


def _misplaced(engine: Engine, history: History, project: str, run: Replaced) -> Iterator[Renamed]:
    """The tables of a version that are not where the history says.

    A version that is still interrupted has none: the run that continues it looks for its tables under both
    names.
    """
    undo, version = run.undo, Version.parse(run.undo.version)
    if any(intent.version == version for intent in history.intents):
        return
    applied = history.of(version)
    is_applied = applied is not None and applied.standing == "applied"
    is_done = is_applied == (run.direction is Direction.APPLY)
    for table in undo.tables:
        before, after = _names(table, project, undo.version)
        belongs, late = (after, before) if is_done else (before, after)
        if belongs == late or engine.table(belongs) is not None:
            continue
        found = engine.table(late)
        if found is not None and _is_same(table, found, project, undo.version):
            yield Renamed(belongs, late)


def _names(undo: TableUndo, project: str, version: str) -> tuple[TableName, TableName]:
    """The names of a table in the catalog before the run and after it."""
    if undo.actual_before is None:
        assert undo.actual_after is not None, "a table is there before a migration or after it"
        made = undo.actual_after.name
        return trash_name(made, project, version), made
    before = undo.actual_before.name
    after = undo.trash if undo.actual_after is None else undo.actual_after.name
    return before, before if after is None else after


def _is_same(undo: TableUndo, found: Table, project: str, version: str) -> bool:
    if undo.actual_before is None:
        return maker_of(found) == made_by(project, version)
    return undo.actual_before.uuid is not None and found.uuid == undo.actual_before.uuid
