"""One reader for every catalog that PyIceberg reaches; imported only where it is needed, because that is
slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.catalog.catalog_kind import CatalogKind, Find, MetadataDocument, in_threads
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.file_layouts import layout_of
from icemigrate.catalog.library_errors import convert_library_errors
from icemigrate.catalog.metadata_files import checked_metadata, older_metadata
from icemigrate.catalog.pyiceberg_files import file_io
from icemigrate.catalog.pyiceberg_kinds import PYICEBERG_KINDS
from icemigrate.catalog.reader_parts import to_table
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
from icemigrate.redaction import guard_logging, redact_secrets
from icemigrate.system.activity import reading_tables
from icemigrate.system.deadline import call_with_deadline
from icemigrate.system.process import pause_garbage_collection

T = TypeVar("T")


class PyIcebergCatalog:
    """A SQL, REST, Glue or Hive catalog; it connects on the first call."""

    def __init__(self, settings: CatalogSettings) -> None:
        self.settings = settings
        guard_logging()

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`; a REST server is queried."""
        return self._kind.capabilities

    @property
    def identity(self) -> str:
        """Address and warehouse; on SQL catalogs the name too, since it is the key of the rows."""
        settings = self.settings
        region = settings.properties.get("glue.region") or settings.properties.get("client.region") or ""
        where = settings.public_uri or "/".join(filter(None, (region, settings.properties.get("glue.id"))))
        within = settings.name if settings.type == "sql" else settings.warehouse or ""
        return redact_secrets(f"{settings.type}:{where}#{within}")

    def load(
        self,
        names: Iterable[TableName],
        *,
        with_writers: bool = False,
        known: Mapping[TableName, Table] | None = None,
    ) -> Mapping[TableName, Table | None]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        wanted = tuple(dict.fromkeys(names))
        with (
            convert_library_errors(self.settings),
            pause_garbage_collection(),
            reading_tables(len(wanted)) as count_one,
        ):
            find = self._kind.finder(wanted, with_writers, FORM)

            def table(name: TableName) -> Table | None:
                document = self._found(find, name)
                count_one()
                if document is None:
                    return None
                there = None if known is None else known.get(name)
                return to_table(name, document.json, document.location, with_writers, there)

            return dict(zip(wanted, self._map(table, wanted), strict=True))

    def metadata_json(self, name: TableName) -> dict[str, Any] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        document = self._document(name)
        return None if document is None else checked_metadata(name, document.json, document.location)

    def _document(self, name: TableName) -> MetadataDocument | None:
        with convert_library_errors(self.settings):
            return self._found(self._kind.finder((name,), whole=True), name)

    def metadata_at(self, name: TableName, location: str) -> dict[str, Any] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return older_metadata(name, location, file_io(self.settings))

    def layout(self, name: TableName) -> FilesBySpec | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        document = self._document(name)
        return None if document is None else layout_of(document.json, file_io(self.settings))

    def rows_with_values(
        self, name: TableName, fields: Mapping[int, frozenset[int]]
    ) -> Mapping[int, ValueShare] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return None if metadata is None else count_rows_with_values(metadata, file_io(self.settings), fields)

    def missing_values(
        self, name: TableName, snapshot_id: int, fields: Mapping[int, FieldQuery]
    ) -> Mapping[int, MissingValues] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return (
            None
            if metadata is None
            else count_missing_values(metadata, file_io(self.settings), snapshot_id, fields)
        )

    def wider_files(self, name: TableName, fields: Mapping[int, Type]) -> Mapping[int, WiderFiles] | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        metadata = self.metadata_json(name)
        return None if metadata is None else wider_files_of(metadata, file_io(self.settings), fields)

    def metadata_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        with convert_library_errors(self.settings):
            return self._in_time(lambda: self._kind.location(name))

    def read_file(self, location: str) -> bytes:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        return file_io(self.settings)(location)

    def tables(self, namespace: tuple[str, ...] | None = None) -> tuple[TableName, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        with convert_library_errors(self.settings):
            namespaces = self._kind.namespaces() if namespace is None else (namespace,)
            found = self._map(lambda one: self._in_time(lambda: self._kind.tables(one)), tuple(namespaces))
            return tuple(sorted(table for tables in found for table in tables))

    def views(self, namespace: tuple[str, ...]) -> tuple[TableName, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        with convert_library_errors(self.settings):
            return tuple(sorted(self._in_time(lambda: self._kind.views(namespace))))

    def load_views(self, names: Iterable[TableName]) -> tuple[View, ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        with convert_library_errors(self.settings):
            found = self._map(lambda name: self._in_time(lambda: self._kind.view(name)), tuple(names))
            return tuple(view for view in found if view is not None)

    def namespaces(self, among: Iterable[tuple[str, ...]] | None = None) -> tuple[tuple[str, ...], ...]:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        with convert_library_errors(self.settings):
            return tuple(sorted(self._kind.namespaces(None if among is None else frozenset(among))))

    def default_location(self, name: TableName) -> str:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`.

        :raises CatalogError: only the server knows it.
        """
        with convert_library_errors(self.settings):
            location = self._in_time(lambda: self._kind.default_location(name))
        if location is None:
            raise CatalogError(
                f"only the catalog `{self.settings.name}` knows the location of a new table `{name}`",
                "write the table's `location`",
            )
        return location

    def close(self) -> None:
        """See :class:`~icemigrate.catalog.catalog_port.Catalog`."""
        if "_kind" in self.__dict__:
            self._kind.close()
            del self.__dict__["_kind"]

    @cached_property
    def _kind(self) -> CatalogKind:
        with convert_library_errors(self.settings):
            return self._in_time(lambda: PYICEBERG_KINDS[self.settings.type](self.settings))

    def _in_time(self, act: Callable[[], T]) -> T:
        """The result of a call, limited by the catalog's timeout."""
        return call_with_deadline(self.settings.timeout_s, act)

    def _found(self, find: Find, name: TableName) -> MetadataDocument | None:
        """Load one table: an answer of a REST server contains its metadata; other kinds read a file, part by
        part.
        """
        return self._in_time(lambda: find(name)) if self.settings.type == "rest" else find(name)

    def _map(self, function: Callable[[Any], T], items: tuple[Any, ...]) -> list[T]:
        """Call a function for each item, in parallel where it mostly waits."""
        return in_threads(function, items) if self._kind.is_remote else list(map(function, items))
