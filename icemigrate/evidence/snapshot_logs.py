"""The snapshots of tables whose branches or tags a plan moves."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_pins import snapshot_log
from icemigrate.iceberg.table import Table


def with_snapshot_logs(
    actual: Mapping[TableName, Table | None], catalog: Catalog
) -> dict[TableName, Table | None]:
    """The tables with their snapshots, read again from the metadata.

    :raises CatalogError: the catalog cannot be read.
    """

    def with_log(table: Table) -> Table:
        return replace(table, snapshot_log=snapshot_log(catalog.metadata_json(table.name) or {}))

    return {name: None if table is None else with_log(table) for name, table in actual.items()}
