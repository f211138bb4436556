"""Tables of Hive and Glue: entries of a metastore that name metadata files.

Python writes the next metadata file itself and only swaps the location, as Iceberg's Java library does.
PyIceberg's own ``commit_table()`` is not used: it builds the metadata from its models, which lose keys that
they do not know, and it writes no format version 3.  The swap works for every format version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import checked_metadata, read_metadata
from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.location_swap_store import LocationSwapStore
from icemigrate.metadata_engine.location_swaps import (
    LocationSwap,
    swap_conflict,
    swap_outcome,
)
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitConflict,
    FileStore,
    StoredTable,
    TableCommit,
    retry_always,
)
from icemigrate.metadata_engine.uncertain_outcome import until_known


class Metastore(Protocol):
    """Entries of tables.

    Changes raise :class:`LostAnswer` where it is not known whether they were made.
    """

    def location(self, name: TableName) -> str | None:
        """The location of a table's metadata file; ``None`` where there is no table.

        :raises CatalogError: the table is not one of Iceberg, or the metastore cannot be reached.
        """
        ...

    def swap(self, swap: LocationSwap) -> None:
        """Move an entry from the base's location to the new one, or create it.

        :raises CommitConflict: the entry has another location, or exists already.
        """
        ...

    def default_location(self, name: TableName) -> str | None:
        """The location of a new table; ``None`` without a warehouse."""
        ...

    def rename(self, name: TableName, new: TableName) -> None:
        """Rename an entry.

        :raises CommitConflict: there is a table of the new name, or none of the old one.
        """
        ...

    def drop(self, name: TableName) -> None:
        """Remove an entry, if it exists."""
        ...

    def create_namespace(self, namespace: str) -> None:
        """Create a namespace, unless it exists."""
        ...

    def drop_namespace(self, namespace: str) -> bool:
        """Drop an empty namespace; :returns: ``False`` where it is not empty."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class MetastoreTableStore(LocationSwapStore):
    """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

    commits_together = False

    def __init__(self, settings: CatalogSettings, metastore: Metastore, files: FileStore) -> None:
        super().__init__(settings, files)
        self._metastore = metastore

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        if len(commits) > 1:
            raise EngineError(
                f"catalog `{self._settings.name}` commits one table at a time",
                "a metastore has no transaction for several tables",
            )
        return super().commit(commits, before_retry)

    def _location(self, name: TableName) -> str | None:
        return self._metastore.location(name)

    def _location_of_new(self, name: TableName) -> str | None:
        return self._metastore.default_location(name)

    def rename(self, name: TableName, new: TableName, before_retry: BeforeRetry = retry_always) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

        def attempt() -> bool:
            self._metastore.rename(name, new)
            return True

        def find(conflict: CommitConflict | None) -> bool | None:
            if self._metastore.location(name) is None and self._metastore.location(new) is not None:
                return True
            if conflict is not None:
                raise conflict
            return None

        what = f"whether table `{name}` was renamed to `{new}`"
        until_known(attempt, find, self._settings.name, what, before_retry)

    def drop(self, name: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

        def attempt() -> bool:
            self._metastore.drop(name)
            return True

        until_known(attempt, lambda _: None, self._settings.name, f"whether table `{name}` was dropped")

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        database = self._single(namespace)

        def attempt() -> bool:
            self._metastore.create_namespace(database)
            return True

        what = f"whether namespace `{database}` was created"
        until_known(attempt, lambda _: None, self._settings.name, what)

    def drop_namespace(self, namespace: tuple[str, ...], before_retry: BeforeRetry = retry_always) -> bool:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        database = self._single(namespace)
        what = f"whether namespace `{database}` was dropped"
        return until_known(
            lambda: self._metastore.drop_namespace(database),
            lambda _: None,
            self._settings.name,
            what,
            before_retry,
        )

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        self._metastore.close()

    def _swap(self, swaps: Sequence[LocationSwap], before_retry: BeforeRetry) -> None:
        (swap,) = swaps

        def attempt() -> bool:
            self._metastore.swap(swap)
            return True

        def find(_: CommitConflict | None) -> bool | None:
            location = self._metastore.location(swap.name)
            outcome = swap_outcome(swap, location, lambda file: self._metadata(swap.name, file))
            if outcome is False:
                raise swap_conflict(swaps)
            return outcome

        what = f"whether the commit to `{swap.name}` was made"
        until_known(attempt, find, self._settings.name, what, before_retry)

    def _single(self, namespace: tuple[str, ...]) -> str:
        if len(namespace) != 1:
            raise EngineError(
                f"catalog `{self._settings.name}` has no namespaces in namespaces: `{'.'.join(namespace)}`",
                "use a name without a dot",
            )
        return namespace[0]

    def _metadata(self, name: TableName, location: str) -> Json:
        return checked_metadata(name, read_metadata(name, location, self.files.read), location)
