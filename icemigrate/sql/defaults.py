"""A field's default as an expression that has its value."""

from __future__ import annotations

from icemigrate.model.types import Fixed, JsonValue, Primitive, Type
from icemigrate.sql.literals import string_sql
from icemigrate.sql.types import spark_type


def default_sql(value: JsonValue, type_: Type) -> str:
    """A default in the JSON of the specification ("JSON single-value serialization") as Spark reads it.

    Spark has a text where Iceberg has a uuid.
    """
    if isinstance(type_, Fixed) or type_ == Primitive("binary"):
        return f"X{string_sql(str(value))}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    known = spark_type(type_)
    return string_sql(text) if known is None else f"CAST({string_sql(text)} AS {known})"
