"""A :class:`~icemigrate.model.table.Table` as JSON and back, with nothing lost.

This is icemigrate's own form, used where a table is kept (history, saved plans).  Schemas, specs and orders
stand in it in Iceberg's form, so that a person who knows a metadata file can read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from icemigrate.model.json_form import (
    BadMetadata,
    field_from_json,
    field_to_json,
    order_from_json,
    order_to_json,
    schema_from_json,
    schema_to_json,
    spec_from_json,
    spec_to_json,
)
from icemigrate.model.names import BadName, TableName
from icemigrate.model.table import Dropped, Ref, Snapshot, Table
from icemigrate.model.types import Field

Json = Mapping[str, Any]
T = TypeVar("T")

_REF_LIMITS = {
    "max-ref-age-ms": "max_ref_age_ms",
    "max-snapshot-age-ms": "max_snapshot_age_ms",
    "min-snapshots-to-keep": "min_snapshots_to_keep",
}


KEYS = (
    "name",
    "format-version",
    "uuid",
    "location",
    "last-column-id",
    "last-partition-id",
    "schema",
    "spec",
    "older-specs",
    "sort-order",
    "older-orders",
    "properties",
    "refs",
    "snapshot",
    "dropped",
)
"""Of the form."""


def table_to_json(table: Table) -> dict[str, Any]:
    """The table as JSON values."""
    return {
        "name": str(table.name),
        "format-version": table.format_version,
        "uuid": table.uuid,
        "location": table.location,
        "last-column-id": table.last_column_id,
        "last-partition-id": table.last_partition_id,
        "schema": schema_to_json(table.schema),
        "spec": spec_to_json(table.spec),
        "older-specs": [spec_to_json(spec) for spec in table.older_specs],
        "sort-order": order_to_json(table.sort_order),
        "older-orders": [order_to_json(order) for order in table.older_orders],
        "properties": dict(table.properties),
        "refs": {name: ref_to_json(ref) for name, ref in table.refs.items()},
        "snapshot": _snapshot_to_json(table.snapshot),
        "dropped": [_dropped_to_json(dropped) for dropped in table.dropped],
    }


def table_from_json_form(json: Any, read_field: Callable[[Any], Field] = field_from_json) -> Table:
    """Read what :func:`table_to_json` wrote.

    :param read_field: how a column is read.
    :raises BadMetadata: it is not that; the message names the table where it can be read.
    """
    named = f"table {json.get('name')!r}" if isinstance(json, Mapping) else "the table"
    try:
        return _table(json, read_field)
    except KeyError as error:
        raise BadMetadata(f"{named}: {error.args[0]!r} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise BadMetadata(f"{named} is not in the form it was written in: {error}") from error


def ref_to_json(ref: Ref) -> dict[str, Any]:
    """A reference in Iceberg's form (specification, "Snapshot References")."""
    out: dict[str, Any] = {"snapshot-id": ref.snapshot_id, "type": ref.kind}
    limits = {key: getattr(ref, attribute) for key, attribute in _REF_LIMITS.items()}
    return out | {key: value for key, value in limits.items() if value is not None}


def ref_from_json(json: Json) -> Ref:
    """Read a reference."""
    limits = {attribute: json.get(key) for key, attribute in _REF_LIMITS.items()}
    return Ref(json["type"], json["snapshot-id"], **limits)


def _table(json: Json, read_field: Callable[[Any], Field]) -> Table:
    return Table(
        name=_name(json["name"]),
        schema=schema_from_json(json["schema"], read_field),
        spec=spec_from_json(json["spec"]),
        sort_order=order_from_json(json["sort-order"]),
        properties=dict(json["properties"]),
        format_version=json["format-version"],
        location=json["location"],
        refs={name: ref_from_json(ref) for name, ref in json["refs"].items()},
        uuid=json["uuid"],
        last_column_id=json["last-column-id"],
        last_partition_id=json["last-partition-id"],
        older_specs=_all(spec_from_json, json["older-specs"]),
        older_orders=_all(order_from_json, json["older-orders"]),
        snapshot=_snapshot_from_json(json["snapshot"]),
        dropped=_all(_dropped_from_json, json["dropped"]),
    )


def _all(read: Callable[[Any], T], items: Any) -> tuple[T, ...]:
    return tuple(read(item) for item in items)


def _name(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except BadName as error:
        raise BadMetadata(str(error)) from error


def _snapshot_to_json(snapshot: Snapshot | None) -> dict[str, Any] | None:
    if snapshot is None:
        return None
    return {
        "id": snapshot.id,
        "timestamp-ms": snapshot.timestamp_ms,
        "total-records": snapshot.total_records,
        "operation": snapshot.operation,
        "notes": dict(snapshot.notes),
    }


def _snapshot_from_json(json: Json | None) -> Snapshot | None:
    if json is None:
        return None
    return Snapshot(
        json["id"],
        json["timestamp-ms"],
        json["total-records"],
        json.get("operation"),
        dict(json.get("notes") or {}),
    )


def _dropped_to_json(dropped: Dropped) -> dict[str, Any]:
    return {
        "field": field_to_json(dropped.field),
        "parent": dropped.parent,
        "path": list(dropped.path),
        "after": dropped.after,
    }


def _dropped_from_json(json: Json) -> Dropped:
    return Dropped(field_from_json(json["field"]), json["parent"], tuple(json["path"]), json["after"])
