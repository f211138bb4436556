"""Iceberg's types as DuckDB's SQL writes them, and the field ids of their columns."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    children,
    is_nested,
)
from icemigrate.table_data.duckdb_session import quoted_identifier

_PRIMITIVES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz_ns": "TIMESTAMP_NS",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
}
"""The types of stored primitives.  DuckDB has no time of nanoseconds with a zone: it has the time in UTC."""


def duckdb_type(type_: Type) -> str:
    """The type of a stored field in DuckDB, as ``DESCRIBE`` writes it."""
    if isinstance(type_, Struct):
        return (
            f"STRUCT({', '.join(f'{quoted_identifier(f.name)} {duckdb_type(f.type)}' for f in type_.fields)})"
        )
    if isinstance(type_, List):
        return f"{duckdb_type(type_.element.type)}[]"
    if isinstance(type_, Map):
        return f"MAP({duckdb_type(type_.key.type)}, {duckdb_type(type_.value.type)})"
    if isinstance(type_, Decimal):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if isinstance(type_, Fixed):
        return "BLOB"
    assert isinstance(type_, Primitive), "a stored field has one of these types"
    return _PRIMITIVES[type_.name]


def is_exact(type_: Type) -> bool:
    """Whether DuckDB's Parquet writer gives a column the type that Iceberg's specification requires."""
    if isinstance(type_, Fixed) or type_ == Primitive("timestamptz_ns"):
        return False
    return all(is_exact(child.type) for child in children(type_))


def field_ids(fields: Sequence[Field]) -> str:
    """The option ``FIELD_IDS`` of ``COPY``."""
    return f"{{{', '.join(f'{quoted_identifier(f.name)}: {_field_id(f)}' for f in fields)}}}"


def _field_id(field: Field) -> str:
    if not is_nested(field.type):
        return str(field.id)
    inner = field_ids(children(field.type))[1:-1]
    return f"{{__duckdb_field_id: {field.id}, {inner}}}"
