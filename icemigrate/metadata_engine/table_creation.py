"""The commit that creates a table, as Iceberg's Java library and Spark SQL create it."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.partitioning import UNSORTED, SortOrder
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.apply_updates import LAST_ADDED
from icemigrate.metadata_engine.table_store import TableCommit
from icemigrate.metadata_engine.table_updates import property_updates

LIBRARY_PROPERTIES = {"write.parquet.compression-codec": "zstd"}
"""What Iceberg's Java library sets on every new table (``TableMetadata.persistedProperties``)."""


def creation_commit(table: Table, uuid: str, catalog_properties: Mapping[str, str]) -> TableCommit:
    """The commit that creates a table with exactly these ids.

    Older specs and orders of the table are those that statements would make on the way; they are added too.

    :param table: without references, which need a snapshot; the catalog chooses the location that it lacks.
    :param catalog_properties: those with the prefix ``table-default.`` or ``table-override.`` are set on the
        table without it (``CatalogProperties`` of Iceberg's Java library).
    """
    updates: list[Json] = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "upgrade-format-version", "format-version": table.format_version},
        {
            "action": "add-schema",
            "schema": schema_to_json(table.schema),
            "last-column-id": table.last_column_id,
        },
        {"action": "set-current-schema", "schema-id": LAST_ADDED},
    ]
    for spec in (*table.older_specs, table.spec):
        updates.append({"action": "add-spec", "spec": spec_to_json(spec)})
        updates.append({"action": "set-default-spec", "spec-id": LAST_ADDED})
    for order in (*table.older_orders, table.sort_order):
        updates.append({"action": "add-sort-order", "sort-order": _order(order)})
        updates.append({"action": "set-default-sort-order", "sort-order-id": LAST_ADDED})
    if table.location is not None:
        updates.append({"action": "set-location", "location": table.location})
    properties = {
        **LIBRARY_PROPERTIES,
        **_with_prefix(catalog_properties, "table-default."),
        **table.properties,
        **_with_prefix(catalog_properties, "table-override."),
    }
    updates.extend(property_updates({}, properties))
    return TableCommit(table.name, None, tuple(updates), ({"type": "assert-create"},))


def _with_prefix(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The properties with a prefix, without it."""
    return {key.removeprefix(prefix): v for key, v in properties.items() if key.startswith(prefix)}


def _order(order: SortOrder) -> Json:
    """Iceberg uses id 0 for the unsorted order."""
    return {**order_to_json(order), "order-id": UNSORTED.id if not order.fields else max(order.id, 1)}
