"""The catalog: metadata files → tables, by one reader per kind of catalog."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.catalog.port import Catalog, CatalogSettings
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import CatalogError

__all__ = ["KINDS", "Catalog", "CatalogSettings", "open_catalog"]


def _sqlite(settings: CatalogSettings) -> Catalog:
    from icemigrate.catalog.sqlite import SqliteCatalog

    return SqliteCatalog(settings)


def _pyiceberg(settings: CatalogSettings) -> Catalog:
    from icemigrate.catalog.pyiceberg import PyIcebergCatalog
    from icemigrate.catalog.pyiceberg_config import ignore_working_directory

    ignore_working_directory()
    return PyIcebergCatalog(settings)


KINDS: dict[str, Callable[[CatalogSettings], Catalog]] = {
    "sqlite": _sqlite,
    "sql": _pyiceberg,
    "rest": _pyiceberg,
    "glue": _pyiceberg,
    "hive": _pyiceberg,
}
"""Kinds of catalogs and who reads them; imported only when one is opened, since PyIceberg takes seconds."""


def open_catalog(settings: CatalogSettings) -> Catalog:
    """The reader of a catalog; nothing is read yet, and nothing is ever created.

    :raises CatalogError: there is no such kind.
    :raises MissingExtra: what reads this kind is not installed.
    """
    if settings.type not in KINDS:
        raise CatalogError(
            f"there is no kind of catalog named `{settings.type}`",
            did_you_mean(settings.type, KINDS) or f"known are {', '.join(KINDS)}",
        )
    return KINDS[settings.type](settings)
