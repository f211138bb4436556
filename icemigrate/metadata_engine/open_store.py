"""The store of a catalog's tables, by the kind of catalog."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.metadata_engine.table_store import TableStore


def _sqlite(settings: CatalogSettings) -> TableStore:
    from icemigrate.metadata_engine.sqlite_store import open_sqlite_store

    return open_sqlite_store(settings)


def _sql(settings: CatalogSettings) -> TableStore:
    from icemigrate.metadata_engine.sql_store import open_sql_store

    return open_sql_store(settings)


def _rest(settings: CatalogSettings) -> TableStore:
    from icemigrate.metadata_engine.rest_store import open_rest_store

    return open_rest_store(settings)


def _hive(settings: CatalogSettings) -> TableStore:
    from icemigrate.metadata_engine.hive_store import open_hive_store

    return open_hive_store(settings)


def _glue(settings: CatalogSettings) -> TableStore:
    from icemigrate.metadata_engine.glue_store import open_glue_store

    return open_glue_store(settings)


TABLE_STORES: dict[str, Callable[[CatalogSettings], TableStore]] = {
    "sqlite": _sqlite,
    "sql": _sql,
    "rest": _rest,
    "hive": _hive,
    "glue": _glue,
}
"""Kinds of catalogs and their stores; imported on opening, because SQLAlchemy and PyIceberg take seconds."""


def open_table_store(settings: CatalogSettings) -> TableStore | None:
    """The store of a catalog's tables; ``None`` where only Spark can change this kind of catalog.

    It reads nothing yet, and creates nothing before the first change.

    :raises CatalogError: the settings name no catalog.
    :raises MissingExtra: the package that reaches this kind is not installed.
    """
    open_ = TABLE_STORES.get(settings.type)
    return None if open_ is None else open_(settings)
