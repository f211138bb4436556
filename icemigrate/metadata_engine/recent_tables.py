"""The tables that were used last, so that a metadata file is read and parsed once."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.table_store import StoredTable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST = 16
"""Enough for the history and the tables of one step; a table of many snapshots takes megabytes."""


class RecentValues(Generic[K, V]):
    """A mapping that forgets the value whose last use is the longest ago; thread-safe.

    :param most: the number of values that it keeps.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self._mutex = Lock()

    def get(self, key: K) -> V | None:
        """The value of a key; ``None`` where there is none."""
        with self._mutex:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value  # the end of a dictionary is its newest key
            return value

    def keep(self, key: K, value: V) -> None:
        """Set the value of a key."""
        with self._mutex:
            self._values.pop(key, None)
            self._values[key] = value
            while len(self._values) > self._most:
                del self._values[next(iter(self._values))]


class RecentTables:
    """Tables of stored metadata; the same metadata object gives the same table."""

    def __init__(self) -> None:
        self._recent = RecentValues[TableName, tuple[StoredTable, Table]]()

    def of(self, stored: StoredTable, name: TableName) -> Table:
        """The table of stored metadata.

        :raises BadMetadata: as :func:`~icemigrate.iceberg.metadata.table_from_json`.
        """
        known = self._recent.get(name)
        if known is None or known[0] is not stored:
            known = stored, table_from_json(stored.json, name)
            self._recent.keep(name, known)
        return known[1]
