"""Reads a ``pyarrow.Schema``, without importing pyarrow.

Nullable is Arrow's default and states nothing, so only ``nullable=False`` says that a column is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from icemigrate.desired_state.desired_table import DesiredTable, FieldBuilder, TypeReading
from icemigrate.desired_state.sql_types import UnreadableType, decimal_type, named_type
from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.errors import Mistakes
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.type_text import DEPTH_LIMIT
from icemigrate.iceberg.types import Field, Fixed, List, Map, Struct

_NESTED = re.compile(r"(struct|map|(?:large_|fixed_size_)?list(?:_view)?|large_list_view|dictionary)<")
_DECIMAL = re.compile(r"decimal(?:32|64|128|256)\(([0-9]+), (-?[0-9]+)\)")
_FIXED = re.compile(r"fixed_size_binary\[([0-9]+)\]")
_TIMESTAMP = re.compile(r"timestamp\[(\w+)(?:, tz=.*)?\]")
_UUID = re.compile(r"extension<arrow\.uuid.*>")
_UNIT = re.compile(r"(date32|date64|time32|time64)\[\w+\]")
_DOC_KEYS = (b"doc", b"comment", b"description")


def read_arrow_schema(schema: Any, name: TableName, place: FilePosition | None = None) -> DesiredTable:
    """The table that an Arrow schema describes.

    :param schema: a ``pyarrow.Schema``.
    :raises Mistakes: Iceberg has no type for some of its fields.
    """
    reader = _ArrowReader(place)
    columns = tuple(reader.fields(schema, (), 0))
    if reader.problems:
        raise Mistakes(tuple(reader.problems))
    return reader.builder.table(name, columns, place)


class _ArrowReader:
    def __init__(self, place: FilePosition | None) -> None:
        self.builder, self.place = FieldBuilder(), place
        self.problems: list[Diagnostic] = []

    def fields(self, arrow: Any, parent: FieldPath, depth: int) -> Iterator[Field]:
        """The fields of a schema or of a struct."""
        for one in arrow:
            yield self._field(one, one.name, (*parent, one.name), depth)

    def _field(self, arrow: Any, name: str, path: FieldPath, depth: int, *, is_key: bool = False) -> Field:
        reading = self._type(arrow.type, path, depth)
        metadata = arrow.metadata or {}
        doc = next((metadata[key].decode("utf-8", "replace") for key in _DOC_KEYS if key in metadata), None)
        return self.builder.field(
            name, reading, required=is_key or not arrow.nullable, doc=doc, place=self.place
        )

    def _type(self, arrow: Any, path: FieldPath, depth: int) -> TypeReading:
        try:
            if depth > DEPTH_LIMIT:
                raise UnreadableType(f"it nests deeper than {DEPTH_LIMIT} levels")
            return self._read(arrow, path, depth)
        except UnreadableType as error:
            message = f"the type of `{format_path(path)}` cannot be declared: {error}"
            self.problems.append(Diagnostic("unclear-type", message, self.place, error.hint))
            return TypeReading(None)

    def _read(self, arrow: Any, path: FieldPath, depth: int) -> TypeReading:
        text = str(arrow)
        nested = _NESTED.match(text)
        if nested is None:
            return _plain_type(text)
        kind = nested[1]
        if kind == "dictionary":
            return self._type(arrow.value_type, path, depth + 1)
        if kind == "struct":
            return TypeReading(Struct(tuple(self.fields(arrow, path, depth + 1))))
        if kind == "map":
            key = self._field(arrow.key_field, "key", (*path, "key"), depth + 1, is_key=True)
            return TypeReading(Map(key, self._field(arrow.item_field, "value", (*path, "value"), depth + 1)))
        return TypeReading(List(self._field(arrow.value_field, "element", (*path, "element"), depth + 1)))


def _plain_type(text: str) -> TypeReading:
    """The type of Arrow's text for it.

    :raises UnreadableType: Iceberg has no such type.
    """
    if found := _DECIMAL.fullmatch(text):
        return decimal_type(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(text):
        return TypeReading(Fixed(int(found[1])), frozenset({"uuid"}))
    if found := _TIMESTAMP.fullmatch(text):
        zone = "timestamptz" if ", tz=" in text else "timestamp"
        return named_type("arrow", f"{zone}_ns" if found[1] == "ns" else zone)
    if found := _UNIT.fullmatch(text):
        return named_type("arrow", found[1])
    if _UUID.fullmatch(text):
        return named_type("arrow", "uuid")
    return named_type("arrow", text)
