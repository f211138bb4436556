"""The port to the database of a SQL catalog: SQLite by Python's own library, others by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from icemigrate.errors import IcemigrateError

T = TypeVar("T")


class DuplicateRow(IcemigrateError):
    """The database has a row of this key; caught within this package."""

    def __init__(self) -> None:
        super().__init__("the database has a row of this key")


class SqlTransaction(Protocol):
    """A transaction; parameters are written as ``:name``."""

    def rows(self, sql: str, values: Mapping[str, str | None]) -> Sequence[Sequence[Any]]:
        """The rows of a query."""
        ...

    def change(self, sql: str, values: Mapping[str, str | None]) -> int:
        """Run a statement that changes rows or tables.

        :returns: the number of rows that matched.
        :raises DuplicateRow: the database has a row of this key.
        """
        ...

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table of the database; empty where there is no such table."""
        ...


class SqlDatabase(Protocol):
    """A database; its methods raise :class:`~icemigrate.errors.CatalogError` if it cannot be reached."""

    def read(self, act: Callable[[SqlTransaction], T]) -> T | None:
        """The result of reading; ``None`` where there is no database yet."""
        ...

    def write(self, act: Callable[[SqlTransaction], T]) -> T:
        """Run one transaction, in a database that is created where it is missing.

        :raises LostAnswer: it is not known whether the transaction was committed
            (:mod:`icemigrate.metadata_engine.uncertain_outcome`); after any other exception it was not, and
            never will be.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...
