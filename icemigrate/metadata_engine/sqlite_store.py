"""The tables of the embedded catalog, by Python's own library, so that a command starts at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.sqlite_errors import convert_sqlite_errors
from icemigrate.catalog.sqlite_reader import BUSY_SECONDS, database_path
from icemigrate.errors import CatalogError, os_error_reason
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.sql_database import DuplicateRow, SqlTransaction
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.system.file_writes import make_durable_folder
from icemigrate.system.waits import announce_if_slow

T = TypeVar("T")


def open_sqlite_store(settings: CatalogSettings, busy_seconds: float = BUSY_SECONDS) -> SqlTableStore:
    """The tables of a SQLite catalog; it reads nothing yet, and creates nothing before the first change.

    :param busy_seconds: how long to wait for another writer.
    :raises CatalogError: the settings name no SQLite file.
    """
    database = SqliteDatabase(database_path(settings), busy_seconds)
    return SqlTableStore(settings, database, TableFiles(settings))


class SqliteDatabase:
    """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`; every call opens the file anew.

    :param connect: opens a connection by a URI; a test gives one that fails.
    """

    def __init__(
        self,
        path: Path,
        busy_seconds: float = BUSY_SECONDS,
        connect: Callable[..., sqlite3.Connection] = sqlite3.connect,
    ) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._connect = connect

    def read(self, act: Callable[[SqlTransaction], T]) -> T | None:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""
        with convert_sqlite_errors(self._path), announce_if_slow(self._slow_text):
            self._require_regular()
            if not self._path.exists():
                return None
            try:
                return self._read("ro", act)
            except sqlite3.OperationalError as error:
                # A writer that was killed leaves a journal, and a reader without the right to write cannot
                # roll it back.
                file = self._path.resolve()  # SQLite follows links too
                is_left = file.with_name(f"{file.name}-journal").exists()
                if not is_left or "locked" in str(error):
                    raise
                return self._read("rw", act)

    def _read(self, mode: str, act: Callable[[SqlTransaction], T]) -> T:
        with closing(self._open(mode)) as connection:
            connection.execute("BEGIN")
            return act(_SqliteTransaction(connection))

    def write(self, act: Callable[[SqlTransaction], T]) -> T:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""
        with convert_sqlite_errors(self._path, "write"), announce_if_slow(self._slow_text):
            self._require_regular()
            self._make_folder()
            with closing(self._open("rwc")) as connection:
                connection.execute("BEGIN IMMEDIATE")
                result = act(_SqliteTransaction(connection))
                try:
                    connection.execute("COMMIT")
                except sqlite3.Error as error:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise LostAnswer from error
                return result

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    @property
    def _slow_text(self) -> str:
        return f"Waiting for the catalog {self._path}: another process writes to it …"

    def _open(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        connection = self._connect(uri, uri=True, timeout=self._busy_seconds, isolation_level=None)
        # The file may come from anyone: its views and triggers must not run functions with effects.
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _require_regular(self) -> None:
        if self._path.exists() and not self._path.is_file() and not self._path.is_dir():
            raise CatalogError(
                f"the catalog {self._path} is not a regular file", "name a SQLite file as its `uri`"
            )

    def _make_folder(self) -> None:
        try:
            make_durable_folder(self._path.absolute().parent)
        except OSError as error:
            raise CatalogError(
                f"the catalog's folder `{self._path.parent}` cannot be created: {os_error_reason(error)}",
                "create it, or name another file as the catalog's `uri`",
            ) from error


class _SqliteTransaction:
    """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Mapping[str, str | None]) -> Sequence[Sequence[Any]]:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        return self._connection.execute(sql, values).fetchall()

    def change(self, sql: str, values: Mapping[str, str | None]) -> int:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.IntegrityError as error:
            raise DuplicateRow from error

    def columns(self, table: str) -> frozenset[str]:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        select = "SELECT name FROM pragma_table_info(:table)"
        return frozenset(row[0] for row in self.rows(select, {"table": table}))
