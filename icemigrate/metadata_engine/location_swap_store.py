"""What stores have in common that commit a table by a swap of the location of its metadata file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import CatalogError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.location_swaps import (
    LocationSwap,
    carry_out_swaps,
    load_current,
    prepare_swap,
)
from icemigrate.metadata_engine.recent_tables import RecentValues
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    FileStore,
    StoredTable,
    TableCommit,
    retry_always,
)


class LocationSwapStore(ABC):
    """Loads and commits tables; see :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

    def __init__(self, settings: CatalogSettings, files: FileStore) -> None:
        self.files = files
        self._settings = settings
        self._recent = RecentValues[TableName, StoredTable]()

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        return self._settings.properties

    def load(self, name: TableName) -> StoredTable | None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        return load_current(name, self._location, self._recent, self.files)

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        swaps = [prepare_swap(commit, self.default_location) for commit in commits]
        tables = carry_out_swaps(swaps, self.files, lambda: self._swap(swaps, before_retry))
        for swap in swaps:
            self._recent.keep(swap.name, swap.after)
        return tables

    def default_location(self, name: TableName) -> str:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        location = self._location_of_new(name)
        if location is None:
            raise CatalogError(
                f"catalog `{self._settings.name}` has no `warehouse`, so a new table has no location",
                "set `warehouse` of the environment's catalog, or write the table's `location`",
            )
        return location

    @abstractmethod
    def _location(self, name: TableName) -> str | None:
        """The location that the catalog has for a table; ``None`` where there is no such table."""

    @abstractmethod
    def _location_of_new(self, name: TableName) -> str | None:
        """The location of a new table that declares none; ``None`` without a warehouse."""

    @abstractmethod
    def _swap(self, swaps: Sequence[LocationSwap], before_retry: BeforeRetry) -> None:
        """Swap the locations of all tables, or of none."""
