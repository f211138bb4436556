"""Connections to the database of a SQL catalog, by SQLAlchemy."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import CatalogError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine


def open_engine(settings: CatalogSettings, *, pings: bool = False) -> Engine:
    """SQLAlchemy's engine of the catalog's database; it connects on the first use.

    :param pings: whether a connection that was idle is tried before it is used again.
    :raises CatalogError: the settings have no URI.
    """
    from sqlalchemy import create_engine

    if not settings.uri:
        raise CatalogError(
            f"catalog `{settings.name}` has no `uri`", "write the database's, as SQLAlchemy has it"
        )
    url = _with_driver(settings.uri)
    arguments = _timeouts(url.drivername, math.ceil(settings.timeout_s) + 1)
    given = {key: value for key, value in arguments.items() if key not in url.query}
    return create_engine(url, connect_args=given, pool_pre_ping=pings)


def table_columns(connection: Connection, table: str) -> frozenset[str]:
    """The columns of a table of the database; empty where there is no such table."""
    from sqlalchemy import inspect
    from sqlalchemy.exc import NoSuchTableError

    with suppress(NoSuchTableError):
        return frozenset(column["name"] for column in inspect(connection).get_columns(table))
    return frozenset()


def _timeouts(driver: str, seconds: int) -> dict[str, int]:
    """Timeout settings of a driver, a little longer than the deadline of the whole call.

    :param driver: SQLAlchemy's name of the database with its driver: ``postgresql+psycopg2``.
    """
    if driver.startswith("postgresql"):
        # No `statement_timeout`: PgBouncer refuses a connection that sets it.
        return {"connect_timeout": seconds, "tcp_user_timeout": seconds * 1000}
    if driver in ("mysql+pymysql", "mysql+mysqldb"):
        return {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
    return {}


def _with_driver(uri: str) -> URL:
    """The database's URL with the driver of the extra ``postgres``, where it names none.

    From version 2.1 on, SQLAlchemy's own default is another driver.
    """
    from sqlalchemy import make_url

    url = make_url(uri)
    return url.set(drivername="postgresql+psycopg2") if url.drivername == "postgresql" else url
