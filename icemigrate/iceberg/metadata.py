"""Reads a table from Iceberg's table metadata (specification, "Table Metadata Fields").

A plan looks at every table of a project, and older schemas and snapshots are most of a metadata file.  Only
what a :class:`~icemigrate.iceberg.table.Table` contains is read and checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.iceberg.metadata_check import FORM, check_top, read_string_map, snapshot_ids
from icemigrate.iceberg.metadata_parts import (
    current_schema,
    current_snapshot,
    default_order_id,
    default_spec_id,
    last_partition_id,
    read_heads,
    read_orders,
    read_refs,
    read_specs,
    refs_without_fence,
    unreserved_properties,
)
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import OWNER_PROPERTY

__all__ = ["FORM", "table_from_json"]


def table_from_json(json: Mapping[str, Any], name: TableName, known: Table | None = None) -> Table:
    """Read the table of a metadata file of format version 1, 2 or 3.

    :param known: the table as the history has it; a column that the file writes in the same way is the same
        object in both.
    :raises BadMetadata: a part that is read is missing, has a wrong type, occurs twice, or refers to a part
        that does not exist; the message names the part.
    """
    version = check_top(json)
    ids = snapshot_ids(json)
    specs, default_spec = read_specs(json), default_spec_id(json)
    orders, default_order = read_orders(json), default_order_id(json)
    schema = current_schema(json, None if known is None else known.schema)
    refs = refs_without_fence(read_refs(json, ids))
    properties = read_string_map(json, "properties")
    return Table(
        name=name,
        schema=schema,
        spec=next(s for s in specs if s.id == default_spec),
        sort_order=next(o for o in orders if o.id == default_order),
        properties=unreserved_properties(properties),
        format_version=version,
        location=json["location"],
        refs=refs,
        owner=properties.get(OWNER_PROPERTY),
        uuid=json.get("table-uuid"),
        last_column_id=json["last-column-id"],
        last_partition_id=last_partition_id(json, specs),
        older_specs=tuple(s for s in specs if s.id != default_spec),
        older_orders=tuple(o for o in orders if o.id != default_order),
        snapshot=current_snapshot(json, ids),
        heads=read_heads(json, refs, schema),
    )
