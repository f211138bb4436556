"""Which table of the catalog an undo record means: by its uuid, whatever it is called now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from icemigrate.model.makers import maker_of
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo

Tables = Mapping[TableName, Table | None]


def find(undo: TableUndo, actual: Tables) -> Table | None:
    """The table as it is now; for a dropped one, as it lies in the trash."""
    names = [undo.trash] if undo.trash is not None else []
    names += [t.name for t in (undo.actual_after, undo.actual_before) if t is not None]
    uuid = uuid_of(undo)
    for name in names:
        there = actual.get(name)
        if there is not None and (_is_made_by(undo, there) if uuid is None else there.uuid in (None, uuid)):
            return there
    if uuid is None:
        return None
    return next((t for t in actual.values() if t is not None and t.uuid == uuid), None)


def _is_made_by(undo: TableUndo, there: Table) -> bool:
    """Of a migration that was cut short, what it made is told from others of the name by the mark it left."""
    if undo.actual_before is not None or undo.actual_after is None:
        return True
    mark = maker_of(undo.actual_after)
    return mark is None or maker_of(there) == mark


def uuid_of(undo: TableUndo) -> str | None:
    """The table's uuid, as far as the record knows it."""
    tables = (undo.actual_after, undo.actual_before, undo.after, undo.before)
    return next((t.uuid for t in tables if t is not None and t.uuid is not None), None)


def declared_now(undo: TableUndo, state: State) -> TableName | None:
    """The table's declared name now: a later migration may have renamed it."""
    name = undo.declared_after
    if name is None:
        return None
    uuid = uuid_of(undo)
    if uuid is not None:
        now = next((n for n, t in state.tables.items() if t.uuid == uuid), None)
        if now is not None:
            return now
    return name if name in state.tables else None


def names_of(
    undo: TableUndo, state: State, physical: Callable[[TableName], TableName]
) -> Iterable[TableName]:
    """Names in the catalog that planning the undo looks at."""
    names = [undo.trash] if undo.trash is not None else []
    names += [t.name for t in (undo.actual_before, undo.actual_after) if t is not None]
    declared = [undo.declared_before, undo.declared_after, declared_now(undo, state)]
    return dict.fromkeys([*names, *(physical(n) for n in declared if n is not None)])
