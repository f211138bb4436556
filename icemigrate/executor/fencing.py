"""What a new holder of the lock does first: no process that held it before may change a table any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from icemigrate.engine.guard import Guard
from icemigrate.engine.port import Engine
from icemigrate.errors import LockLost
from icemigrate.history.journal import Held
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import RECONCILED


@contextmanager
def guarded(engine: Engine, held: Held) -> Iterator[None]:
    """A block in which the holder of the lock changes tables, behind a fence for interrupted migrations.

    :raises LockLost: the lock is not ours any more.
    """
    with engine.guarded(_guard(engine, held)):
        gone = () if held.gone is None else held.gone.tables
        names_of_gone = frozenset(map(TableName.parse, gone))
        try:
            for version, names in (*_interrupted(held.history()), (RECONCILED, names_of_gone)):
                for name in sorted(names):
                    held.step(f"{version}: fencing table {name}")
                    engine.fence(name, version)
        except BaseException:
            if gone:  # the lock alone names these tables, so the next process has to take it over
                held.lock.abandon()
            raise
        yield


def _guard(engine: Engine, held: Held) -> Guard:
    """The guard of this holder: its epoch is the sequence number of a snapshot that it wrote itself."""
    own = held.lock.head  # before the metadata is read: the heartbeat writes more of them
    metadata = engine.metadata_json(held.writer.name)
    if metadata is None:
        return Guard(held.writer.project, "", 0, held.require)
    found = (s for s in metadata.get("snapshots") or () if s["snapshot-id"] == own)
    snapshot = next(found, None)
    if snapshot is None:
        raise LockLost(
            "another process wrote to the history", "wait until it has finished, then run the command again"
        )
    return Guard(
        project=held.writer.project,
        history=str(metadata.get("table-uuid") or ""),
        epoch=int(snapshot.get("sequence-number") or 0),
        require=held.require,
    )


def _interrupted(history: History) -> Iterator[tuple[str, frozenset[TableName]]]:
    """Every interrupted migration, and all names that its tables have or may get."""
    for intent in history.intents:
        record = history.undo_record(intent.version)
        names = set() if record is None else set(_names(record))
        yield intent.version.text, frozenset(names | {TableName.parse(text) for text in intent.metadata})


def _names(record: UndoRecord) -> Iterable[TableName]:
    for table in record.tables:
        if table.trash is not None:
            yield table.trash
        for state in (table.actual_before, table.actual_after):
            if state is not None:
                yield state.name
