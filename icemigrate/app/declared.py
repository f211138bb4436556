"""What was declared at an earlier point of a history, by its undo records; files are not asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from icemigrate.frozen import replace
from icemigrate.history.applied import Applied
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo import Sides, declared_again


def state_without(history: History, taken: Iterable[Applied]) -> State:
    """The declared state as it is without some applied versions: each one's own difference, inverted.

    One that has no undo record stays in it.
    """
    tables = dict(history.state.tables)
    for applied in sorted(taken, key=_when, reverse=True):
        record = history.undo_record(applied.version)
        for undo in reversed(record.tables if record is not None else ()):
            _take_back(tables, undo)
    return replace(history.state, tables=tables)


def state_before(history: History, applied: Applied) -> State:
    """The declared state that a version was applied to: its own tables as recorded, the others as
    they are without it and what was applied after it."""
    since = [a for a in history.applied if a.standing == "applied" and _when(a) >= _when(applied)]
    state = state_without(history, since)
    record = history.undo_record(applied.version)
    tables = dict(state.tables)
    for undo in () if record is None else record.tables:
        if undo.declared_after is not None:
            tables.pop(undo.declared_after, None)
    for undo in () if record is None else record.tables:
        if undo.declared_before is not None and undo.before is not None:
            tables[undo.declared_before] = undo.before
    return replace(state, tables=tables)


def _when(applied: Applied) -> tuple[datetime, int]:
    return applied.applied_at, applied.version.number


def _take_back(tables: dict[TableName, Table], undo: TableUndo) -> None:
    now = tables.pop(undo.declared_after, None) if undo.declared_after is not None else None
    if undo.before is None or undo.declared_before is None:
        return
    if now is None or undo.after is None:
        tables[undo.declared_before] = undo.before
    else:
        table = declared_again(Sides(undo.before, undo.after), now)
        tables[undo.declared_before] = replace(table, name=undo.declared_before)
