"""Commits of a small table, in the JSON of the REST protocol."""

from __future__ import annotations

from typing import Any

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.table_store import StoredTable, TableCommit, TableStore

TRADES = TableName(("db",), "trades")
QUOTES = TableName(("db",), "quotes")
FIELD_IDS = (3, 7)


def schema(*names: str) -> dict[str, Any]:
    """A schema of optional strings after a required ``id``, with the field ids 3, 7, 8 and so on."""
    fields = [{"id": FIELD_IDS[0], "name": "id", "required": True, "type": "long"}]
    fields += [
        {"id": FIELD_IDS[1] + number, "name": name, "required": False, "type": "string"}
        for number, name in enumerate(names)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


CREATION: tuple[Json, ...] = (
    {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": schema("kind"), "last-column-id": FIELD_IDS[1]},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
)
"""The updates that create a table, without a location."""


def created(
    store: TableStore, name: TableName = TRADES, properties: dict[str, str] | None = None
) -> StoredTable:
    """Create a table, with its namespace."""
    store.create_namespace(name.namespace)
    updates: tuple[Json, ...] = (
        *CREATION,
        {"action": "set-location", "location": store.default_location(name)},
        {"action": "set-properties", "updates": properties or {}},
    )
    (table,) = store.commit([TableCommit(name, None, updates, ({"type": "assert-create"},))])
    return table


def set_properties(base: StoredTable, name: TableName = TRADES, **properties: str) -> TableCommit:
    """A change of properties."""
    requirement = {"type": "assert-table-uuid", "uuid": base.json["table-uuid"]}
    update = {"action": "set-properties", "updates": properties}
    return TableCommit(name, base, (update,), (requirement,))


def with_column(base: StoredTable, name: TableName, column: str) -> TableCommit:
    """A new column, which is refused if another client changed the schema."""
    json = base.json
    current = next(s for s in json["schemas"] if s["schema-id"] == json["current-schema-id"])
    field = {"id": json["last-column-id"] + 1, "name": column, "required": False, "type": "string"}
    schema = {**current, "fields": [*current["fields"], field]}
    updates = (
        {"action": "add-schema", "schema": schema, "last-column-id": field["id"]},
        {"action": "set-current-schema", "schema-id": -1},
    )
    requirements = (
        {"type": "assert-table-uuid", "uuid": json["table-uuid"]},
        {"type": "assert-current-schema-id", "current-schema-id": json["current-schema-id"]},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": json["last-column-id"]},
    )
    return TableCommit(name, base, updates, requirements)


def columns(table: StoredTable) -> list[str]:
    """The names of the current columns."""
    json = table.json
    current = next(s for s in json["schemas"] if s["schema-id"] == json["current-schema-id"])
    return [field["name"] for field in current["fields"]]
