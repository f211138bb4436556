"""Conditions that find nulls at any depth of a row."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.model.schema import Schema
from icemigrate.model.types import Field, List, Map, Struct
from icemigrate.sql.names import quote


def null_sql(schema: Schema, field_id: int) -> str:
    """Whether a row has a null in a field; one around the field is none of its own."""
    column, *inside = schema.line_to(field_id)
    return _null_sql(quote(column.name), column, inside)


def _null_sql(value: str, field: Field, inside: Sequence[Field]) -> str:
    """The condition on a value of a field, for the one at the end of what is inside."""
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
