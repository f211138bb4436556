"""Fences of a new holder of the lock: no process that held it before may change a table.

No catalog has a compare-and-swap for a rename, so no fence refuses one.  A process that is paused right
before a rename and replaced renames the table when it resumes.  When it notices that the lock is lost, it
takes the lock again and renames the table back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from icemigrate.errors import IcemigrateError, LockLost
from icemigrate.events import Event, NoteAdded
from icemigrate.execution.environment_session import Operator
from icemigrate.execution.failures import Interrupted
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History
from icemigrate.history.journal import Journal, LockedJournal
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, aside_name, creator_of, made_by, trash_name
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import RECONCILE_VERSION, Direction
from icemigrate.spark.commit_fence import Fence
from icemigrate.spark.engine_port import Engine


@contextmanager
def fence_interrupted_migrations(engine: Engine, held: LockedJournal) -> Iterator[None]:
    """A block in which the holder of the lock changes tables, after fencing interrupted migrations.

    :raises LockLost: this process does not hold the lock any more.
    """
    with engine.guarded(_guard(engine, held)):
        gone = () if held.previous_holder is None else held.previous_holder.tables
        names_of_gone = frozenset(map(TableName.parse, gone))
        try:
            for version, names in (*_interrupted(held.history()), (RECONCILE_VERSION, names_of_gone)):
                for name in sorted(names):
                    held.step(f"{version}: fencing table {name}")
                    engine.fence(name, version)
        except BaseException:
            if gone:  # only the lock names these tables, so the next process must take it over
                held.lock.let_expire()
            raise
        yield


def _guard(engine: Engine, held: LockedJournal) -> Fence:
    """The guard of this holder: its epoch is the sequence number of a snapshot that it wrote itself."""
    own = held.lock.head  # before the metadata is read: the heartbeat writes more of them
    metadata = engine.metadata_json(held.writer.name)
    if metadata is None:
        return Fence(held.writer.project, "", 0, held.require, held.run)
    found = (s for s in metadata.get("snapshots") or () if s["snapshot-id"] == own)
    snapshot = next(found, None)
    if snapshot is None:
        raise LockLost(
            "another process wrote to the history",
            "wait until that process has finished, then run the command again",
        )
    return Fence(
        project=held.writer.project,
        history=str(metadata.get("table-uuid") or ""),
        epoch=int(snapshot.get("sequence-number") or 0),
        require=held.require,
        run=held.run,
    )


def _interrupted(history: History) -> Iterator[tuple[str, frozenset[TableName]]]:
    """Every interrupted migration, and all names that its tables have or may get."""
    for intent in history.intents:
        record = history.undo_record(intent.version)
        names = set() if record is None else set(_recorded_names(record, history.project))
        yield intent.version.text, frozenset(names | {TableName.parse(text) for text in intent.metadata})


def _recorded_names(record: UndoRecord, project: str) -> Iterable[TableName]:
    for table in record.tables:
        if table.trash is not None:
            yield table.trash
        names = dict.fromkeys(t.name for t in (table.actual_before, table.actual_after) if t is not None)
        yield from names
        if len(names) > 1:  # it may have exchanged its name with another table
            yield from (aside_name(name, project, record.version) for name in names)


class LostLockRun(Frozen):
    """A run during which the lock was lost.

    :param undo: the tables that it had begun to change, before and after the run.
    :param direction: of the run; a rollback begins with the version applied.
    """

    undo: UndoRecord
    direction: Direction


class LateRename(Frozen):
    """A table with a name that the history does not have, and its recorded name."""

    recorded_name: TableName
    late_name: TableName


@contextmanager
def revert_late_renames(
    engine: Engine, journal: Journal, action: str, by: Operator, on_event: Callable[[Event], None]
) -> Iterator[list[LostLockRun]]:
    """A block around the lock: if the lock is lost in it, late renames are reverted under the lock.

    :yields: a function for the runs during which the lock was lost.
    """
    lost: list[LostLockRun] = []
    try:
        yield lost
    except Interrupted:
        # The user must see this failure; an error of the renames must not replace it.
        with suppress(IcemigrateError):
            for run in lost:
                _take_back(engine, journal, action, by, run, on_event)
        raise


def _take_back(
    engine: Engine,
    journal: Journal,
    action: str,
    by: Operator,
    run: LostLockRun,
    on_event: Callable[[Event], None],
) -> None:
    project = journal.writer.project
    if not any(_misplaced(engine, journal.writer.read(), project, run)):
        return  # the lock keeps the names of tables that still need it
    with journal.hold_lock(action, by.user, by.host) as held, fence_interrupted_migrations(engine, held):
        for one in _misplaced(engine, held.history(), project, run):
            engine.rename(one.late_name, one.recorded_name)
            text = f"renamed back to `{one.recorded_name}`: the lock was lost before the rename"
            on_event(NoteAdded(run.undo.version, one.late_name, text))


def _misplaced(engine: Engine, history: History, project: str, run: LostLockRun) -> Iterator[LateRename]:
    """The tables of a version that are not where the history has them.

    A version that is still interrupted has none: the run that continues it looks for its tables under both
    names.
    """
    undo, version = run.undo, Version.parse(run.undo.version)
    if any(intent.version == version for intent in history.intents):
        return
    applied = history.of(version)
    is_applied = applied is not None and applied.state is VersionState.APPLIED
    is_done = is_applied == (run.direction is Direction.APPLY)
    for table in undo.tables:
        before, after = _names(table, project, undo.version)
        belongs, late = (after, before) if is_done else (before, after)
        if belongs == late or engine.table(belongs) is not None:
            continue
        for name in (late, *(aside_name(name, project, undo.version) for name in (late, belongs))):
            found = engine.table(name)
            if found is not None and _is_same(table, found, project, undo.version):
                yield LateRename(belongs, name)


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
        return creator_of(found) == made_by(project, version)
    return undo.actual_before.uuid is not None and found.uuid == undo.actual_before.uuid
