"""Take back a rename or a creation that reached the catalog after another process had taken the lock over.

No catalog has a compare-and-swap for these, so a process that is paused right before one does it when it
wakes up.  It then sees that it has lost the lock.  Where the other process has taken the migration back by
then, the table returns to the name that the history has for it.
"""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.engine.guard import Guard
from icemigrate.engine.port import Engine
from icemigrate.history.journal import Held
from icemigrate.history.properties import History
from icemigrate.model.makers import CREATED_BY_PROPERTY, trash_name
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord


def take_back(
    engine: Engine, held: Held, project: str, undo: UndoRecord, note: Callable[[TableName, str], None]
) -> None:
    """Give tables the names back that a migration has taken from them although it was taken back.

    Nothing is done while another process holds the lock, nor where the version is applied or interrupted.

    :param undo: the tables that this run of the migration had begun with.
    :param note: is given each table that gets another name, and a text on it.
    """
    for table in undo.tables:
        for there, name in _moves(engine, project, undo.version, table):
            history = held.history()
            if not _is_taken_back(history, undo.version, table):
                continue
            with engine.guarded(Guard(project, "", 0, lambda: None)):  # the lock is not ours any more
                engine.rename(there, name)
            note(name, f"`{there}` got its name after the lock was lost; renamed to `{name}`")


def _is_taken_back(history: History, version: str, table: TableUndo) -> bool:
    standing = {applied.version.text: applied.standing for applied in history.applied}.get(version)
    if history.lock is not None or history.intents or standing in ("applied", "interrupted"):
        return False
    if table.declared_before is None:
        return table.declared_after not in history.state.tables
    return table.declared_before in history.state.tables


def _moves(
    engine: Engine, project: str, version: str, undo: TableUndo
) -> tuple[tuple[TableName, TableName], ...]:
    """Names that a table has now although it should not, each with the one that it should have."""
    before, after = undo.actual_before, undo.actual_after
    if before is None:
        made = None if after is None else engine.table(after.name)
        if (
            made is None
            or made.has_rows
            or made.properties.get(CREATED_BY_PROPERTY) != f"{project}/{version}"
        ):
            return ()
        name = trash_name(made.name, project, version)
        return ((made.name, name),) if engine.table(name) is None else ()
    names = {undo.trash, None if after is None else after.name} - {before.name, None}
    found = [(name, engine.table(name)) for name in names if name is not None]
    moved = [name for name, table in found if _is_same(table, before)]
    return ((moved[0], before.name),) if moved and engine.table(before.name) is None else ()


def _is_same(table: Table | None, before: Table) -> bool:
    return table is not None and table.uuid == before.uuid
