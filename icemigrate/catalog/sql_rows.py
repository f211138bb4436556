"""The two tables of a SQL catalog, as Java's ``JdbcCatalog`` and PyIceberg's ``SqlCatalog`` both keep them.

Rows are keyed by the catalog's name.  In Java's schema ``V1`` a column ``iceberg_type`` tells tables from
views; in its first schema there is none.  A namespace stands in one column, its levels joined by dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from icemigrate.catalog.port import CatalogSettings
from icemigrate.errors import CatalogError
from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName

Query = Callable[[str], Iterable[Sequence[Any]]]
"""Runs one SELECT; every statement below is plain SQL without parameters."""

TABLES, NAMESPACES = "iceberg_tables", "iceberg_namespace_properties"

_SELECT_TABLES = f"SELECT catalog_name, table_namespace, table_name, metadata_location FROM {TABLES}"
_SELECT_TYPED = (
    f"SELECT catalog_name, table_namespace, table_name, metadata_location, iceberg_type FROM {TABLES}"
)
_SELECT_NAMESPACES = f"SELECT catalog_name, namespace FROM {NAMESPACES} GROUP BY catalog_name, namespace"


class Rows(Frozen):
    """What a SQL catalog says, read at once: two short queries, however many tables are asked for.

    :param tables: metadata location by table; views left out.
    """

    tables: dict[TableName, str]
    namespaces: tuple[tuple[str, ...], ...]


NO_ROWS = Rows({}, ())


def read_rows(query: Query, columns: Callable[[str], frozenset[str]], settings: CatalogSettings) -> Rows:
    """Read both tables.

    :param columns: the columns of a table of the database, empty where there is no such table.
    :raises CatalogError: there are rows, and all of them belong to catalogs of other names.
    """
    of_tables = columns(TABLES)
    if not of_tables:
        return NO_ROWS
    typed = "iceberg_type" in of_tables
    rows = [(*row, None)[:5] for row in query(_SELECT_TYPED if typed else _SELECT_TABLES)]
    spaces = list(query(_SELECT_NAMESPACES)) if columns(NAMESPACES) else []
    names = {row[0] for row in rows} | {row[0] for row in spaces}
    if names and settings.name not in names:
        raise CatalogError(
            f"there is no catalog named `{settings.name}` in this database; "
            f"it holds {', '.join(f'`{name}`' for name in sorted(names))}",
            "give the environment's catalog that `name`: tables of a SQL catalog are found by it",
        )
    tables = {
        TableName(levels(namespace), name): location
        for catalog, namespace, name, location, kind in rows
        if catalog == settings.name and kind in (None, "TABLE") and location
    }
    found = {levels(namespace) for catalog, namespace in spaces if catalog == settings.name}
    # A namespace that nobody created may hold tables all the same.
    return Rows(tables, tuple(sorted(found | {table.namespace for table in tables})))


def levels(namespace: str) -> tuple[str, ...]:
    """The levels of a namespace as the database keeps it."""
    return tuple(namespace.split("."))
