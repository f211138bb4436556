"""The differences between kinds of catalogs: each returns a table's raw metadata.

PyIceberg's own ``load_table`` is not used: it cannot read every table (``variant``, parts of version 3) and
is slow with many snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.catalog.metadata_files import ReadBytes, read_current_metadata
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View

Namespace = tuple[str, ...]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREADS = 16
"""How many tables are read at once over a network; on one machine threads only cost."""


class MetadataDocument(Frozen):
    """A table's metadata as its catalog hands it out."""

    json: Any
    location: str | None


Find = Callable[[TableName], "MetadataDocument | None"]
"""Gets one table; may be called from several threads."""


class CatalogKind(Protocol):
    """One kind of catalog; its methods raise the exceptions of the libraries that it calls."""

    def finder(self, names: Iterable[TableName], whole: bool, form: Any = Any) -> Find:
        """A function that finds tables of these names; without ``whole`` it may omit snapshots without a
        reference.

        :param form: see :func:`~icemigrate.catalog.metadata_files.read_metadata`.
        """
        ...

    def location(self, name: TableName) -> str | None:
        """The location of the table's metadata file."""
        ...

    def tables(self, namespace: Namespace) -> list[TableName]:
        """Tables directly in a namespace; none where the namespace does not exist."""
        ...

    def views(self, namespace: Namespace) -> list[TableName]:
        """Views directly in a namespace; none where the catalog has no views."""
        ...

    def view(self, name: TableName) -> View | None:
        """One view; ``None`` where there is none of this name."""
        ...

    def namespaces(self, among: frozenset[Namespace] | None = None) -> set[Namespace]:
        """All namespaces, or those of ``among`` that exist."""
        ...

    def default_location(self, name: TableName) -> str | None:
        """The location that Spark would give a new table; ``None`` where only the server knows it."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the catalog."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether the catalog is reached over a network."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def in_threads(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of a function that mostly waits, called for several items at once."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(THREADS, len(items))) as pool:
        try:
            return list(pool.map(function, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def find_by_location(
    location_of: Callable[[TableName], str | None],
    find_location: Callable[[TableName], str | None],
    read: ReadBytes,
    form: Any = Any,
) -> Find:
    """Find tables of a catalog that only has the locations of their metadata files.

    :param location_of: the location, perhaps from an earlier request for all tables.
    :param find_location: asks the catalog.
    """

    def find(name: TableName) -> MetadataDocument | None:
        location = location_of(name)
        found = None if location is None else read_current_metadata(name, location, find_location, read, form)
        return None if found is None else MetadataDocument(*found)

    return find
