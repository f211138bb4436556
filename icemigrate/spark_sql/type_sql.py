"""Iceberg's types in Spark SQL's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.iceberg.lookup import FieldLookup
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    children,
    descendants,
    is_nested,
)
from icemigrate.spark_sql.identifiers import quote
from icemigrate.spark_sql.literals import string_sql

_PRIMITIVES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    # The reverse of what the names suggest: Spark's TIMESTAMP is the one with a time zone.
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "string": "STRING",
    "binary": "BINARY",
    "unknown": "VOID",
    "variant": "VARIANT",
}


def spark_type(type_: Type) -> str | None:
    """The type in a statement, or ``None`` where Spark SQL cannot express it.

    It cannot express ``time``, ``uuid``, ``fixed``, the nanosecond timestamps, geometry and geography (which
    Spark 4.1 only supports with ``spark.sql.geospatial.enabled``); defaults of nested fields; required
    elements of lists and required values of maps; and every type that contains one of these.  Names,
    nullability and descriptions of a struct's fields are part of the text.
    """
    if isinstance(type_, Primitive):
        return _PRIMITIVES.get(type_.name)
    if isinstance(type_, Decimal):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if isinstance(type_, List):
        element = None if type_.element.required else spark_type(type_.element.type)
        return None if element is None else f"ARRAY<{element}>"
    if isinstance(type_, Map):
        key = spark_type(type_.key.type)
        value = None if type_.value.required else spark_type(type_.value.type)
        return None if key is None or value is None else f"MAP<{key}, {value}>"
    if isinstance(type_, Struct):
        fields = [_nested_field(field) for field in type_.fields]
        known = [text for text in fields if text is not None]
        return f"STRUCT<{', '.join(known)}>" if len(known) == len(fields) else None
    return None


_LOADED = frozenset({Geometry(), Geometry("EPSG:3857"), Geometry("SRID:0"), Geography()})
"""The geometries and geographies of Spark 4.1.

It requires a reference system with a known number, in capitals, and edges on a sphere.  ``SRID:ANY`` is left
out: it is loaded, but accepts no row.
"""


def spark_loads(schema: Schema) -> bool:
    """Whether Spark can load a table of this schema.

    It refuses one with a ``time``, a nanosecond timestamp (``TypeToSparkType``, Iceberg 1.12), or an
    unsupported geometry or geography (``ST_INVALID_CRS_VALUE``) at any depth, and then no statement can name
    the table.
    """
    types = [column.type for column in schema.fields]
    nested = (descendants(t).leaves for t in types if is_nested(t))
    return all(map(_loads, frozenset(t for t in types if not is_nested(t)).union(*nested)))


def are_names_distinct(schema: Schema) -> bool:
    """Whether Spark can address every field: it compares names without regard to case."""
    return all(
        FieldLookup(fields).are_distinct(str.lower)
        for fields in (schema.fields, *_structs(column.type for column in schema.fields))
    )


def _structs(types: Iterable[Type]) -> Iterator[tuple[Field, ...]]:
    for type_ in types:
        if isinstance(type_, Struct):
            yield type_.fields
        if is_nested(type_):
            yield from _structs(child.type for child in children(type_))


def not_loaded_by(schema: Schema) -> tuple[tuple[FieldPath, Type], ...]:
    """The fields that prevent Spark from loading a table of this schema."""
    if spark_loads(schema):
        return ()
    leaves = ((path, f.type) for path, f in schema.walk() if not is_nested(f.type))
    return tuple((path, type_) for path, type_ in leaves if not _loads(type_))


def _loads(type_: Type) -> bool:
    if isinstance(type_, Primitive):
        return type_.name in _PRIMITIVES or type_.name == "uuid"
    return type_ in _LOADED or not isinstance(type_, (Geometry, Geography))


def comment_sql(doc: str | None) -> str:
    """A description as the end of a column's definition; empty for none."""
    return "" if doc is None else f" COMMENT {string_sql(doc)}"


def _nested_field(field: Field) -> str | None:
    type_ = spark_type(field.type)
    if type_ is None or field.initial_default is not None or field.write_default is not None:
        return None
    required = " NOT NULL" if field.required else ""
    return f"{quote(field.name)}: {type_}{required}{comment_sql(field.doc)}"
