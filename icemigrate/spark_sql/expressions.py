"""Spark SQL expressions: partition and sort terms, defaults, and conditions that find nulls."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.partitioning import ASC, IDENTITY, NULLS_FIRST, VOID, Transform, default_null_order
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, Fixed, JsonValue, List, Map, Primitive, Struct, Type
from icemigrate.spark_sql.identifiers import path_sql, quote
from icemigrate.spark_sql.literals import string_sql
from icemigrate.spark_sql.type_sql import spark_type

_TIME = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def transform_sql(transform: Transform, source: FieldPath) -> str:
    """A transform of a field: ``id``, ``days(ts)``, ``bucket(16, id)``, ``truncate(4, data)``.

    A void transform has no SQL; an unknown one is written as a function of its name.
    """
    assert transform != VOID, "a void field is what is left of a dropped one"
    if transform == IDENTITY:
        return path_sql(source)
    if transform.width is not None:
        return f"{transform.name}({transform.width}, {path_sql(source)})"
    return f"{_TIME.get(transform.name, transform.name)}({path_sql(source)})"


def sort_sql(transform: Transform, source: FieldPath, direction: str, null_order: str) -> str:
    """A sort term without default values: ``ts``, ``id DESC``, ``id DESC NULLS FIRST``.

    :param direction: the specification's ``asc`` or ``desc``.
    :param null_order: the specification's ``nulls-first`` or ``nulls-last``.
    """
    text = transform_sql(transform, source) + ("" if direction == ASC else " DESC")
    if null_order == default_null_order(direction):
        return text
    return text + (" NULLS FIRST" if null_order == NULLS_FIRST else " NULLS LAST")


def default_sql(value: JsonValue, type_: Type) -> str:
    """A default in the JSON of the specification ("JSON single-value serialization") as Spark reads it.

    Spark has a text where Iceberg has a uuid.
    """
    if isinstance(type_, Fixed) or type_ == Primitive("binary"):
        return f"X{string_sql(str(value))}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    known = spark_type(type_)
    return string_sql(text) if known is None else f"CAST({string_sql(text)} AS {known})"


def null_sql(schema: Schema, field_id: int) -> str:
    """The condition that a field is null although its parents are not."""
    column, *inside = schema.line_to(field_id)
    return _null_sql(quote(column.name), column, inside)


def _null_sql(value: str, field: Field, inside: Sequence[Field]) -> str:
    """The condition on a value of a field, for the innermost one."""
    if not inside:
        return f"{value} IS NULL"
    inner, *rest = inside
    type_ = field.type
    if isinstance(type_, Struct):
        there = "" if field.required else f"{value} IS NOT NULL AND "
        return f"{there}{_null_sql(f'{value}.{quote(inner.name)}', inner, rest)}"
    if isinstance(type_, Map):
        value = f"{'map_keys' if inner.id == type_.key.id else 'map_values'}({value})"
    else:
        assert isinstance(type_, List), "other types have nothing inside"
    one = f"x{len(inside)}"
    return f"exists({value}, {one} -> {_null_sql(one, inner, rest)})"
