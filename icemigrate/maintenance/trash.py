"""The trash: the dropped tables of this project, the times of their drops, and those that may be purged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.frozen import Frozen
from icemigrate.history.event_log import LogEvent, unpack_log
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.retention import format_duration
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table, owner_of, project_of
from icemigrate.iceberg.table_properties import GC_ENABLED_PROPERTY, is_gc_enabled
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.maintenance.context import (
    ActionOrSkipped,
    MaintenanceAction,
    MaintenanceContext,
)
from icemigrate.planning.undo.undo_inputs import recorded_uuid
from icemigrate.results.maintain_results import ActionSummary, SkippedTable
from icemigrate.spark.commit_ports import require_jvm

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine

TRASH_PART = "trash"
_VERSION = re.compile(r"__([0-9]{1,18})(?:__[0-9a-f]{8})?\Z")
_MOVING = (
    LogEvent.APPLIED,
    LogEvent.REDONE,
    LogEvent.ROLLED_BACK,
    LogEvent.FAILED,
    LogEvent.INTERRUPTED,
)
"""Events after which a table may have got into the trash."""


class TrashedTable(Frozen):
    """A table of this project in the trash.

    :param version: of the migration that dropped it, or that created it and was undone; from its name.
    :param undo: the undo record of the table; ``None`` without one (a squash).
    :param is_known: whether the history has it; otherwise it may belong to another history of the same
        project name.
    :param since: the latest possible time of its drop; ``None`` where it is unknown.
    """

    table: Table
    version: str
    undo: TableUndo | None
    since: datetime | None
    is_known: bool

    @property
    def declared(self) -> str:
        """Its declared name."""
        return str(self.undo.declared) if self.undo is not None else self.table.name.name

    def lost(self, history: History) -> tuple[str, ...]:
        """The undo that becomes impossible after a purge."""
        if self.undo is None:
            return ()
        of = {a.version.text: a for a in history.applied}.get(self.version)
        if self.undo.declared_after is None:
            return (
                f"{self.version} dropped `{self.declared}` and cannot be undone after that: `rollback` "
                "refuses, or with `--partial` leaves it dropped",
            )
        if of is not None and of.awaits_redo:
            return (f"`apply --redo {self.version}` then creates `{self.declared}` again, without its rows",)
        return (f"the rows of `{self.declared}`, which {self.version} created, are lost",)


def find_trashed_tables(history: History, project: str, tables: Iterable[Table]) -> Iterator[TrashedTable]:
    """This project's tables in the trash; others are skipped.

    A catalog has one trash for all projects.  A table is identified by its uuid in undo records.  One with
    only the project's marker may belong to another history: two can have one project name.
    """
    undos = list(_undos(history))
    resets = {
        name: entry.at
        for entry in unpack_log(history.log).entries
        if entry.event is LogEvent.RESET
        for name in entry.tables
    }
    for table in tables:
        found = _VERSION.search(table.name.name)
        known = [undo for undo in undos if table.uuid is not None and recorded_uuid(undo[1]) == table.uuid]
        if found is None or not (known or project_of(table) == project):
            continue
        version = found[1]
        undo = next((undo for of, undo in known if of == version), None)
        reset_at = resets.get(str(table.name))
        # After a reset, a table that a version knows has got into the trash once more, under the same name.
        since = _since(history, version) if known or reset_at is None else reset_at
        yield TrashedTable(table, version, undo, since, bool(known) or reset_at is not None)


def _undos(history: History) -> Iterator[tuple[str, TableUndo]]:
    for applied in history.applied:
        record = history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            yield applied.version.text, undo


def _since(history: History, version: str) -> datetime | None:
    """The time of a version's last event."""
    log = unpack_log(history.log)
    moments = [e.at for e in log.entries if e.version and e.version.text == version and e.event in _MOVING]
    if moments:
        return max(moments)
    if log.earlier and log.entries:
        return log.entries[0].at  # it was before that
    # An older release kept no log: the time of an apply is known, that of an undo is not.
    known = next((a for a in history.applied if a.version.text == version), None)
    return known.applied_at if known is not None and known.state is VersionState.APPLIED else None


def find_expired_trash(look: MaintenanceContext, max_age: timedelta) -> Iterator[ActionOrSkipped]:
    """The purges for the retention of the trash.

    :param max_age: how long a table stays in the trash.
    """
    namespace = (TRASH_NAMESPACE,)
    catalog = look.session.catalog
    if not catalog.namespaces((namespace,)):
        return
    names = catalog.tables(namespace)
    tables = [table for table in look.tables(names).values() if table is not None]
    yield from look.unreadable_among(names, TRASH_PART)
    open_ = {i.version.text for i in look.history.intents}
    for one in find_trashed_tables(look.history, look.session.project.name, tables):
        name = one.table.name
        if not one.is_known:
            yield SkippedTable(TRASH_PART, str(name), "the history has no record of it", is_refused=True)
            continue
        why = _too_early(one, look.at, max_age)
        if one.version in open_:
            why = f"{one.version} was interrupted: `apply` finishes it, `rollback` undoes it"
        if why is not None:
            yield SkippedTable(TRASH_PART, str(name), why)
            continue
        unsafe = _unsafe(look, one.table)
        yield (
            _act(look, one)
            if unsafe is None
            else SkippedTable(TRASH_PART, str(name), unsafe, is_refused=True)
        )


def _too_early(one: TrashedTable, at: datetime, max_age: timedelta) -> str | None:
    kept = format_duration(max_age // timedelta(milliseconds=1))
    if one.since is None:
        return "the time at which it was dropped is unknown"
    if at - one.since >= max_age:
        return None
    return f"in the trash since {one.since:%Y-%m-%d %H:%M}, kept for {kept}"


def _unsafe(look: MaintenanceContext, table: Table) -> str | None:
    owner = owner_of(table)
    if owner not in (None, look.session.project.name):
        return f"it belongs to project `{owner}`"
    if not is_gc_enabled(table.properties):
        return f"`{GC_ENABLED_PROPERTY}` is false: its files may not be deleted"
    return look.shared_folder(table.name)


def _act(look: MaintenanceContext, one: TrashedTable) -> MaintenanceAction:
    from icemigrate.spark.maintenance_calls import purge_text

    name = one.table.name
    assert one.since is not None
    text = f"drop permanently, with its files: in the trash since {one.since:%Y-%m-%d %H:%M}"
    shown = ActionSummary(TRASH_PART, str(name), text, purge_text(name), one.lost(look.history))
    uuid = one.table.uuid
    return MaintenanceAction(shown, name, uuid, partial(_purge, name, uuid))


def _purge(name: TableName, uuid: str | None, engine: CommittingEngine) -> str:
    from icemigrate.spark.maintenance_calls import purge_table

    purge_table(require_jvm(engine, f"dropping table `{name}` for good"), name, uuid)
    return "dropped for good"
