"""Names that no table can get, because a view has them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import CatalogError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table


def views_beside(catalog: Catalog, tables: Mapping[TableName, Table | None]) -> frozenset[TableName]:
    """The views of the namespaces in which a plan may give a table a name: those of missing tables.

    One request for each such namespace; every plan with a new table has one.  Where the catalog does not
    list its views, only apply finds a name that is taken.

    :param tables: the tables of the plan, by their name in the catalog.
    """
    if not catalog.capabilities.views:
        return frozenset()
    missing = {name.namespace for name, table in tables.items() if table is None} - {(TRASH_NAMESPACE,)}
    found = set[TableName]()
    for namespace in sorted(missing):
        with suppress(CatalogError):
            found.update(catalog.views(namespace))
    return frozenset(found)
