"""The tables of a catalog in a database that SQLAlchemy supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.library_errors import convert_library_errors
from icemigrate.catalog.sql_engine import open_engine, table_columns
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.sql_database import DuplicateRow, SqlTransaction
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.sqlite_store import open_sqlite_store
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.redaction import guard_logging
from icemigrate.system.deadline import DeadlineExceeded, call_with_deadline

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

T = TypeVar("T")


def open_sql_store(settings: CatalogSettings) -> SqlTableStore:
    """The tables of a SQL catalog; it connects on the first call.

    :raises CatalogError: the settings have no URI, or one that is not valid.
    :raises MissingExtra: SQLAlchemy or the database's driver is not installed.
    """
    guard_logging()
    if (settings.uri or "").startswith("sqlite:"):
        return open_sqlite_store(settings)
    with convert_library_errors(settings):
        return SqlTableStore(settings, SqlAlchemyDatabase(settings), TableFiles(settings))


class SqlAlchemyDatabase:
    """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._engine = open_engine(settings, pings=True)
        self._columns: dict[str, frozenset[str]] = {}

    def read(self, act: Callable[[SqlTransaction], T]) -> T | None:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""

        def run() -> T:
            with self._engine.connect() as connection:
                return act(_SqlAlchemyTransaction(connection, self._columns))

        with convert_library_errors(self._settings):
            return call_with_deadline(self._settings.timeout_s, run)

    def write(self, act: Callable[[SqlTransaction], T]) -> T:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""
        stage = _CommitStage()

        def run() -> T:
            with self._engine.connect() as connection:
                result = act(_SqlAlchemyTransaction(connection, self._columns))
                stage.start_commit()
                try:
                    connection.commit()
                except Exception as error:  # drivers raise their own exceptions
                    raise LostAnswer from error
                return result

        with convert_library_errors(self._settings):
            try:
                return call_with_deadline(self._settings.timeout_s, run)
            except (LostAnswer, DuplicateRow):
                raise
            except DeadlineExceeded as error:
                if stage.abandon():
                    raise
                raise LostAnswer from error
            except BaseException:
                # Interrupted: the transaction would continue in its own thread.
                stage.abandon()
                raise

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlDatabase`."""
        self._engine.dispose()


class _CommitStage:
    """Whether a transaction in another thread may still be committed: an overdue one must not be, later."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_committing = False
        self._is_abandoned = False

    def start_commit(self) -> None:
        """Begin to commit.

        :raises TimeoutError: the transaction was abandoned.
        """
        with self._lock:
            if self._is_abandoned:
                raise TimeoutError("the transaction was abandoned")
            self._is_committing = True

    def abandon(self) -> bool:
        """Keep the transaction from being committed; :returns: ``False`` where that has begun."""
        with self._lock:
            self._is_abandoned = True
            return not self._is_committing


class _SqlAlchemyTransaction:
    """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`.

    :param columns: the columns of tables that do not change any more; filled here.
    """

    def __init__(self, connection: Connection, columns: dict[str, frozenset[str]]) -> None:
        self._connection = connection
        self._columns = columns

    def rows(self, sql: str, values: Mapping[str, str | None]) -> Sequence[Sequence[Any]]:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        from sqlalchemy import text

        return self._connection.execute(text(sql), values).fetchall()

    def change(self, sql: str, values: Mapping[str, str | None]) -> int:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError, IntegrityError

        try:
            return self._connection.execute(text(sql), values).rowcount
        except IntegrityError as error:
            raise DuplicateRow from error
        except DBAPIError as error:
            # Another process created the catalog's tables first.
            if "already exists" in str(error):
                raise DuplicateRow from error
            raise

    def columns(self, table: str) -> frozenset[str]:
        """See :class:`~icemigrate.metadata_engine.sql_database.SqlTransaction`."""
        if table not in self._columns:
            found = table_columns(self._connection, table)
            # Clients add a column for the type of rows, and no other.
            if not found or ("table_name" in found and "iceberg_type" not in found):
                return found
            self._columns[table] = found
        return self._columns[table]
