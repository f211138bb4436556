"""The port to what stores tables: a SQL catalog with its metadata files, or a server of Iceberg's REST
protocol.

A commit is a list of updates and requirements in the JSON of Iceberg's REST protocol (schemas ``TableUpdate``
and ``TableRequirement``).  A SQL catalog has no server that applies them:
:func:`~icemigrate.metadata_engine.apply_updates.apply_updates` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName

BeforeRetry: TypeAlias = Callable[[], None]
"""Called before a change is sent again because its answer was lost.

It raises where the change may not be made any more; then the outcome of the earlier attempt stays unknown.
"""


def retry_always() -> None:
    """Permit every further attempt."""


class CommitRefused(EngineError):
    """The catalog does not accept a commit; nothing was written.

    :ivar keeps_files: whether the answer to an earlier attempt was lost.  The catalog may still make that
        one, so its files must stay.
    """

    keeps_files = False


class CommitConflict(CommitRefused):
    """Another writer committed first, or a requirement does not hold; nothing was written."""

    def __init__(self, message: str, hint: str | None = "run the command again: it makes a new plan") -> None:
        super().__init__(message, hint)


class CommitStateUnknown(EngineError):
    """The catalog does not show whether a commit was made; new files stay, because it may refer to them."""


class StoredTable(Frozen):
    """A table as its catalog has it.

    :param location: of the metadata file.
    :param json: the metadata with all snapshots, exactly as stored: also the keys that icemigrate does not
        know.
    """

    location: str
    json: Json


class TableCommit(Frozen):
    """One change of one table.

    :param base: the table that was read; ``None`` where the commit creates it.
    :param updates: in order.  A creation without ``set-location`` gets the catalog's default location, which
        some REST servers alone know.
    :param requirements: what a REST server compares before it applies the updates.  A SQL catalog compares
        the location of the base, which is stricter.
    """

    name: TableName
    base: StoredTable | None
    updates: tuple[Json, ...]
    requirements: tuple[Json, ...] = ()


class FileStore(Protocol):
    """The files of tables, at any location that the catalog's settings can reach."""

    def read(self, location: str) -> bytes:
        """The content of a file.

        :raises OSError: it cannot be read.
        """
        ...

    def write(self, location: str, *content: bytes) -> None:
        """Create a file, with its folder where the storage has folders; the content is durable afterwards.

        :param content: one part after another.
        :raises EngineError: it exists, or the storage refuses it.
        """
        ...

    def write_file(self, location: str, source: Path) -> None:
        """Create a file from a temporary file of this process, as :meth:`write` does.

        :param source: complete; from now on, it may only be removed.
        :raises EngineError: the location exists, or the storage refuses it.
        """
        ...

    def delete(self, location: str) -> None:
        """Delete a file, if it exists; a failure is no error, because nothing refers to the file."""
        ...


class TableStore(Protocol):
    """The tables of one catalog.

    Every method may raise :class:`~icemigrate.errors.EngineError` or
    :class:`~icemigrate.errors.CatalogError`.
    """

    @property
    def files(self) -> FileStore:
        """The files of its tables."""
        ...

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """The catalog's properties; on REST, also those that the server's configuration sets."""
        ...

    @property
    def commits_together(self) -> bool:
        """Whether :meth:`commit` changes several tables in one transaction."""
        ...

    def load(self, name: TableName) -> StoredTable | None:
        """The current table, not a cached one; ``None`` where there is none."""
        ...

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        """Commit all changes, or none.

        After a lost answer it reads the tables again, so that the outcome is known when it returns or raises.

        :param commits: of different tables; more than one only where :attr:`commits_together`.
        :returns: the committed tables, in the order of the commits.
        :raises CommitConflict: another writer was faster; nothing was written.
        :raises CommitRefused: the catalog does not accept an update; nothing was written.
        :raises CommitStateUnknown: the catalog cannot be reached again, or the table was dropped meanwhile.
        """
        ...

    def default_location(self, name: TableName) -> str:
        """The location of a new table that declares none, without a slash at its end.

        :raises CatalogError: only the server knows it.
        """
        ...

    def rename(self, name: TableName, new: TableName, before_retry: BeforeRetry = retry_always) -> None:
        """Rename a table; the namespace of the new name exists.

        :raises CommitConflict: there is a table of the new name, or none of the old one.
        """
        ...

    def drop(self, name: TableName) -> None:
        """Remove a table from the catalog; its files stay."""
        ...

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace, unless it exists."""
        ...

    def drop_namespace(self, namespace: tuple[str, ...], before_retry: BeforeRetry = retry_always) -> bool:
        """Drop an empty namespace.

        :returns: whether it is gone; ``False`` where it is not empty.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...
