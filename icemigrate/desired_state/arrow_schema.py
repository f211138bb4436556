"""Reads a ``pyarrow.Schema``, without importing pyarrow: what a table of these columns is in Iceberg.

Nullable is Arrow's default and states nothing, so only ``nullable=False`` says that a column is required.
The way back is :mod:`icemigrate.iceberg.arrow_types`.
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
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct

_NESTED = re.compile(r"(struct|map|(?:large_|fixed_size_)?list(?:_view)?|large_list_view|dictionary)<")
_DECIMAL = re.compile(r"decimal(?:32|64|128|256)\(([0-9]+), (-?[0-9]+)\)")
_FIXED = re.compile(r"fixed_size_binary\[([0-9]+)\]")
_TIMESTAMP = re.compile(r"timestamp\[(\w+)(?:, tz=.*)?\]")
_UUID = re.compile(r"extension<arrow\.uuid.*>")
_UNIT = re.compile(r"(date32|date64|time32|time64)\[\w+\]")
_UINT64 = Decimal(20, 0)
"""A ``long`` does not have all of its values."""
_DOC_KEYS = (b"doc", b"comment", b"description")


def read_arrow_schema(schema: Any, name: TableName, place: FilePosition | None = None) -> DesiredTable:
    """The table that an Arrow schema describes.

    :param schema: a ``pyarrow.Schema``.
    :raises Mistakes: Iceberg has no type for some of its fields.
    """
    reader = _ArrowReader(place)
    return reader.builder.table(name, reader.columns(schema), place)


def new_columns(schema: Any) -> tuple[Field, ...]:
    """The columns of a new table for data with an Arrow schema.

    A column of nulls becomes a text: ``unknown`` needs format version 3.

    :param schema: a ``pyarrow.Schema``.
    :raises Mistakes: Iceberg has no type for some of its fields.
    """
    return _ArrowReader(None, nulls=TypeReading(Primitive("string"))).columns(schema)


class _ArrowReader:
    """Reads the fields of one schema.

    :param nulls: the type for a column that has nulls only; by default ``unknown``.
    """

    def __init__(self, place: FilePosition | None, nulls: TypeReading | None = None) -> None:
        self.builder, self.place, self.nulls = FieldBuilder(), place, nulls
        self.problems: list[Diagnostic] = []

    def columns(self, schema: Any) -> tuple[Field, ...]:
        """All columns.

        :raises Mistakes: Iceberg has no type for some of its fields.
        """
        columns = tuple(self.fields(schema, (), 0))
        if self.problems:
            raise Mistakes(tuple(self.problems))
        return columns

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
        if text == "null" and self.nulls is not None:
            return self.nulls
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
    if text == "uint64":
        return TypeReading(_UINT64, frozenset({"decimal", "long"}))
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
