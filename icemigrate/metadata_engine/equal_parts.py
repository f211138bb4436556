"""Equal schemas, specs and sort orders in the JSON of table metadata: an equal one gets no new id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_check import read_schema
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.written_schemas import WrittenSchema

_ID_KEYS = ("id", "element-id", "key-id", "value-id")
_PART_KEYS = ("type", "fields", "element", "key", "value")


def reused_schema_id(schemas: Sequence[Json], schema: Json) -> int | None:
    """The id of an equal schema; ``None`` where there is none."""
    width = len(schema["fields"])
    # A table has a schema for each of its versions: nearly all differ in their length.
    possible = (
        s for s in schemas if width == (s.width if isinstance(s, WrittenSchema) else len(s["fields"]))
    )
    return next((s["schema-id"] for s in possible if _is_same_schema(s, schema)), None)


def _is_same_schema(one: Json, other: Json) -> bool:
    """Whether fields, identifier fields, comments and defaults are equal."""
    if set(one.get("identifier-field-ids") or ()) != set(other.get("identifier-field-ids") or ()):
        return False
    fields, others = one["fields"], other["fields"]
    if fields == others:
        return True
    if any((f["id"], f["name"]) != (g["id"], g["name"]) for f, g in zip(fields, others, strict=True)):
        return False
    try:
        return read_schema("schema", one).fields == read_schema("schema", other).fields
    except BadMetadata:
        return False  # a type that icemigrate does not know


def highest_field_id(part: Any) -> int:
    """The highest field id in the JSON of a schema or type; 0 where there is none."""
    return max(field_ids(part), default=0)


def reused_spec_id(specs: Sequence[Json], spec: Json) -> int | None:
    """The id of a spec with equal fields, whatever their own ids are; ``None`` where there is none."""
    fields = [_spec_field(field) for field in spec["fields"]]
    return next((s["spec-id"] for s in specs if [_spec_field(f) for f in s["fields"]] == fields), None)


def _spec_field(field: Json) -> Json:
    return {key: value for key, value in field.items() if key != "field-id"}


def reused_order_id(orders: Sequence[Json], order: Json) -> int | None:
    """The id of an equal sort order; ``None`` where there is none."""
    return next((o["order-id"] for o in orders if o["fields"] == order["fields"]), None)


def field_ids(part: Any) -> set[int]:
    """All field ids in the JSON of a schema or type."""
    found, waiting = set[int](), [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (dict, WrittenSchema)):
            for key in _ID_KEYS:
                if isinstance(number := one.get(key), int):
                    found.add(number)
            for key in _PART_KEYS:
                if not isinstance(below := one.get(key, ""), str):
                    waiting.append(below)
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
    return found
