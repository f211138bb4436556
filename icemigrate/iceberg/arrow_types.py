"""The columns of a table as Arrow fields, which carry the field ids that Iceberg's readers use.

Specification, `Appendix A: Parquet <https://iceberg.apache.org/spec/#parquet>`_.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type


def arrow_schema(fields: Sequence[Field]) -> Any:
    """The ``pyarrow.Schema`` of a data file with these fields, without those of the type ``unknown``."""
    import pyarrow as pa

    return pa.schema([arrow_field(field) for field in fields if is_stored(field)])


def is_stored(field: Field) -> bool:
    """Whether files store the field: one of the type ``unknown`` has no values."""
    return field.type != Primitive("unknown")


def arrow_field(field: Field) -> Any:
    """The ``pyarrow.Field`` of a field, with its field id under the key that Parquet's writers read."""
    import pyarrow as pa

    metadata = {"PARQUET:field_id": str(field.id)}
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required, metadata=metadata)


def arrow_type(type_: Type) -> Any:
    """The ``pyarrow.DataType`` of a type that files store."""
    import pyarrow as pa

    if isinstance(type_, Struct):
        return pa.struct([arrow_field(field) for field in type_.fields if is_stored(field)])
    if isinstance(type_, List):
        return pa.list_(arrow_field(type_.element))
    if isinstance(type_, Map):
        return pa.map_(arrow_field(type_.key), arrow_field(type_.value))
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, Fixed):
        return pa.binary(type_.length)
    assert isinstance(type_, Primitive), f"Arrow has no type for {type_}"
    simple: Mapping[str, Callable[[], Any]] = {
        "boolean": pa.bool_,
        "int": pa.int32,
        "long": pa.int64,
        "float": pa.float32,
        "double": pa.float64,
        "date": pa.date32,
        "time": lambda: pa.time64("us"),
        "timestamp": lambda: pa.timestamp("us"),
        "timestamptz": lambda: pa.timestamp("us", "UTC"),
        "timestamp_ns": lambda: pa.timestamp("ns"),
        "timestamptz_ns": lambda: pa.timestamp("ns", "UTC"),
        "string": pa.string,
        # Releases before 18 have no type for it.
        "uuid": getattr(pa, "uuid", lambda: pa.binary(16)),
        "binary": pa.binary,
    }
    return simple[type_.name]()
