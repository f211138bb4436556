"""A catalog in a database, by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, Capabilities
from icemigrate.catalog.catalog_kind import Find, Namespace, find_by_location
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import local_path, read_view
from icemigrate.catalog.pyiceberg_files import file_io
from icemigrate.catalog.reader_parts import joined_location
from icemigrate.catalog.sql_engine import open_engine, table_columns
from icemigrate.catalog.sql_rows import NO_ROWS, CatalogRows, read_rows
from icemigrate.catalog.sqlite_reader import database_path
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View
from icemigrate.system.deadline import call_with_deadline


class SqlKind:
    """A database that SQLAlchemy supports: two queries return the locations of every table's metadata."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._read = file_io(settings)
        self._engine = open_engine(settings)
        # Opening a missing SQLite file creates it, and reading must not create anything.
        self._file = database_path(settings) if self._engine.dialect.name == "sqlite" else None

    def finder(self, names: Iterable[TableName], whole: bool, form: Any = Any) -> Find:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return find_by_location(self._rows().tables.get, self.location, self._read, form)

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return self._rows().tables.get(name)

    def tables(self, namespace: Namespace) -> list[TableName]:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return [table for table in self._rows().tables if table.namespace == namespace]

    def views(self, namespace: Namespace) -> list[TableName]:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return [view for view in self._rows().views if view.namespace == namespace]

    def view(self, name: TableName) -> View | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        location = self._rows().views.get(name)
        return None if location is None else read_view(name, location, self._read)

    def namespaces(self, among: frozenset[Namespace] | None = None) -> set[Namespace]:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        found = set(self._rows().namespaces)
        return found if among is None else found & among

    def default_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return joined_location(self._settings.warehouse, name)

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return CAPABILITY_MATRIX["sql"]

    @property
    def is_remote(self) -> bool:
        """Whether metadata files are on other machines; the database itself takes only two queries."""
        return local_path(self._settings.warehouse or "") is None

    def close(self) -> None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        self._engine.dispose()

    def _rows(self) -> CatalogRows:
        from sqlalchemy import text

        if self._file is not None and not self._file.exists():
            return NO_ROWS

        def read() -> CatalogRows:
            with self._engine.connect() as connection:
                execute = connection.execute
                return read_rows(
                    lambda sql: execute(text(sql)), partial(table_columns, connection), self._settings
                )

        return call_with_deadline(self._settings.timeout_s, read)
