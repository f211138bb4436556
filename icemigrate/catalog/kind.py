"""What differs between kinds of catalogs, and what they share: each is asked for the raw metadata.

PyIceberg's own ``load_table`` is not used: it cannot read every table (``variant``, parts of version 3) and
is slow with many snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.catalog.files import ReadBytes, read_metadata
from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName

Namespace = tuple[str, ...]

THREADS = 16
"""How many tables are read at once over a network; on one machine threads only cost."""


class Document(Frozen):
    """A table's metadata as its catalog hands it out."""

    json: Any
    location: str | None


Find = Callable[[TableName], "Document | None"]
"""Gets one table; may be called from several threads."""


class Kind(Protocol):
    """What differs between kinds; the methods raise whatever the libraries below raise."""

    def finder(self, names: Iterable[TableName], whole: bool) -> Find:
        """Gets tables of these names; snapshots that no reference holds may be left out unless ``whole``."""
        ...

    def location(self, name: TableName) -> str | None:
        """Where the table's metadata file lies."""
        ...

    def tables(self, namespace: Namespace) -> list[TableName]:
        """Tables right in a namespace; none where there is no such namespace."""
        ...

    def namespaces(self) -> set[Namespace]:
        """All of them."""
        ...

    def default_location(self, name: TableName) -> str | None:
        """Where Spark would put a table; ``None`` where only the server knows."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether a network lies between."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def found_at(location_of: Callable[[TableName], str | None], read: ReadBytes) -> Find:
    """Gets tables of a catalog that tells where their metadata files are, and no more."""

    def find(name: TableName) -> Document | None:
        location = location_of(name)
        return None if location is None else Document(read_metadata(name, location, read), location)

    return find
