"""Iceberg's JSON form of types, schemas, specs and orders (specification, "Appendix C")."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec, SortField, SortOrder, Transform
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import (
    DEFAULT_CRS,
    PRIMITIVES,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")
_FIXED = re.compile(r"fixed\[\s*([0-9]+)\s*\]")
_GEOMETRY = re.compile(r"geometry(?:\(\s*([^)]*?)\s*\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(\s*([^,)]*?)\s*(?:,\s*([^,)]*?)\s*)?\))?")


class BadMetadata(ValueError):
    """JSON that does not match the specification; the message names the part."""


def type_to_json(type_: Type) -> Any:
    """A type as its JSON form: a string for primitives, an object for nested ones."""
    if isinstance(type_, Struct):
        return {"type": "struct", "fields": [field_to_json(f) for f in type_.fields]}
    if isinstance(type_, List):
        e = type_.element
        return {
            "type": "list",
            "element-id": e.id,
            "element": type_to_json(e.type),
            "element-required": e.required,
        }
    if isinstance(type_, Map):
        return {
            "type": "map",
            "key-id": type_.key.id,
            "key": type_to_json(type_.key.type),
            "value-id": type_.value.id,
            "value": type_to_json(type_.value.type),
            "value-required": type_.value.required,
        }
    return primitive_text(type_)


def primitive_text(type_: Type) -> str:
    """The specification's text of a type without fields, e.g. ``decimal(9, 2)``, ``fixed[16]``."""
    if isinstance(type_, Primitive):
        return type_.name
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision}, {type_.scale})"
    if isinstance(type_, Fixed):
        return f"fixed[{type_.length}]"
    if isinstance(type_, Geometry):
        return "geometry" if type_.crs is None else f"geometry({type_.crs})"
    assert isinstance(type_, Geography), f"{type_} has fields"
    if type_.algorithm is not None:
        # A single argument is the reference system.
        return f"geography({type_.crs or DEFAULT_CRS}, {type_.algorithm})"
    return "geography" if type_.crs is None else f"geography({type_.crs})"


def type_from_json(json: Any) -> Type:
    """Read a type.

    :raises BadMetadata: the specification's versions 1 to 3 do not have the type.
    """
    if isinstance(json, str):
        return primitive_from_text(json)
    if not isinstance(json, Mapping):
        raise BadMetadata(f"a type is {json!r}, which is neither a string nor an object")
    kind = json.get("type")
    if kind == "struct":
        return Struct(tuple(field_from_json(f) for f in json["fields"]))
    if kind == "list":
        element = Field(
            json["element-id"], "element", type_from_json(json["element"]), json["element-required"]
        )
        return List(element)
    if kind == "map":
        return Map(
            Field(json["key-id"], "key", type_from_json(json["key"]), True),
            Field(json["value-id"], "value", type_from_json(json["value"]), json["value-required"]),
        )
    raise BadMetadata(f"unknown type {kind!r}")


@functools.lru_cache(maxsize=1024)
def primitive_from_text(text: str) -> Type:
    """A primitive type from the specification's text of it; see :func:`primitive_text`.

    :raises BadMetadata: there is no such type.
    """
    if text in PRIMITIVES:
        return Primitive(text)
    if match := _DECIMAL.fullmatch(text):
        return Decimal(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(text):
        return Fixed(int(match[1]))
    # Iceberg's library writes the defaults (`geometry(OGC:CRS84)`), others omit them.
    if match := _GEOMETRY.fullmatch(text):
        return Geometry.of(match[1])
    if match := _GEOGRAPHY.fullmatch(text):
        return Geography.of(match[1], match[2])
    raise BadMetadata(f"unknown type {text!r}")


def field_to_json(field: Field) -> dict[str, Any]:
    """A struct field as JSON, without absent parts, as in the specification; not to be changed."""
    if type(field.type) is Primitive and field.initial_default is None and field.write_default is None:
        return _plain_field_to_json(field)
    out: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.type),
    }
    if field.doc is not None:
        out["doc"] = field.doc
    if field.initial_default is not None:
        out["initial-default"] = field.initial_default
    if field.write_default is not None:
        out["write-default"] = field.write_default
    return out


@functools.lru_cache(maxsize=16_384)
def _plain_field_to_json(field: Field) -> dict[str, Any]:
    """A primitive field without defaults.

    An undo record has four definitions of a table with nearly the same columns: one value for all of them
    compares faster.
    """
    out = {"id": field.id, "name": field.name, "required": field.required, "type": primitive_text(field.type)}
    return out if field.doc is None else {**out, "doc": field.doc}


def field_from_json(json: Json, read_type: Callable[[Any], Type] = type_from_json) -> Field:
    """Read a struct field."""
    type_ = json["type"]
    if isinstance(type_, str) and len(json) == 4 + ("doc" in json):
        return _plain_field(json["id"], json["name"], type_, json["required"], json.get("doc"))
    return Field(
        id=json["id"],
        name=json["name"],
        type=read_type(type_),
        required=json["required"],
        doc=json.get("doc"),
        initial_default=json.get("initial-default"),
        write_default=json.get("write-default"),
    )


@functools.lru_cache(maxsize=16_384)
def _plain_field(id_: int, name: str, type_: str, required: bool, doc: str | None) -> Field:
    """A primitive field without defaults.

    Tables of a catalog have many columns in common, and the history has every column of the catalog again:
    one value for all of them takes less memory, and compares faster.
    """
    return Field(id_, name, primitive_from_text(type_), required, doc)


_recent_fields: dict[int, tuple[tuple[Field, ...], list[dict[str, Any]]]] = {}
"""Columns that were written recently, by their identity, with their JSON: the history, an undo record and a
commit write the same ones."""
_MOST_RECENT = 32


def _fields_to_json(fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    known = _recent_fields.get(id(fields))
    if known is None:
        if len(_recent_fields) >= _MOST_RECENT:
            _recent_fields.clear()
        known = _recent_fields[id(fields)] = fields, [field_to_json(f) for f in fields]
    return known[1]


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The schema as JSON, with sorted identifier fields if there are any; not to be changed."""
    out: dict[str, Any] = {"type": "struct", "schema-id": schema.id, "fields": _fields_to_json(schema.fields)}
    if schema.identifier_ids:
        out["identifier-field-ids"] = sorted(schema.identifier_ids)
    return out


def schema_from_json(json: Json, read_field: Callable[[Any], Field] = field_from_json) -> Schema:
    """Read a schema; version 1 writers may omit its id.

    :param read_field: :func:`~icemigrate.iceberg.lazy_types.lazy_field` for validated JSON.
    """
    return Schema(
        fields=tuple(read_field(f) for f in json["fields"]),
        identifier_ids=frozenset(json.get("identifier-field-ids", ())),
        id=json.get("schema-id", 0),
    )


def spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """A partition spec as JSON."""
    return {"spec-id": spec.id, "fields": [_partition_field_to_json(f) for f in spec.fields]}


def _partition_field_to_json(field: PartitionField) -> dict[str, Any]:
    return {
        **_sources_to_json(field.source_ids),
        "field-id": field.id,
        "name": field.name,
        "transform": str(field.transform),
    }


def spec_from_json(json: Json) -> PartitionSpec:
    """Read a partition spec."""
    return PartitionSpec(spec_fields_from_json(json["fields"]), json.get("spec-id", 0))


def spec_fields_from_json(fields: Sequence[Json]) -> tuple[PartitionField, ...]:
    """Read partition fields; without ids (version 1) they are numbered from 1000, as in the specification."""
    return tuple(
        PartitionField(
            source_ids=_sources_from_json(f),
            transform=Transform.parse(f["transform"]),
            name=f["name"],
            id=f.get("field-id", 1000 + i),
        )
        for i, f in enumerate(fields)
    )


def order_to_json(order: SortOrder) -> dict[str, Any]:
    """A sort order as JSON."""
    return {
        "order-id": order.id,
        "fields": [
            {
                "transform": str(f.transform),
                **_sources_to_json(f.source_ids),
                "direction": f.direction,
                "null-order": f.null_order,
            }
            for f in order.fields
        ],
    }


def order_from_json(json: Json) -> SortOrder:
    """Read a sort order."""
    return SortOrder(
        fields=tuple(
            SortField(
                _sources_from_json(f),
                Transform.parse(f["transform"]),
                f["direction"],
                f["null-order"],
            )
            for f in json["fields"]
        ),
        id=json["order-id"],
    )


def _sources_to_json(ids: tuple[int, ...]) -> dict[str, Any]:
    return {"source-id": ids[0]} if len(ids) == 1 else {"source-ids": list(ids)}


def _sources_from_json(json: Json) -> tuple[int, ...]:
    return tuple(json["source-ids"]) if "source-ids" in json else (json["source-id"],)
