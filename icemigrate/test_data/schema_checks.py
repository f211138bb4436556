"""Which columns have no test data, found before the first row is generated."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.arrow_types import is_stored
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import (
    Field,
    Fixed,
    Geography,
    Geometry,
    Primitive,
    Struct,
    children,
    is_nested,
)

_MAX_DEPTH = 32
_MAX_FIXED_BYTES = 65_536
"""The limits of the Rust crate's reader of schemas."""


def unsupported_columns(schema: Schema) -> Iterator[tuple[FieldPath, str]]:
    """The paths of columns without test data, each with the reason, as in ``has type `variant` ``."""
    for field in schema.fields:
        if is_stored(field):
            yield from _unsupported(field, ())


def has_stored_columns(schema: Schema) -> bool:
    """Whether files store a column: those of the type ``unknown`` are in no file."""
    return any(map(is_stored, schema.fields))


def _unsupported(field: Field, parent: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    path, type_ = (*parent, field.name), field.type
    if isinstance(type_, (Geometry, Geography)) or type_ in (Primitive("variant"), Primitive("unknown")):
        yield path, f"has type `{primitive_text(type_)}`"
    elif isinstance(type_, Fixed) and type_.length > _MAX_FIXED_BYTES:
        yield path, f"is longer than {_MAX_FIXED_BYTES:,} bytes"
    elif len(path) > _MAX_DEPTH:
        yield path, f"is nested more than {_MAX_DEPTH} levels deep"
    elif is_nested(type_):
        inner = children(type_)
        if isinstance(type_, Struct):
            inner = tuple(filter(is_stored, inner))
        if not inner:
            yield path, "has no field that files store"
        for child in inner:
            yield from _unsupported(child, path)
