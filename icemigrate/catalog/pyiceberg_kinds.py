"""The kinds of catalogs that PyIceberg reaches.

Only this file and :mod:`~icemigrate.catalog.rest_client` use parts of PyIceberg that are not its public API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, Capabilities, kind_of, with_endpoints
from icemigrate.catalog.catalog_kind import (
    CatalogKind,
    Find,
    MetadataDocument,
    Namespace,
    find_by_location,
    in_threads,
)
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.pyiceberg_files import file_io
from icemigrate.catalog.reader_parts import joined_location
from icemigrate.catalog.rest_client import RestClient, catalog_properties
from icemigrate.catalog.sql_kind import SqlKind
from icemigrate.errors import CatalogError
from icemigrate.iceberg.json_text import object_form
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.views import View, view_from_json
from icemigrate.system.deadline import call_with_deadline

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as TheirCatalog
    from pyiceberg.catalog.glue import GlueCatalog
    from pyiceberg.catalog.hive import HiveCatalog


class _ByPyIceberg:
    """The common part of REST, Glue and Hive: names come from PyIceberg's public methods."""

    _catalog: TheirCatalog
    _settings: CatalogSettings
    is_remote = True

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return CAPABILITY_MATRIX[kind_of(self._settings.type, self._settings.uri)]

    def tables(self, namespace: Namespace) -> list[TableName]:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        try:
            found = self._catalog.list_tables(namespace)
        except NoSuchNamespaceError:
            return []
        return [TableName(tuple(identifier[:-1]), identifier[-1]) for identifier in found]

    def views(self, namespace: Namespace) -> list[TableName]:
        """None: PyIceberg lists views of REST catalogs only."""
        return []

    def view(self, name: TableName) -> View | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        return None

    def namespaces(self, among: frozenset[Namespace] | None = None) -> set[Namespace]:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        if among is not None:
            return self._below(sorted({one[:-1] for one in among if one})) & among
        found: set[Namespace] = set()
        above: list[Namespace] = [()]
        while above:
            new = self._below(above) - found
            found |= new
            above = sorted(new) if self.capabilities.nested_namespaces else []
        return found

    def _below(self, above: Sequence[Namespace]) -> set[Namespace]:
        """The namespaces directly in any of these; several are listed at once."""
        seconds = self._settings.timeout_s
        listed = in_threads(lambda one: call_with_deadline(seconds, partial(self.children, one)), above)
        return {namespace for namespaces in listed for namespace in namespaces}

    def children(self, parent: Namespace) -> set[Namespace]:
        """The namespaces directly in a namespace; none where it does not exist."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with suppress(NoSuchNamespaceError):
            listed = {tuple(namespace) for namespace in self._catalog.list_namespaces(parent)}
            # Some servers ignore the parent and list the top again.
            return {one for one in listed if one[: len(parent)] == parent and len(one) > len(parent)}
        return set()

    def default_location(self, name: TableName) -> str | None:
        """A namespace's own ``location`` comes first; a REST server's ``warehouse`` need not
        be a location.
        """
        from pyiceberg.exceptions import NoSuchNamespaceError

        with suppress(NoSuchNamespaceError):
            location = self._catalog.load_namespace_properties(name.namespace).get("location")
            if location:
                return f"{location.rstrip('/')}/{name.name}"
        warehouse = self._settings.warehouse
        if warehouse is None or ":/" not in warehouse:
            return None
        if self._settings.type in ("glue", "hive"):
            return f"{warehouse.rstrip('/')}/{name.namespace[0]}.db/{name.name}"
        return joined_location(warehouse, name)

    def close(self) -> None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        self._catalog.close()


class RestKind(_ByPyIceberg):
    """A REST catalog: its answer to "load this table" contains the metadata, so no file is read.

    :ivar client: for requests that other classes make.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self.client = RestClient(settings)
        self._catalog = self.client.catalog

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the server lists in its configuration."""
        return with_endpoints(super().capabilities, self.client.endpoints)

    def finder(self, names: Iterable[TableName], whole: bool, form: Any = Any) -> Find:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        answer_form = Any if form is Any else object_form({"metadata-location": Any, "metadata": form})

        def find(name: TableName) -> MetadataDocument | None:
            answer = self._load(name, whole, answer_form)
            return (
                None
                if answer is None
                else MetadataDocument(answer["metadata"], answer.get("metadata-location"))
            )

        return find

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        answer = self._load(name, whole=False)
        return None if answer is None else answer.get("metadata-location")

    def views(self, namespace: Namespace) -> list[TableName]:
        """The server lists them only where its configuration names the endpoint, as in Iceberg's library."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with suppress(NoSuchNamespaceError):
            listed = self._catalog.list_views(namespace)
            return [TableName(tuple(identifier[:-1]), identifier[-1]) for identifier in listed]
        return []

    def view(self, name: TableName) -> View | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        answer = self.client.find(self.client.path(name, "views"), {})
        try:
            return None if answer is None else view_from_json(answer.get("metadata"), name)
        except BadMetadata as error:
            return View(name, problem=str(error))

    def _load(self, name: TableName, whole: bool, form: Any = Any) -> dict[str, Any] | None:
        return self.client.find(self.client.path(name), {"snapshots": "all" if whole else "refs"}, form)


class GlueKind(_ByPyIceberg):
    """AWS Glue: a table's parameters contain the metadata's location."""

    _catalog: GlueCatalog

    def __init__(self, settings: CatalogSettings) -> None:
        from pyiceberg.catalog.glue import GlueCatalog

        self._settings = settings
        self._read = file_io(settings)
        self._catalog = GlueCatalog(settings.name, **catalog_properties(settings))

    @property
    def client(self) -> Any:
        """The client of boto3, for requests that other classes make."""
        return self._catalog.glue

    @property
    def skips_archive(self) -> bool:
        """Whether Glue keeps no older version of a table after a commit (``glue.skip-archive``)."""
        return str(self._catalog.properties.get("glue.skip-archive", "true")).lower() == "true"

    def finder(self, names: Iterable[TableName], whole: bool, form: Any = Any) -> Find:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        seconds = self._settings.timeout_s

        def find_location(name: TableName) -> str | None:
            return call_with_deadline(seconds, lambda: self.location(name))

        return find_by_location(find_location, find_location, self._read, form)

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        from pyiceberg.exceptions import NoSuchTableError

        if len(name.namespace) != 1:
            return None
        try:
            table = self._catalog._get_glue_table(name.namespace[0], name.name)
        except NoSuchTableError:
            return None
        return location_parameter(name, table.get("Parameters") or {})


class HiveKind(_ByPyIceberg):
    """A Hive metastore: as Glue, over one connection that threads cannot share."""

    _catalog: HiveCatalog

    def __init__(self, settings: CatalogSettings) -> None:
        from pyiceberg.catalog.hive import HiveCatalog

        self._settings = settings
        self._read = file_io(settings)
        self._catalog = HiveCatalog(settings.name, **catalog_properties(settings))

    def connect(self) -> AbstractContextManager[Any]:
        """A new connection to the metastore, as Thrift's client: threads cannot share one."""
        return self._catalog._create_hive_client(dict(self._catalog.properties))

    def finder(self, names: Iterable[TableName], whole: bool, form: Any = Any) -> Find:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        seconds = self._settings.timeout_s
        locations = {name: call_with_deadline(seconds, partial(self.location, name)) for name in names}
        # The one connection is for one thread, but tables are read in several.
        return find_by_location(locations.get, locations.get, self._read, form)

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.catalog.catalog_kind.CatalogKind`."""
        from pyiceberg.exceptions import NoSuchTableError

        if len(name.namespace) != 1:
            return None
        try:
            with self._catalog._client as client:
                table = self._catalog._get_hive_table(client, name.namespace[0], name.name)
        except NoSuchTableError:
            return None
        return location_parameter(name, table.parameters or {})


def location_parameter(name: TableName, parameters: Mapping[str, str]) -> str:
    """The metadata's location in a metastore's parameters of a table.

    :raises CatalogError: it is a table, but not one of Iceberg.
    """
    location = parameters.get("metadata_location")
    if parameters.get("table_type", "").lower() != "iceberg" or not location:
        raise CatalogError(
            f"`{name}` is a table, but not an Iceberg table", "rename one of the two, or convert the table"
        )
    return location


PYICEBERG_KINDS: dict[str, Callable[[CatalogSettings], CatalogKind]] = {
    "sql": SqlKind,
    "rest": RestKind,
    "glue": GlueKind,
    "hive": HiveKind,
}
"""Opening one may use the network."""
