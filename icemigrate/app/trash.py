"""The trash: which of its tables are this project's, since when they are there, and which may go for good."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.app.upkeep import COLLECTED, Act, Found, Look, is_collected
from icemigrate.frozen import Frozen
from icemigrate.history.log import unpack
from icemigrate.history.properties import History
from icemigrate.model.makers import TRASH_NAMESPACE, project_of
from icemigrate.model.names import TableName
from icemigrate.model.retention import format_duration
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.model.upkeep import Kept, Upkeep
from icemigrate.undo.finding import uuid_of

if TYPE_CHECKING:
    from icemigrate.engine.spark import SparkEngine

PART = "trash"
_VERSION = re.compile(r"__([0-9]{1,18})(?:__[0-9a-f]{8})?\Z")
_MOVING = ("applied", "redone", "rolled_back", "failed", "interrupted")
"""Events after which a table may have got into the trash."""


class Trashed(Frozen):
    """A table in the trash that is this project's.

    :param version: of the migration that dropped it, or that made it and was taken back; as its name has it.
    :param undo: what is kept of it so that it can come back; ``None`` where nothing is (a squash).
    :param is_known: the history knows it; otherwise another history of that project's name may.
    :param since: the latest moment at which it can have got there; ``None`` where nobody knows.
    """

    table: Table
    version: str
    undo: TableUndo | None
    since: datetime | None
    is_known: bool

    @property
    def declared(self) -> str:
        """The name under which people knew it."""
        return str(self.undo.declared) if self.undo is not None else self.table.name.name

    def lost(self, history: History) -> tuple[str, ...]:
        """What cannot be done any more once it is gone."""
        if self.undo is None:
            return ()
        standing = {a.version.text: a.standing for a in history.applied}.get(self.version)
        if self.undo.declared_after is None:
            return (
                f"{self.version} dropped `{self.declared}` and can then not be undone: `rollback` refuses, "
                "or with `--partial` leaves it dropped",
            )
        if standing == "held":
            return (f"`apply --redo {self.version}` makes `{self.declared}` anew then, without its rows",)
        return (f"the rows of `{self.declared}`, which {self.version} had made, are gone then",)


def trashed(history: History, project: str, tables: Iterable[Table]) -> Iterator[Trashed]:
    """Those of the trash's tables that are this project's; others' are passed over.

    A catalog has one trash for all projects.  A table is known by its uuid in what versions are undone from.
    One that only bears the project's mark may be another history's: two can have one project name.
    """
    undos = list(_undos(history))
    for table in tables:
        found = _VERSION.search(table.name.name)
        known = [undo for undo in undos if table.uuid is not None and uuid_of(undo[1]) == table.uuid]
        if found is None or not (known or project_of(table) == project):
            continue
        version = found[1]
        undo = next((undo for of, undo in known if of == version), None)
        yield Trashed(table, version, undo, _since(history, version), bool(known))


def _undos(history: History) -> Iterator[tuple[str, TableUndo]]:
    for applied in history.applied:
        record = history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            yield applied.version.text, undo


def _since(history: History, version: str) -> datetime | None:
    """The last moment at which anything happened to a version."""
    log = unpack(history.log)
    moments = [e.at for e in log.entries if e.version and e.version.text == version and e.event in _MOVING]
    if moments:
        return max(moments)
    if log.earlier and log.entries:
        return log.entries[0].at  # it was before that
    # An earlier icemigrate kept no log: what was applied is known, when it was taken back is not.
    known = next((a for a in history.applied if a.version.text == version), None)
    return known.applied_at if known is not None and known.standing == "applied" else None


def emptying(look: Look, max_age: timedelta) -> Iterator[Found]:
    """What the trash's retention comes to.

    :param max_age: how long a table stays in the trash.
    """
    namespace = (TRASH_NAMESPACE,)
    catalog = look.world.catalog
    if namespace not in catalog.namespaces():
        return
    tables = [table for table in catalog.load(catalog.tables(namespace)).values() if table is not None]
    open_ = {i.version.text for i in look.history.intents}
    for one in trashed(look.history, look.world.project.name, tables):
        name = one.table.name
        if not one.is_known:
            yield Kept(PART, str(name), "the history knows nothing of it", is_refused=True)
            continue
        why = _too_early(one, look.at, max_age)
        if one.version in open_:
            why = f"{one.version} was interrupted: `apply` finishes it, `rollback` undoes it"
        if why is not None:
            yield Kept(PART, str(name), why)
            continue
        unsafe = _unsafe(look, one.table)
        yield _act(look, one) if unsafe is None else Kept(PART, str(name), unsafe, is_refused=True)


def _too_early(one: Trashed, at: datetime, max_age: timedelta) -> str | None:
    kept = format_duration(max_age // timedelta(milliseconds=1))
    if one.since is None:
        return "nobody knows since when it is in the trash"
    if at - one.since >= max_age:
        return None
    return f"in the trash since {one.since:%Y-%m-%d %H:%M}, kept for {kept}"


def _unsafe(look: Look, table: Table) -> str | None:
    if not is_collected(table.properties):
        return f"`{COLLECTED}` is false: its files may not be deleted"
    return look.shared_folder(table.name)


def _act(look: Look, one: Trashed) -> Act:
    from icemigrate.engine.upkeep import purge_text

    name = one.table.name
    assert one.since is not None
    text = f"drop for good, with its files: in the trash since {one.since:%Y-%m-%d %H:%M}"
    shown = Upkeep(PART, str(name), text, purge_text(name), one.lost(look.history))
    return Act(shown, name, one.table.uuid, partial(_purge, name))


def _purge(name: TableName, engine: SparkEngine) -> str:
    from icemigrate.engine.upkeep import purge

    purge(engine, name)
    return "dropped for good"
