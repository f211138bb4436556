"""Tables of a SQL catalog: rows in a database that name metadata files.

A commit writes new metadata files and then moves the rows to them, in one transaction.  The swap compares
the location that was read, as Java's ``JdbcTableOperations`` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import checked_metadata, read_metadata
from icemigrate.catalog.reader_parts import joined_location
from icemigrate.errors import CatalogError, EngineError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.metadata_file_names import (
    metadata_content,
    new_metadata_location,
    removed_metadata_files,
)
from icemigrate.metadata_engine.recent_tables import RecentValues
from icemigrate.metadata_engine.sql_database import DuplicateRow, SqlDatabase, SqlTransaction
from icemigrate.metadata_engine.sql_statements import SqlStatements
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitConflict,
    CommitRefused,
    CommitStateUnknown,
    FileStore,
    Json,
    StoredTable,
    TableCommit,
    retry_always,
)
from icemigrate.metadata_engine.uncertain_outcome import until_known

T = TypeVar("T")


class _Change(Frozen):
    """A commit with its new metadata file."""

    name: TableName
    base: StoredTable | None
    after: StoredTable


class SqlTableStore:
    """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

    commits_together = True

    def __init__(self, settings: CatalogSettings, database: SqlDatabase, files: FileStore) -> None:
        self.files = files
        self._settings = settings
        self._database = database
        # A metadata file never changes: where a row names the same file again, its table is the same.
        self._recent = RecentValues[TableName, StoredTable]()

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        return self._settings.properties

    def load(self, name: TableName) -> StoredTable | None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        location = self._database.read(lambda t: self._statements(t).location(name))
        if location is None:
            return None
        known = self._recent.get(name)
        if known is None or known.location != location:
            known = StoredTable(location, self._metadata(name, location))
            self._recent.keep(name, known)
        return known

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        changes = [self._prepare(commit) for commit in commits]
        written: list[str] = []
        is_swapping = False
        try:
            for change in changes:
                written.append(change.after.location)
                self.files.write(change.after.location, metadata_content(change.after.json))
            is_swapping = True
            self._swap(changes, before_retry)
        except CommitStateUnknown:
            raise
        except (CatalogError, EngineError) as error:
            self._delete(written)
            if isinstance(error, CommitRefused):
                raise
            raise CommitRefused(error.message, error.hint) from error
        except BaseException:
            # An interrupted swap may have been committed: then the catalog refers to the files.
            if not is_swapping:
                self._delete(written)
            raise
        for change in changes:
            self._recent.keep(change.name, change.after)
            if change.base is not None:
                self._delete(removed_metadata_files(change.base.json, change.after.json))
        return tuple(change.after for change in changes)

    def default_location(self, name: TableName) -> str:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        if not self._settings.warehouse:
            raise CatalogError(
                f"catalog `{self._settings.name}` has no `warehouse`, so a new table has no location",
                "set `warehouse` of the environment's catalog, or write the table's `location`",
            )
        return joined_location(self._settings.warehouse, name)

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

    def _prepare(self, commit: TableCommit) -> _Change:
        base = commit.base
        now_ms = time.time_ns() // 1_000_000
        if base is not None:
            # Java refuses metadata that is older than its snapshots; clocks of machines differ.
            now_ms = max(now_ms, int(base.json["last-updated-ms"]))
        updates = commit.updates
        if base is None and not any(update["action"] == "set-location" for update in updates):
            updates += ({"action": "set-location", "location": self.default_location(commit.name)},)
        json = apply_updates(
            None if base is None else base.json,
            updates,
            previous_location=None if base is None else base.location,
            now_ms=now_ms,
        )
        return _Change(commit.name, base, StoredTable(new_metadata_location(json, base), json))

    def _swap(self, changes: Sequence[_Change], before_retry: BeforeRetry) -> None:
        """Move all rows, or none."""
        names = ", ".join(f"`{change.name}`" for change in changes)

        def attempt() -> bool:
            self._write(lambda s: _move_rows(s, changes))
            return True

        def find(_: CommitConflict | None) -> bool | None:
            outcomes = {self._outcome_of(change) for change in changes}
            # All rows move in one transaction, so one of them decides.
            if True not in outcomes and False in outcomes:
                raise _conflict(changes)
            return True if True in outcomes else None

        what = f"whether the commit to {names} was made"
        until_known(attempt, find, self._settings.name, what, before_retry)

    def _outcome_of(self, change: _Change) -> bool | None:
        """Whether a row was moved; ``None`` while it is as before, or if no file shows it."""
        ours, base = change.after.location, change.base

        def find(statements: SqlStatements) -> tuple[str | None, bool]:
            return statements.location(change.name), statements.is_any_at(ours)

        location, is_any_at_ours = self._database.read(lambda t: find(self._statements(t))) or (None, False)
        if is_any_at_ours:
            return True
        if location is None or (base is not None and location == base.location):
            return None
        metadata = self._metadata(change.name, location)
        if base is None:
            return bool(metadata.get("table-uuid") == change.after.json["table-uuid"])
        log = {entry["metadata-file"] for entry in metadata.get("metadata-log", ())}
        if ours in log:
            return True
        # The next writer logs the file that it found, unless the log is too short for it.
        return False if base.location in log else None

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

    def _metadata(self, name: TableName, location: str) -> Json:
        return checked_metadata(name, read_metadata(name, location, self.files.read), location)

    def _delete(self, locations: Sequence[str]) -> None:
        for location in locations:
            self.files.delete(location)


def _move_rows(statements: SqlStatements, changes: Sequence[_Change]) -> None:
    # In one order for every process, so that two of them do not wait for each other's rows.
    for change in sorted(changes, key=lambda one: one.name):
        new = change.after.location
        if change.base is None:
            is_moved = statements.insert(change.name, new)
        else:
            is_moved = statements.swap(change.name, change.base.location, new)
        if not is_moved:
            raise _conflict([change])


def _conflict(changes: Sequence[_Change]) -> CommitConflict:
    created = [f"`{change.name}`" for change in changes if change.base is None]
    if len(created) == len(changes):
        return CommitConflict(f"there is a table or view {', '.join(created)} already")
    names = ", ".join(f"`{change.name}`" for change in changes)
    return CommitConflict(f"another client changed {names} first; nothing was written")
