"""Reads Spark's schema in JSON, as ``df.schema.json()`` writes it.

Nullable is Spark's default and states nothing, so only ``"nullable": false`` says that a column is required.
"""

from __future__ import annotations

import re
from typing import Any

from icemigrate.desired_state.desired_table import DesiredTable, FieldBuilder, TypeReading
from icemigrate.desired_state.named_columns import mapping_or_empty, plain_text
from icemigrate.desired_state.sql_types import UnreadableType, decimal_type, named_type
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes
from icemigrate.files.parse.json_schemas import compile_schema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.types import Field, List, Map, Struct

_FIELD: dict[str, Any] = {
    "title": "field",
    "type": "object",
    "required": ["name", "type"],
    "properties": {
        "name": {"type": "string"},
        "type": {},
        "nullable": {"type": "boolean"},
        "metadata": {"type": "object"},
    },
}
_STRUCT = compile_schema(
    {
        "title": "schema",
        "type": "object",
        "required": ["type", "fields"],
        "properties": {
            "type": {"type": "string", "enum": ["struct"]},
            "fields": {"title": "fields", "type": "array", "items": _FIELD},
        },
    }
)
_DECIMAL = re.compile(r"decimal\(([0-9]{1,9}),\s*([0-9]{1,9})\)")
_LENGTH = re.compile(r"(varchar|char)\([0-9]+\)|string collate \w+")


def is_spark_schema(document: YamlNode) -> bool:
    """Whether a document is the schema of a data frame."""
    return (
        isinstance(document, YamlMapping)
        and plain_text(document.get("type")) == "struct"
        and document.get("fields") is not None
    )


def read_spark_schema(document: YamlNode, name: TableName) -> DesiredTable:
    """The table that Spark's schema describes.

    :raises Mistakes: the document has another form, or Iceberg has no type for some fields.
    """
    reader = _SparkReader()
    columns = reader.struct(document, ())
    if reader.problems:
        raise Mistakes(tuple(reader.problems))
    return reader.builder.table(name, columns, document.place)


class _SparkReader:
    def __init__(self) -> None:
        self.builder = FieldBuilder()
        self.problems: list[Diagnostic] = []

    def struct(self, node: YamlNode, parent: FieldPath) -> tuple[Field, ...]:
        """The fields of a struct."""
        found = validate_node(node, _STRUCT)
        self.problems += found
        if found:
            return ()
        fields = list_items(as_mapping(node).get("fields"))
        return tuple(self._field(as_mapping(one), parent) for one in fields)

    def _field(self, node: YamlMapping, parent: FieldPath) -> Field:
        name = scalar_text(node.get("name"))
        type_ = node.get("type")
        assert type_ is not None, "the schema requires it"
        nullable = node.get("nullable")
        comment = mapping_or_empty(node.get("metadata"), node).get("comment")
        return self.builder.field(
            name,
            self._type(type_, (*parent, name)),
            required=isinstance(nullable, YamlScalar) and nullable.value is False,
            doc=plain_text(comment) or None,
            place=type_.place,
        )

    def _type(self, node: YamlNode, path: FieldPath) -> TypeReading:
        if isinstance(node, YamlScalar):
            return self._plain(node, path)
        found = node if isinstance(node, YamlMapping) else YamlMapping((), node.place)
        kind = plain_text(found.get("type"))
        if kind == "struct":
            return TypeReading(Struct(self.struct(node, path)))
        if kind == "array" and (element := found.get("elementType")) is not None:
            part = self._part(found, element, "containsNull", "element", path)
            return TypeReading(List(part))
        key, value = found.get("keyType"), found.get("valueType")
        if kind == "map" and key is not None and value is not None:
            part = self._part(found, value, "valueContainsNull", "value", path)
            first = self.builder.field("key", self._type(key, (*path, "key")), required=True, place=key.place)
            return TypeReading(Map(first, part))
        message = f"the type of `{format_path(path)}` is none of Spark's"
        self.problems.append(
            Diagnostic("unclear-type", message, node.place, "write what `df.schema.json()` gives")
        )
        return TypeReading(None)

    def _part(self, holder: YamlMapping, type_: YamlNode, key: str, name: str, path: FieldPath) -> Field:
        nullable = holder.get(key)
        return self.builder.field(
            name,
            self._type(type_, (*path, name)),
            required=isinstance(nullable, YamlScalar) and nullable.value is False,
            place=type_.place,
        )

    def _plain(self, node: YamlScalar, path: FieldPath) -> TypeReading:
        text = str(node.value).lower()
        try:
            if found := _DECIMAL.fullmatch(text):
                return decimal_type(int(found[1]), int(found[2]))
            return named_type("spark", "string" if _LENGTH.fullmatch(text) else text)
        except UnreadableType as error:
            message = f"the type of `{format_path(path)}` cannot be declared: {error}"
            self.problems.append(Diagnostic("unclear-type", message, node.place, error.hint))
            return TypeReading(None)
