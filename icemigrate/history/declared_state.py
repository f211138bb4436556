"""Earlier declared states, computed from the undo records of the history; migration files are not read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.undo import UndoStates, declared_after_undo


def declared_state_without(history: History, taken: Iterable[AppliedVersion]) -> DeclaredState:
    """The declared state without some applied versions: the difference of each one is inverted.

    The difference of a version without an undo record stays.
    """
    tables = dict(history.state.tables)
    for applied in sorted(taken, key=_when, reverse=True):
        record = history.undo_record(applied.version)
        for undo in reversed(record.tables if record is not None else ()):
            _take_back(tables, undo)
    return replace(history.state, tables=tables)


def declared_state_before(history: History, applied: AppliedVersion) -> DeclaredState:
    """The declared state that a version was applied to.

    The version's own tables are as recorded; the others are as they are without it and the versions applied
    after it.
    """
    since = [a for a in history.applied if a.state is VersionState.APPLIED and _when(a) >= _when(applied)]
    state = declared_state_without(history, since)
    record = history.undo_record(applied.version)
    tables = dict(state.tables)
    for undo in () if record is None else record.tables:
        if undo.declared_after is not None:
            tables.pop(undo.declared_after, None)
    for undo in () if record is None else record.tables:
        if undo.declared_before is not None and undo.before is not None:
            tables[undo.declared_before] = undo.before
    return replace(state, tables=tables)


def _when(applied: AppliedVersion) -> tuple[datetime, int]:
    return applied.applied_at, applied.version.number


def _take_back(tables: dict[TableName, Table], undo: TableUndo) -> None:
    now = tables.pop(undo.declared_after, None) if undo.declared_after is not None else None
    if undo.before is None or undo.declared_before is None:
        return
    if now is None or undo.after is None:
        tables[undo.declared_before] = undo.before
    else:
        table = declared_after_undo(UndoStates(undo.before, undo.after), now)
        tables[undo.declared_before] = replace(table, name=undo.declared_before)
