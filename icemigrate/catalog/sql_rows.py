"""The two tables of a SQL catalog, in the form of Java's ``JdbcCatalog`` and PyIceberg's ``SqlCatalog``.

Rows are keyed by the catalog's name.  In Java's schema ``V1`` a column ``iceberg_type`` distinguishes tables
from views; its first schema does not have it.  A namespace is one column, its levels joined by dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import CatalogError
from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.names import TableName

RunSelect = Callable[[str], Iterable[Sequence[Any]]]
"""Runs one SELECT; every statement in this module is plain SQL without parameters."""

TABLES, NAMESPACES = "iceberg_tables", "iceberg_namespace_properties"

_SELECT_TABLES = f"SELECT catalog_name, table_namespace, table_name, metadata_location FROM {TABLES}"
_SELECT_TYPED = (
    f"SELECT catalog_name, table_namespace, table_name, metadata_location, iceberg_type FROM {TABLES}"
)
_SELECT_NAMESPACES = f"SELECT catalog_name, namespace FROM {NAMESPACES} GROUP BY catalog_name, namespace"


class CatalogRows(Frozen):
    """The rows of a SQL catalog, read by two short queries for any number of tables.

    :param tables: metadata location by table, without views.
    :param views: metadata location by view.
    """

    tables: dict[TableName, str]
    namespaces: tuple[tuple[str, ...], ...]
    views: dict[TableName, str] = field(default_factory=dict)


NO_ROWS = CatalogRows({}, ())


def read_rows(
    query: RunSelect, columns: Callable[[str], frozenset[str]], settings: CatalogSettings
) -> CatalogRows:
    """Read both tables.

    :param columns: the columns of a table of the database, empty where there is no such table.
    :raises CatalogError: all rows belong to catalogs of other names.
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
            f"it contains {', '.join(f'`{name}`' for name in sorted(names))}",
            "set `name` of the environment's catalog to it: a SQL catalog finds its tables by that name",
        )
    tables, views = (
        {
            TableName(namespace_levels(namespace), name): location
            for catalog, namespace, name, location, kind in rows
            if catalog == settings.name and (kind or "TABLE") == wanted and location
        }
        for wanted in ("TABLE", "VIEW")
    )
    found = {namespace_levels(namespace) for catalog, namespace in spaces if catalog == settings.name}
    # A namespace without a row of its own may contain tables.
    return CatalogRows(tables, tuple(sorted(found | {table.namespace for table in tables})), views)


def location_query(columns: Callable[[str], frozenset[str]]) -> str | None:
    """The query for the metadata location of one table, with its catalog, namespace and name as ``?``.

    :param columns: as of :func:`read_rows`.
    :returns: ``None`` where the database has no tables of a catalog.
    """
    of_tables = columns(TABLES)
    if not of_tables:
        return None
    typed = " AND coalesce(iceberg_type, 'TABLE') = 'TABLE'" if "iceberg_type" in of_tables else ""
    where = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
    return f"SELECT metadata_location FROM {TABLES} WHERE {where}{typed}"


def stored_namespace(levels: Sequence[str]) -> str:
    """The stored form of a namespace."""
    return ".".join(levels)


def namespace_levels(namespace: str) -> tuple[str, ...]:
    """The levels of a namespace in its stored form."""
    return tuple(namespace.split("."))
