"""Events of a running plan, for progress displays and logs."""

from __future__ import annotations

from typing import TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName


class SparkStarted(Frozen):
    """Spark was started for the run; ``elapsed`` in seconds, which no other duration includes."""

    elapsed: float


class MigrationStarted(Frozen):
    """A migration begins.

    :param number: from 1, within this run.
    :param of: the number of migrations of this run.
    """

    version: str
    description: str
    number: int
    of: int


class StatementStarted(Frozen):
    """A statement, or a metadata commit, begins.

    :param table: its name in the catalog; ``None`` for a namespace.
    :param text: the statement, or the metadata commit in words.
    :param number: from 1, within the migration.
    :param of: the number of statements of the migration.
    :param on_copy: it runs on a structural copy, and the table itself does not change.
    """

    version: str
    table: TableName | None
    text: str
    number: int
    of: int
    on_copy: bool = False


class StatementFinished(Frozen):
    """A statement succeeded; ``elapsed`` in seconds."""

    version: str
    table: TableName | None
    text: str
    elapsed: float
    on_copy: bool = False


class TablePublishing(Frozen):
    """The commit of a table is about to be tried; a listener that raises prevents it.

    :param number: of the attempt, from 1.
    """

    version: str
    table: TableName
    number: int


class TablePublished(Frozen):
    """The changes of a table's copy are on the table, in one commit.

    :param tries: the number of attempts; all but the last conflicted with another writer.
    :param elapsed: how long the last attempt took, in seconds.
    :param tables: the number of tables that the commit changed.
    """

    version: str
    table: TableName
    tries: int
    elapsed: float
    tables: int = 1


class FilesRewritten(Frozen):
    """Files of a table were rewritten under the new partition spec; also sent before the first one.

    :param remaining: files that still have an old spec.
    :param of: files of the table at the start.
    """

    version: str
    table: TableName
    remaining: int
    of: int


class TableVerified(Frozen):
    """The table was read back, and it is as planned."""

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


class NoteAdded(Frozen):
    """A note for the user, such as another client's change."""

    version: str
    table: TableName | None
    text: str


class ValuesRestored(Frozen):
    """Retained values are back in all rows of a table that lacked them.

    :param source_version: the tag, or the id of the snapshot, that has the values.
    :param fields: field ids of the columns.
    """

    version: str
    table: TableName
    source_version: str
    fields: tuple[int, ...]


class LockAwaited(Frozen):
    """Another process holds the lock; ``holder`` says who, where, since when, and at which step."""

    holder: str


class LockTakenOver(Frozen):
    """The lock was taken over, because its holder ended or did not renew it for a lease."""

    holder: str


class UndoStarted(Frozen):
    """A migration failed, and its undo begins; ``reason`` is the cause of the failure."""

    version: str
    reason: str


class UndoFinished(Frozen):
    """A failed migration was undone."""

    version: str


Event: TypeAlias = (
    SparkStarted
    | LockAwaited
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
    | NoteAdded
    | ValuesRestored
)
