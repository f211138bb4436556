"""Tables of a SQL catalog: rows in a database that name metadata files.

A commit writes new metadata files and then moves the rows to them, in one transaction.  The swap compares
the location that was read, as Java's ``JdbcTableOperations`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import checked_metadata, read_metadata
from icemigrate.catalog.reader_parts import joined_location
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.location_swap_store import LocationSwapStore
from icemigrate.metadata_engine.location_swaps import (
    LocationSwap,
    named_tables,
    swap_conflict,
    swap_outcome,
)
from icemigrate.metadata_engine.sql_database import DuplicateRow, SqlDatabase, SqlTransaction
from icemigrate.metadata_engine.sql_statements import SqlStatements
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitConflict,
    FileStore,
    retry_always,
)
from icemigrate.metadata_engine.uncertain_outcome import until_known

T = TypeVar("T")


class SqlTableStore(LocationSwapStore):
    """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

    commits_together = True

    def __init__(self, settings: CatalogSettings, database: SqlDatabase, files: FileStore) -> None:
        super().__init__(settings, files)
        self._database = database

    def _location_of_new(self, name: TableName) -> str | None:
        warehouse = self._settings.warehouse
        return joined_location(warehouse, name) if warehouse else None

    def rename(self, name: TableName, new: TableName, before_retry: BeforeRetry = retry_always) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        attempts = 0

        def act(statements: SqlStatements) -> None:
            nonlocal attempts
            attempts += 1
            is_free = statements.rename(name, new)
            if is_free is False:
                raise CommitConflict(f"table `{name}` cannot be renamed: there is a table or view `{new}`")
            if is_free is None and not (attempts > 1 and statements.location(new) is not None):
                raise CommitConflict(f"table `{name}` cannot be renamed: there is no such table")

        self._write_until_known(act, f"whether table `{name}` was renamed to `{new}`", before_retry)

    def drop(self, name: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        self._write_until_known(lambda s: s.delete(name), f"whether table `{name}` was dropped")

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        what = f"whether namespace `{'.'.join(namespace)}` was created"
        self._write_until_known(lambda s: s.insert_namespace(namespace), what)

    def drop_namespace(self, namespace: tuple[str, ...], before_retry: BeforeRetry = retry_always) -> bool:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        what = f"whether namespace `{'.'.join(namespace)}` was dropped"
        return self._write_until_known(lambda s: s.delete_namespace(namespace), what, before_retry)

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        self._database.close()

    def _swap(self, swaps: Sequence[LocationSwap], before_retry: BeforeRetry) -> None:
        """Move all rows, or none."""
        names = named_tables(swaps)

        def attempt() -> bool:
            self._write(lambda s: _move_rows(s, swaps))
            return True

        def find(_: CommitConflict | None) -> bool | None:
            outcomes = {self._outcome_of(swap) for swap in swaps}
            # All rows move in one transaction, so one of them decides.
            if True not in outcomes and False in outcomes:
                raise swap_conflict(swaps)
            return True if True in outcomes else None

        what = f"whether the commit to {names} was made"
        until_known(attempt, find, self._settings.name, what, before_retry)

    def _outcome_of(self, swap: LocationSwap) -> bool | None:
        """Whether a row was moved; ``None`` while it is as before, or if no file shows it."""
        ours = swap.after.location

        def find(statements: SqlStatements) -> tuple[str | None, bool]:
            return statements.location(swap.name), statements.is_any_at(ours)

        location, is_any_at_ours = self._database.read(lambda t: find(self._statements(t))) or (None, False)
        return is_any_at_ours or swap_outcome(swap, location, lambda file: self._metadata(swap.name, file))

    def _write_until_known(
        self, act: Callable[[SqlStatements], T], what: str, before_retry: BeforeRetry = retry_always
    ) -> T:
        """Run a transaction that has the same result if it is run twice."""
        return until_known(lambda: self._write(act), lambda _: None, self._settings.name, what, before_retry)

    def _write(self, act: Callable[[SqlStatements], T]) -> T:
        def run(statements: SqlStatements) -> T:
            statements.create_missing_tables()
            return act(statements)

        try:
            return self._database.write(lambda t: run(self._statements(t)))
        except DuplicateRow:
            # Another process created the catalog's tables at the same time.
            return self._database.write(lambda t: run(self._statements(t)))

    def _statements(self, transaction: SqlTransaction) -> SqlStatements:
        return SqlStatements(transaction, self._settings.name)

    def _location(self, name: TableName) -> str | None:
        return self._database.read(lambda t: self._statements(t).location(name))

    def _metadata(self, name: TableName, location: str) -> Json:
        return checked_metadata(name, read_metadata(name, location, self.files.read), location)


def _move_rows(statements: SqlStatements, swaps: Sequence[LocationSwap]) -> None:
    # In one order for every process, so that two of them do not wait for each other's rows.
    for swap in sorted(swaps, key=lambda one: one.name):
        new = swap.after.location
        if swap.base is None:
            is_moved = statements.insert(swap.name, new)
        else:
            is_moved = statements.swap(swap.name, swap.base.location, new)
        if not is_moved:
            raise swap_conflict([swap])
