"""What happens while a plan runs, as values; who wants to show progress or keep a log listens to them."""

from __future__ import annotations

from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName


class MigrationStarted(Frozen):
    """A migration begins.

    :param number: which one of this run, from 1.
    :param of: how many there are in this run.
    """

    version: str
    description: str
    number: int
    of: int


class StatementStarted(Frozen):
    """A statement, or a metadata commit, begins.

    :param table: the table's name in the catalog; ``None`` for a namespace.
    :param text: the statement, or the metadata commit in words.
    :param number: which one of the migration, from 1.
    :param of: how many the migration has.
    :param on_copy: it runs on a structural copy, so that the table itself is not touched by it.
    """

    version: str
    table: TableName | None
    text: str
    number: int
    of: int
    on_copy: bool = False


class StatementFinished(Frozen):
    """It has ended well; ``elapsed`` in seconds."""

    version: str
    table: TableName | None
    text: str
    elapsed: float
    on_copy: bool = False


class TablePublishing(Frozen):
    """The one commit of a table is about to be tried; whoever must not commit any more stops here.

    :param number: which try it is, from 1.
    """

    version: str
    table: TableName
    number: int


class TablePublished(Frozen):
    """All that was done on a table's copy is on the table, in one commit; ``elapsed`` in seconds.

    :param tries: how many commits it took; every one but the last met another writer's.
    """

    version: str
    table: TableName
    tries: int
    elapsed: float


class FilesRewritten(Frozen):
    """Files of a table lie the new way, and are committed; told before the first of them too.

    :param left: how many lie the old way still.
    :param of: how many files the table had when it began.
    """

    version: str
    table: TableName
    left: int
    of: int


class TableVerified(Frozen):
    """The table was read back and is as the plan said."""

    version: str
    table: TableName


class TableMarked(Frozen):
    """The table has the migration's marker under ``tag``."""

    version: str
    table: TableName
    tag: str


class MigrationRecorded(Frozen):
    """The migration is in the history; ``elapsed`` in seconds since it began."""

    version: str
    elapsed: float


class Noted(Frozen):
    """Something worth saying that is no failure, such as a change that somebody else made meanwhile."""

    version: str
    table: TableName | None
    text: str


class ValuesBroughtBack(Frozen):
    """All rows of a table that lacked a value which an earlier version keeps have it again.

    :param kept_in: that version: a tag, or the id of a snapshot.
    :param fields: ids of the columns.
    """

    version: str
    table: TableName
    kept_in: str
    fields: tuple[int, ...]


class LockAwaited(Frozen):
    """Somebody else holds the project's lock; ``holder`` in words: who, where, since when, at which step."""

    holder: str


class LockTakenOver(Frozen):
    """The lock was taken over from somebody who was not heard of for longer than his lease."""

    holder: str


class UndoStarted(Frozen):
    """A migration failed, and what was done of it is undone; ``reason`` is why it failed."""

    version: str
    reason: str


class UndoFinished(Frozen):
    """All tables of the migration are as they were before it."""

    version: str


Event: TypeAlias = (
    LockAwaited
    | LockTakenOver
    | UndoStarted
    | UndoFinished
    | MigrationStarted
    | StatementStarted
    | StatementFinished
    | TablePublishing
    | TablePublished
    | FilesRewritten
    | TableVerified
    | TableMarked
    | MigrationRecorded
    | Noted
    | ValuesBroughtBack
)
