"""Undo records of versions that more than one run applies: what an earlier run recorded stays."""

from __future__ import annotations

from icemigrate.errors import ConflictError
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import Intent
from icemigrate.history.undo_record_codec import UndoRecord
from icemigrate.iceberg.undo_record import TableUndo


def with_first_states(first: UndoRecord, now: UndoRecord) -> UndoRecord:
    """The undo record of a continued migration, with the tables as the first run saw them."""
    known = {t.declared: t for t in first.tables}
    tables = []
    for table in now.tables:
        before = known.get(table.declared)
        if before is not None:
            table = replace(
                table,
                declared_before=before.declared_before,
                before=before.before,
                actual_before=before.actual_before,
                trash=table.trash or before.trash,
                rows_changed=table.rows_changed or before.rows_changed,
                created=before.created,
                is_unproved=before.is_unproved,
            )
        tables.append(table)
    made = dict.fromkeys((*first.namespaces, *now.namespaces))
    return replace(now, tables=tuple(tables), namespaces=tuple(made))


class OtherTables(Frozen):
    """The tables of an applied version that a run for new values of its lists leaves alone.

    :param version: its text.
    :param namespaces: those that earlier runs created.
    """

    version: str = ""
    tables: tuple[TableUndo, ...] = ()
    namespaces: tuple[tuple[str, ...], ...] = ()

    def added_to(self, undo: UndoRecord) -> UndoRecord:
        """The record of a version with these tables; that of any other version stays as it is."""
        if undo.version != self.version:
            return undo
        own = {table.declared for table in undo.tables}
        others = (table for table in self.tables if table.declared not in own)
        made = dict.fromkeys((*self.namespaces, *undo.namespaces))
        return replace(undo, tables=(*others, *undo.tables), namespaces=tuple(made))


def other_tables(kept: UndoRecord | None, undo: UndoRecord, intent: Intent) -> OtherTables:
    """The tables that a run leaves alone; none unless it extends a version.

    :param kept: the recorded undo record.
    :param undo: that of the run.
    """
    if kept is None or not intent.extends:
        return OtherTables()
    own = {table.declared for table in undo.tables}
    tables = tuple(table for table in kept.tables if table.declared not in own)
    return OtherTables(undo.version, tables, kept.namespaces)


def require_no_extension(history: History) -> None:
    """Refuse an undo while a version is applied to some new values of its lists, and not yet to all.

    :raises ConflictError: with the version.
    """
    for intent in history.intents:
        if intent.extends:
            raise ConflictError(
                f"{intent.version} is being applied to new tenants, or that run was interrupted",
                "`icemigrate apply` finishes it; then roll back",
            )
