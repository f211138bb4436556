"""The embedded catalog: a SQLite file read by Python's own library, so that planning starts at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, Capabilities
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.file_layouts import layout_of
from icemigrate.catalog.metadata_files import (
    checked_metadata,
    older_metadata,
    read_current_metadata,
    read_view,
)
from icemigrate.catalog.pyiceberg_files import file_io
from icemigrate.catalog.reader_parts import joined_location, to_table
from icemigrate.catalog.sql_rows import (
    NAMESPACES,
    NO_ROWS,
    TABLES,
    CatalogRows,
    location_query,
    read_rows,
    stored_namespace,
)
from icemigrate.catalog.sqlite_errors import convert_sqlite_errors
from icemigrate.catalog.value_counts import count_missing_values, count_rows_with_values
from icemigrate.catalog.written_types import wider_files_of
from icemigrate.errors import CatalogError
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues, ValueShare, WiderFiles
from icemigrate.iceberg.metadata import FORM
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import FilesBySpec
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Type
from icemigrate.iceberg.views import View
from icemigrate.system.activity import reading_tables
from icemigrate.system.process import pause_garbage_collection
from icemigrate.system.waits import announce_if_slow

BUSY_SECONDS = 10.0
"""How long to wait for a writer; a commit takes milliseconds."""
_Read = TypeVar("_Read")


class SqliteCatalog:
    """A SQL catalog in one SQLite file, with local metadata files (others are read with PyIceberg).

    Every call reads the database anew, within one short transaction; no connection and no value is kept.

    :param busy_seconds: how long to wait for a locked database.
    """

    def __init__(self, settings: CatalogSettings, busy_seconds: float = BUSY_SECONDS) -> None:
        self.settings = settings
        self._path = database_path(settings)
        self._busy_seconds = busy_seconds
        self._read_bytes = file_io(settings)

    @property
    def capabilities(self) -> Capabilities:
        """What a SQLite catalog can do."""
        return CAPABILITY_MATRIX["sqlite"]

    @property
    def identity(self) -> str:
        """File and name: the name is the key of the rows."""
        return f"sqlite:{self._path.resolve()}#{self.settings.name}"

    def load(
        self,
        names: Iterable[TableName],
        *,
        with_writers: bool = False,
        known: Mapping[TableName, Table] | None = None,
    ) -> Mapping[TableName, Table | None]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        locations, wanted = self._rows().tables, tuple(names)
        tables: dict[TableName, Table | None] = {}
        with pause_garbage_collection(), reading_tables(len(wanted)) as count_one:
            for name in wanted:
                location = locations.get(name)
                # One metadata file at a time is in memory.
                if location is None:
                    tables[name] = None
                    continue
                there = None if known is None else known.get(name)
                found = read_current_metadata(name, location, self.metadata_location, self._read_bytes, FORM)
                tables[name] = None if found is None else to_table(name, *found, with_writers, there)
                count_one()
        return tables

    def metadata_json(self, name: TableName) -> dict[str, Any] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        found = self._current(name)
        return None if found is None else checked_metadata(name, *found)

    def _current(self, name: TableName) -> tuple[Any, str] | None:
        """The JSON of a table's metadata file, and its location."""
        location = self.metadata_location(name)
        if location is None:
            return None
        return read_current_metadata(name, location, self.metadata_location, self._read_bytes)

    def metadata_at(self, name: TableName, location: str) -> dict[str, Any] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return older_metadata(name, location, self._read_bytes)

    def layout(self, name: TableName) -> FilesBySpec | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        found = self._current(name)
        return None if found is None else layout_of(found[0], self._read_bytes)

    def rows_with_values(
        self, name: TableName, fields: Mapping[int, frozenset[int]]
    ) -> Mapping[int, ValueShare] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return None if metadata is None else count_rows_with_values(metadata, self._read_bytes, fields)

    def missing_values(
        self, name: TableName, snapshot_id: int, fields: Mapping[int, FieldQuery]
    ) -> Mapping[int, MissingValues] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return (
            None
            if metadata is None
            else count_missing_values(metadata, self._read_bytes, snapshot_id, fields)
        )

    def wider_files(self, name: TableName, fields: Mapping[int, Type]) -> Mapping[int, WiderFiles] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return None if metadata is None else wider_files_of(metadata, self._read_bytes, fields)

    def metadata_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        # A command that asks for each table reads no other rows; all of them say why there is no such table.
        found = self._read(lambda connection: self._location(connection, name), None)
        return found or self._rows().tables.get(name)

    def read_file(self, location: str) -> bytes:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return self._read_bytes(location)

    def tables(self, namespace: tuple[str, ...] | None = None) -> tuple[TableName, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return tuple(sorted(t for t in self._rows().tables if namespace is None or t.namespace == namespace))

    def views(self, namespace: tuple[str, ...]) -> tuple[TableName, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return tuple(sorted(view for view in self._rows().views if view.namespace == namespace))

    def load_views(self, names: Iterable[TableName]) -> tuple[View, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        there = self._rows().views
        return tuple(read_view(name, there[name], self._read_bytes) for name in names if name in there)

    def namespaces(self, among: Iterable[tuple[str, ...]] | None = None) -> tuple[tuple[str, ...], ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        found = self._rows().namespaces
        return found if among is None else tuple(sorted(set(among).intersection(found)))

    def default_location(self, name: TableName) -> str:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return joined_location(self.settings.warehouse, name)

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _rows(self) -> CatalogRows:
        return self._read(self._all_rows, NO_ROWS)

    def _read(self, read: Callable[[sqlite3.Connection], _Read], empty: _Read) -> _Read:
        """What a function reads in one transaction.

        :param empty: what it reads of a catalog that no client has written yet.
        """
        # Before the first apply there is no database: that is an empty catalog.
        with (
            convert_sqlite_errors(self._path),
            announce_if_slow(f"Waiting for the catalog {self._path}: another process writes to it …"),
        ):
            if not self._path.exists():
                return empty
            if not self._path.is_file() and not self._path.is_dir():
                raise CatalogError(
                    f"the catalog {self._path} is not a regular file", "name a SQLite file as its `uri`"
                )
            try:
                return self._read_with("ro", read)
            except sqlite3.OperationalError as error:
                # A writer that was killed leaves a journal, and a reader without the right to write cannot
                # roll it back.
                file = self._path.resolve()  # SQLite follows links too
                is_left = file.with_name(f"{file.name}-journal").exists()
                if not is_left or "locked" in str(error):
                    raise
                return self._read_with("rw", read)

    def _read_with(self, mode: str, read: Callable[[sqlite3.Connection], _Read]) -> _Read:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}", uri=True, timeout=self._busy_seconds
        )
        try:
            # The file may come from anyone: its views must not run functions with effects.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            return read(connection)
        finally:
            connection.close()

    def _all_rows(self, connection: sqlite3.Connection) -> CatalogRows:
        return read_rows(connection.execute, partial(_columns, connection), self.settings)

    def _location(self, connection: sqlite3.Connection, name: TableName) -> str | None:
        select = location_query(partial(_columns, connection))
        if select is None:
            return None
        key = (self.settings.name, stored_namespace(name.namespace), name.name)
        found = connection.execute(select, key).fetchone()
        return None if found is None else found[0]


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def database_path(settings: CatalogSettings) -> Path:
    """The SQLite file of a catalog's URI: ``path``, ``sqlite:///path`` or ``jdbc:sqlite:path``.

    Options after ``?`` are for other clients and ignored.

    :raises CatalogError: there is no URI, or it names no file.
    """
    text = (settings.uri or "").removeprefix("jdbc:")
    for prefix in ("sqlite:///", "sqlite:", "file:"):
        text = text.removeprefix(prefix)
    path = text.partition("?")[0]
    if not path or path == ":memory:" or "://" in path:
        raise CatalogError(
            f"catalog `{settings.name}`: `{settings.public_uri}` names no SQLite file",
            "write `uri: sqlite:///path/to/catalog.db`",
        )
    return Path(path)


def catalog_names(path: Path) -> tuple[str, ...]:
    """The names of the catalogs in a SQLite file, sorted; none in a file that no client has written yet.

    :raises CatalogError: it cannot be read, or is no SQLite file.
    """
    with convert_sqlite_errors(path):
        if not path.exists():
            return ()
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            found = set[str]()
            for table in (TABLES, NAMESPACES):
                if connection.execute("SELECT 1 FROM pragma_table_info(?)", (table,)).fetchone():
                    found |= {row[0] for row in connection.execute(f"SELECT catalog_name FROM {table}")}
            return tuple(sorted(found))
        finally:
            connection.close()
