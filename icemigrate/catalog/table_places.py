"""The folders and files of all tables of a catalog, by which tables that share files are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import CatalogError
from icemigrate.iceberg.locations import TableLocations, copies_of, table_locations, unreadable_locations
from icemigrate.iceberg.names import TableName


def places_of_tables(
    catalog: Catalog,
    metadata: Callable[[TableName], Mapping[str, Any] | None],
    is_unreadable: Callable[[TableName], bool],
) -> Iterator[TableLocations | TableName]:
    """The places of each table; of one that cannot be located, its name.

    :param metadata: a table's metadata; ``None`` where it cannot be read, or the table is gone.
    :param is_unreadable: whether the metadata of a table could not be read.
    :raises CatalogError: the tables cannot be listed.
    """
    for name in catalog.tables():
        found = metadata(name)
        if found is not None:
            yield table_locations(name, found, catalog.metadata_location(name))
        elif is_unreadable(name):
            try:
                location = catalog.metadata_location(name)
            except CatalogError:
                location = None
            yield name if location is None else unreadable_locations(name, location)


def shared_files_reason(catalog: Catalog, name: TableName) -> str | None:
    """Why the files of a table may not be deleted: another table may use them; ``None`` where none does.

    :raises CatalogError: the tables cannot be listed.
    """
    unreadable = set[TableName]()

    def metadata(of: TableName) -> Mapping[str, Any] | None:
        try:
            return catalog.metadata_json(of)
        except CatalogError:
            unreadable.add(of)
            return None

    places = list[TableLocations]()
    for place in places_of_tables(catalog, metadata, unreadable.__contains__):
        if isinstance(place, TableName):
            return f"table `{place}` cannot be read, so it may use the same files"
        places.append(place)
    mine = next((place for place in places if place.name == name), None)
    found = [] if mine is None else list(copies_of(mine, places))
    return f"other tables use its files: {'; '.join(found)}" if found else None
