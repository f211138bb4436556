"""Reads a contract of the Open Data Contract Standard, version 3 (``kind: DataContract``).

``physicalType`` decides the type of a property; without it ``logicalType`` and its options do.  The order of
the properties counts for new columns only.
"""

from __future__ import annotations

from typing import Any

from icemigrate.desired_state.desired_table import DesiredTable, FieldBuilder, TypeReading
from icemigrate.desired_state.named_columns import (
    chosen_object,
    is_true,
    mapping_or_empty,
    objects_of,
    optional_doc,
    plain_text,
    require_valid,
    sql_reading,
)
from icemigrate.desired_state.sql_types import named_type
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes
from icemigrate.files.parse.json_schemas import compile_schema
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.types import Field, List, Map, Primitive, Struct

_TYPES = ["string", "date", "timestamp", "time", "number", "integer", "object", "array", "map", "boolean"]
_PROPERTY_KEYS: dict[str, Any] = {
    "name": {"type": "string", "minLength": 1},
    "logicalType": {"type": ["string", "null"], "enum": [*_TYPES, None]},
    "physicalType": {"type": ["string", "null"], "examples": ["bigint"]},
    "description": {"type": ["string", "null"]},
    "required": {"type": ["boolean", "null"]},
    "logicalTypeOptions": {"type": ["object", "null"]},
    "properties": {"type": "array", "items": {"$ref": "#/$defs/property"}},
    "items": {"$ref": "#/$defs/items"},
    "map": {
        "title": "map",
        "type": "object",
        "properties": {"key": {"$ref": "#/$defs/items"}, "value": {"$ref": "#/$defs/items"}},
    },
}
_SCHEMA = compile_schema(
    {
        "title": "contract",
        "type": "object",
        "required": ["schema"],
        "properties": {
            "schema": {"title": "schema", "type": "array", "minItems": 1, "items": {"$ref": "#/$defs/object"}}
        },
        "$defs": {
            "object": {
                "title": "object",
                "type": "object",
                "required": ["name", "properties"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "physicalName": {"type": ["string", "null"]},
                    "properties": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/property"}},
                },
            },
            "property": {
                "title": "property",
                "type": "object",
                "required": ["name"],
                "properties": _PROPERTY_KEYS,
            },
            "items": {"title": "items", "type": "object", "properties": _PROPERTY_KEYS},
        },
    }
)
_FORMATS = {
    ("integer", "i8"): "int",
    ("integer", "i16"): "int",
    ("integer", "i32"): "int",
    ("integer", "u8"): "int",
    ("integer", "u16"): "int",
    ("integer", "i64"): "long",
    ("integer", "u32"): "long",
    ("number", "f32"): "float",
    ("number", "f64"): "double",
    ("string", "uuid"): "uuid",
    ("string", "binary"): "binary",
}
_NO_TYPE = "write `physicalType` or `logicalType` of the new property"
_PHYSICAL = "write its `physicalType`, such as `physicalType: decimal(18, 6)`"
_ZONE = "write `logicalTypeOptions: {timezone: true}` or `false`, or `physicalType: timestamptz`"


def is_odcs_contract(document: YamlNode) -> bool:
    """Whether a document is a data contract."""
    if not isinstance(document, YamlMapping):
        return False
    kind = document.get("kind")
    return isinstance(kind, YamlScalar) and kind.value == "DataContract"


def read_odcs_contract(document: YamlNode, name: TableName) -> DesiredTable:
    """The table that an object of a contract describes.

    :raises Mistakes: the file has another form, no object has the table's name, or a type is not clear.
    """
    require_valid(document, _SCHEMA)
    chosen = chosen_object(objects_of(document, "schema"), name, "object", ("physicalName", "name"))
    reader = _ContractReader()
    columns = reader.fields(chosen, ())
    if reader.problems:
        raise Mistakes(tuple(reader.problems))
    return reader.builder.table(name, columns, chosen.place, is_ordered=False)


class _ContractReader:
    def __init__(self) -> None:
        self.builder = FieldBuilder()
        self.problems: list[Diagnostic] = []

    def fields(self, holder: YamlMapping, parent: FieldPath) -> tuple[Field, ...]:
        """The fields of an object."""
        found = (as_mapping(one) for one in list_items(holder.get("properties")))
        return tuple(self._field(one, scalar_text(one.get("name")), parent) for one in found)

    def _field(self, node: YamlMapping, name: str, parent: FieldPath, *, is_required: bool = False) -> Field:
        reading = self._type(node, (*parent, name))
        required = is_required or is_true(node.get("required"))
        place = next((one.place for key in _TYPE_KEYS if (one := node.get(key)) is not None), node.place)
        return self.builder.field(name, reading, required=required, doc=optional_doc(node), place=place)

    def _type(self, node: YamlMapping, path: FieldPath) -> TypeReading:
        logical = plain_text(node.get("logicalType"))
        if logical == "object" and node.get("properties") is not None:
            return TypeReading(Struct(self.fields(node, path)))
        if logical == "array" and (items := node.get("items")) is not None:
            return TypeReading(List(self._field(as_mapping(items), "element", path)))
        if logical == "map" and (parts := node.get("map")) is not None:
            halves = [mapping_or_empty(as_mapping(parts).get(key), node) for key in ("key", "value")]
            first = self._field(halves[0], "key", path, is_required=True)
            return TypeReading(Map(first, self._field(halves[1], "value", path)))
        physical = node.get("physicalType")
        if isinstance(physical, YamlScalar) and physical.value:
            return sql_reading(physical, path, self.builder, self.problems)
        if logical in ("object", "array", "map"):
            key = {"object": "properties", "array": "items", "map": "map"}[logical]
            message = (
                f"`{format_path(path)}` is {'an' if logical != 'map' else 'a'} {logical} without `{key}`"
            )
            self.problems.append(Diagnostic("missing-key", message, node.place, f"write `{key}`"))
            return TypeReading(None)
        return _logical_type(logical, mapping_or_empty(node.get("logicalTypeOptions"), node))


_TYPE_KEYS = ("physicalType", "logicalType")


def _logical_type(logical: str, options: YamlMapping) -> TypeReading:
    if not logical:
        return TypeReading(None, question=_NO_TYPE)
    exact = _FORMATS.get((logical, plain_text(options.get("format"))))
    if exact is not None:
        return TypeReading(Primitive(exact))
    zone = options.get("timezone")
    if logical == "timestamp" and isinstance(zone, YamlScalar) and isinstance(zone.value, bool):
        return named_type("sql", "timestamptz" if zone.value else "timestamp_ntz")
    found = named_type("odcs", logical)
    if found.type is not None:
        return found
    return TypeReading(None, found.accepted, _ZONE if logical == "timestamp" else _PHYSICAL)
