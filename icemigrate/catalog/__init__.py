"""The catalog: metadata files → tables, by one reader per kind of catalog."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.catalog.catalog_port import Catalog, CatalogSettings
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import CatalogError

__all__ = ["CATALOG_READERS", "Catalog", "CatalogSettings", "open_catalog"]


def _sqlite(settings: CatalogSettings) -> Catalog:
    from icemigrate.catalog.sqlite_reader import SqliteCatalog

    return SqliteCatalog(settings)


def _pyiceberg(settings: CatalogSettings) -> Catalog:
    from icemigrate.catalog.pyiceberg_config import ignore_working_directory
    from icemigrate.catalog.pyiceberg_reader import PyIcebergCatalog

    ignore_working_directory()
    return PyIcebergCatalog(settings)


CATALOG_READERS: dict[str, Callable[[CatalogSettings], Catalog]] = {
    "sqlite": _sqlite,
    "sql": _pyiceberg,
    "rest": _pyiceberg,
    "glue": _pyiceberg,
    "hive": _pyiceberg,
}
"""Kinds of catalogs and their readers; imported on opening, because PyIceberg takes seconds to import."""


def open_catalog(settings: CatalogSettings) -> Catalog:
    """The reader of a catalog; it reads nothing yet, and never creates anything.

    :raises CatalogError: the kind is unknown.
    :raises MissingExtra: the package that reads this kind is not installed.
    """
    if settings.type not in CATALOG_READERS:
        raise CatalogError(
            f"there is no kind of catalog named `{settings.type}`",
            did_you_mean(settings.type, CATALOG_READERS) or f"known are {', '.join(CATALOG_READERS)}",
        )
    return CATALOG_READERS[settings.type](settings)
