"""Arrow data in the types that DuckDB reads, without a loss."""

from __future__ import annotations

from typing import Any

from icemigrate.errors import UsageError

_LONGEST_DECIMAL = 38
"""In digits; Iceberg's specification has no longer one."""
_KNOWN_EXTENSIONS = ("arrow.uuid", "arrow.json")


def readable_arrow(data: Any) -> Any:
    """Arrow data whose columns have types that DuckDB reads with all their digits.

    Nanoseconds with a zone become times in UTC without one: DuckDB has no such type, and would cut their last
    digits.

    :param data: a table, or a reader of batches.
    :raises UsageError: a column has a type that no column of a table has, such as a period of pandas.
    """
    import pyarrow as pa

    schema = readable_schema(data.schema)
    if schema.equals(data.schema):
        return data
    if isinstance(data, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in data))
    return data.cast(schema)


def readable_schema(schema: Any, *, keeps_zones: bool = False) -> Any:
    """See :func:`readable_arrow`.

    :param keeps_zones: whether times keep their zone, for the look at types alone.
    :raises UsageError: see :func:`readable_arrow`.
    """
    import pyarrow as pa

    return pa.schema(
        field.with_type(_readable(field.type, field.name, keeps_zones)).remove_metadata() for field in schema
    )


def _readable(type_: Any, column: str, keeps_zones: bool) -> Any:
    import pyarrow as pa

    def inner(field: Any) -> Any:
        return field.with_type(_readable(field.type, column, keeps_zones))

    types = pa.types
    if types.is_timestamp(type_) and type_.unit == "ns" and type_.tz and not keeps_zones:
        return pa.timestamp("ns")
    if types.is_float16(type_):
        return pa.float32()
    if types.is_decimal256(type_) and type_.precision <= _LONGEST_DECIMAL:
        return pa.decimal128(type_.precision, type_.scale)
    if types.is_struct(type_):
        return pa.struct([inner(type_.field(number)) for number in range(type_.num_fields)])
    if types.is_map(type_):
        return pa.map_(inner(type_.key_field), inner(type_.item_field))
    if types.is_large_list(type_):
        return pa.large_list(inner(type_.value_field))
    if types.is_fixed_size_list(type_):
        return pa.list_(inner(type_.value_field), type_.list_size)
    if types.is_list(type_):
        return pa.list_(inner(type_.value_field))
    if types.is_dictionary(type_):
        value = _readable(type_.value_type, column, keeps_zones)
        return type_ if value.equals(type_.value_type) else value
    if _is_uncastable(type_):
        inside = type_.value_type
        if not _readable(inside, column, keeps_zones).equals(inside):
            raise UsageError(
                f"column `{column}` of the data has the type {type_}, which Arrow cannot convert",
                "give the column as a list, or without run ends",
            )
        return type_
    is_unknown = isinstance(type_, pa.BaseExtensionType) and type_.extension_name not in _KNOWN_EXTENSIONS
    if is_unknown or types.is_decimal256(type_) or types.is_union(type_):
        raise UsageError(
            f"column `{column}` of the data has the type {type_}, which no table has",
            "convert the column to a type such as a text, a number or a time",
        )
    return type_


def _is_uncastable(type_: Any) -> bool:
    """Whether Arrow has no cast that changes the type of the values inside."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_list_view(type_) or types.is_large_list_view(type_) or types.is_run_end_encoded(type_)
    )
