"""Rows for any table that Spark can write to, and how they are compared: by field id, not by name.

Which value stands where follows from the field's id and the row's number alone, so that a row need not be
kept to be known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import (
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
    children,
    is_nested,
)
from icemigrate.spark_sql.literals import string_sql
from icemigrate.spark_sql.type_sql import spark_type
from tests.support.random_tables import KEY

_POOLS: dict[str, Sequence[Any]] = {
    "boolean": (True, False),
    "int": (0, -7, 2**31 - 1, -(2**31)),
    "long": (0, -7, 2**63 - 1, -(2**63)),
    "float": (0.5, -0.25, 3.0, math.inf, math.nan),
    "double": (0.1, -1e300, 3.0, -math.inf, math.nan),
    "date": (date(2026, 11, 27), date(1969, 12, 31), date(2000, 2, 29)),
    "timestamp": (datetime(2026, 11, 27, 22, 31, 8, 123456), datetime(1969, 12, 31, 23, 59, 59, 1)),
    "timestamptz": (datetime(2026, 11, 27, 22, 31, 8, 123456), datetime(2001, 1, 1)),
    "string": ("", "x", "it's: a #1", " padded ", "é😎", "null"),
    "uuid": ("00000000-0000-4000-8000-000000000001", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    "binary": (bytearray(b""), bytearray(b"\x00\xff"), bytearray(b"abc")),
}

Row = dict[int, Any]
"""A row, or a value of a struct, by field id; lists as lists, maps as sorted pairs."""


def may_hold_null(field: Field) -> bool:
    """Whether rows of these tables have nulls in a field: not where its id is odd, optional or not."""
    return not field.required and (_is_null(field.type) or field.id % 2 == 0)


def _is_null(type_: Type) -> bool:
    """Whether rows have nothing but nulls there: PySpark turns no text into a place on the earth."""
    return type_ == Primitive("unknown") or isinstance(type_, (Geometry, Geography))


def write_row(schema: Schema, number: int) -> tuple[Any, ...]:
    """The row of this number as PySpark takes it; the number stands in its key."""
    return tuple(number if f.id == KEY else _value(f, number) for f in schema.fields)


def row_sql(schema: Schema, number: int) -> str:
    """The same row as ``INSERT … VALUES`` takes it."""
    values = zip(schema.fields, write_row(schema, number), strict=True)
    return f"({', '.join(_value_sql(f.type, value) for f, value in values)})"


def _value_sql(type_: Type, value: Any) -> str:
    if value is None:
        # Structs of one list or map would be cast to one type otherwise, which Spark refuses of a variant.
        return "NULL" if is_nested(type_) or _is_null(type_) else f"CAST(NULL AS {_leaf_sql(type_)})"
    if isinstance(type_, Struct):
        pairs = zip(type_.fields, value, strict=True)
        return (
            f"named_struct({', '.join(f'{string_sql(f.name)}, {_value_sql(f.type, v)}' for f, v in pairs)})"
        )
    if isinstance(type_, List):
        return f"array({', '.join(_value_sql(type_.element.type, v) for v in value)})"
    if isinstance(type_, Map):
        pairs = (
            f"{_value_sql(type_.key.type, k)}, {_value_sql(type_.value.type, v)}" for k, v in value.items()
        )
        return f"map({', '.join(pairs)})"
    if isinstance(value, bytearray):
        return f"X'{value.hex()}'"
    text = string_sql(str(value))
    if type_ == Primitive("variant"):
        return f"parse_json({text})"
    return f"CAST({text} AS {_leaf_sql(type_)})"


def _leaf_sql(type_: Type) -> str:
    """The type of a leaf in Spark, which has fixed as binary and all else that it has no word for as text."""
    return "BINARY" if isinstance(type_, Fixed) else spark_type(type_) or "STRING"


def _value(field: Field, number: int) -> Any:
    at = number + field.id
    if _is_null(field.type) or (may_hold_null(field) and at % 3 == 0):
        return None
    type_ = field.type
    if isinstance(type_, Struct):
        return tuple(_value(f, number) for f in type_.fields)
    if isinstance(type_, List):
        return [_value(type_.element, number + n) for n in range(at % 3)]
    if isinstance(type_, Map):
        return {_value(type_.key, number + n): _value(type_.value, number + n) for n in range(at % 3)}
    if isinstance(type_, Decimal):
        return Number((0, (number % 9, at % 9, 5), -type_.scale))
    if isinstance(type_, Fixed):
        return bytearray((number + n) % 256 for n in range(type_.length))
    assert isinstance(type_, Primitive)
    if type_.name == "variant":
        from pyspark.sql.types import VariantVal

        return VariantVal.parseJson(f'{{"a": [{at}, null]}}')
    pool = _POOLS[type_.name]
    return pool[at % len(pool)]


def read_row(schema: Schema, values: Sequence[Any]) -> Row:
    """A row as PySpark or PyIceberg gives it, by field id."""
    return {f.id: _read(f.type, v) for f, v in zip(schema.fields, values, strict=True)}


def _read(type_: Type, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type_, Struct):
        values = list(value.values()) if isinstance(value, Mapping) else list(value)
        return {f.id: _read(f.type, v) for f, v in zip(type_.fields, values, strict=True)}
    if isinstance(type_, List):
        return [_read(type_.element.type, v) for v in value]
    if isinstance(type_, Map):
        pairs = value.items() if isinstance(value, Mapping) else value
        return sorted(
            ((_read(type_.key.type, k), _read(type_.value.type, v)) for k, v in pairs),
            key=lambda p: repr(p[0]),
        )
    return _leaf(type_, value)


def _leaf(type_: Type, value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (bytes, bytearray)):
        return str(UUID(bytes=bytes(value))) if type_ == Primitive("uuid") else bytes(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime) and type_ == Primitive("timestamptz"):
        # PySpark gives the time of this machine, without a zone.
        return value.astimezone(timezone.utc)
    return str(value) if type_ == Primitive("variant") else value


def row_of(schema: Schema, number: int) -> Row:
    """What a reader finds where :func:`write_row` wrote."""
    return read_row(schema, write_row(schema, number))


def without(row: Row, ids: Collection[int]) -> Row:
    """A row without the values of some fields, wherever they stand in it."""

    def pruned(value: Any) -> Any:
        if isinstance(value, dict):
            return {i: pruned(v) for i, v in value.items() if i not in ids}
        if isinstance(value, (list, tuple)):
            return type(value)(map(pruned, value))
        return value

    found: Row = pruned(row)
    return found


def as_pyiceberg_reads(schema: Schema, row: Row) -> Row:
    """The row as PyIceberg 0.12 has it: a list or map of structs that is null reads as an empty one."""
    return {f.id: _emptied(f.type, row[f.id]) for f in schema.fields if f.id in row}


def _emptied(type_: Type, value: Any) -> Any:
    if isinstance(type_, Struct) and value is not None:
        return {f.id: _emptied(f.type, value[f.id]) for f in type_.fields if f.id in value}
    if isinstance(type_, List):
        if value is None:
            return [] if isinstance(type_.element.type, Struct) else None
        return [_emptied(type_.element.type, v) for v in value]
    if isinstance(type_, Map):
        if value is None:
            return [] if isinstance(type_.value.type, Struct) else None
        return [(k, _emptied(type_.value.type, v)) for k, v in value]
    return value


def differing(written: Row, found: Row, schema: Schema) -> Iterator[str]:
    """The fields whose values are others than were written; what either side has not is passed over."""
    yield from _differing(schema.fields, written, found, ())


def _differing(fields: Sequence[Field], written: Row, found: Row, above: FieldPath) -> Iterator[str]:
    for f in fields:
        if f.id in written and f.id in found:
            yield from _below(f, written[f.id], found[f.id], (*above, f.name))


def _below(field: Field, one: Any, other: Any, path: FieldPath) -> Iterator[str]:
    type_ = field.type
    if one is None or other is None or not children(type_):
        if not _same(one, other):
            yield f"{format_path(path)}#{field.id}: {one!r} was written, {other!r} found"
    elif isinstance(type_, Struct):
        yield from _differing(type_.fields, one, other, path)
    elif len(one) != len(other):
        yield f"{format_path(path)}#{field.id}: {one!r} was written, {other!r} found"
    elif isinstance(type_, List):
        for a, b in zip(one, other, strict=True):
            yield from _below(type_.element, a, b, (*path, "element"))
    else:
        assert isinstance(type_, Map)
        for (k, a), (j, b) in zip(one, other, strict=True):
            yield from _below(type_.key, k, j, (*path, "key"))
            yield from _below(type_.value, a, b, (*path, "value"))


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, datetime) and isinstance(one, date) and not isinstance(one, datetime):
        return other == datetime.combine(one, time())  # read under the wider type
    return bool(one == other)


__all__ = [
    "Row",
    "as_pyiceberg_reads",
    "differing",
    "may_hold_null",
    "read_row",
    "row_of",
    "row_sql",
    "without",
    "write_row",
]
