"""A catalog in a database, by SQLAlchemy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from icemigrate.catalog.capabilities import MATRIX, Capabilities
from icemigrate.catalog.file_io import file_io
from icemigrate.catalog.files import local_path
from icemigrate.catalog.kind import Find, Namespace, found_at
from icemigrate.catalog.port import CatalogSettings
from icemigrate.catalog.reading import joined_location
from icemigrate.catalog.sql_rows import NO_ROWS, Rows, read_rows
from icemigrate.catalog.sqlite import database_path
from icemigrate.deadline import within
from icemigrate.errors import CatalogError
from icemigrate.model.names import TableName

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection


class SqlKind:
    """A database that SQLAlchemy knows: two queries tell where every table's metadata lies."""

    def __init__(self, settings: CatalogSettings) -> None:
        from sqlalchemy import create_engine

        if not settings.uri:
            raise CatalogError(
                f"catalog `{settings.name}` has no `uri`", "write the database's, as SQLAlchemy has it"
            )
        self._settings = settings
        self._read = file_io(settings)
        url = _with_driver(settings.uri)
        arguments = _timeouts(url.drivername, math.ceil(settings.timeout_s) + 1)
        given = {key: value for key, value in arguments.items() if key not in url.query}
        self._engine = create_engine(url, connect_args=given)
        # Opening a SQLite file that is not there makes one, and reading must not make anything.
        self._file = database_path(settings) if self._engine.dialect.name == "sqlite" else None

    def finder(self, names: Iterable[TableName], whole: bool) -> Find:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return found_at(self._rows().tables.get, self._read)

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return self._rows().tables.get(name)

    def tables(self, namespace: Namespace) -> list[TableName]:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return [table for table in self._rows().tables if table.namespace == namespace]

    def namespaces(self) -> set[Namespace]:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return set(self._rows().namespaces)

    def default_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return joined_location(self._settings.warehouse, name)

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        return MATRIX["sql"]

    @property
    def is_remote(self) -> bool:
        """Whether metadata files lie elsewhere; the database is asked only twice."""
        return local_path(self._settings.warehouse or "") is None

    def close(self) -> None:
        """See :class:`~icemigrate.catalog.kind.Kind`."""
        self._engine.dispose()

    def _rows(self) -> Rows:
        if self._file is not None and not self._file.exists():
            return NO_ROWS

        def read() -> Rows:
            with self._engine.connect() as connection:
                return _sql_rows(connection, self._settings)

        return within(self._settings.timeout_s, read)


def _timeouts(driver: str, seconds: int) -> dict[str, int]:
    """How a driver is asked to give up by itself, a little later than the deadline of the whole call.

    :param driver: as SQLAlchemy names it with its database: ``postgresql+psycopg2``.
    """
    if driver.startswith("postgresql"):
        # No `statement_timeout`: PgBouncer refuses a connection that sets it.
        return {"connect_timeout": seconds, "tcp_user_timeout": seconds * 1000}
    if driver in ("mysql+pymysql", "mysql+mysqldb"):
        return {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
    return {}


def _with_driver(uri: str) -> URL:
    """The database's URL with the driver that the extra ``postgres`` installs, where it names none itself.

    SQLAlchemy's own choice is another one from version 2.1 on.
    """
    from sqlalchemy import make_url

    url = make_url(uri)
    return url.set(drivername="postgresql+psycopg2") if url.drivername == "postgresql" else url


def _sql_rows(connection: Connection, settings: CatalogSettings) -> Rows:
    from sqlalchemy import inspect, text
    from sqlalchemy.exc import NoSuchTableError

    def columns(table: str) -> frozenset[str]:
        with suppress(NoSuchTableError):
            return frozenset(column["name"] for column in inspect(connection).get_columns(table))
        return frozenset()

    return read_rows(lambda sql: connection.execute(text(sql)), columns, settings)
