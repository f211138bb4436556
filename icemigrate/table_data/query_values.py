"""Values of Arrow arrays as Python values that JSON can have without losing a digit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def json_values(array: pa.Array) -> list[Any]:
    """The values of an array.

    Integers and booleans stay as they are.  Decimals, dates and times are texts: JSON's readers round numbers
    to 64-bit floats, and JSON has no times.  Binary values are hexadecimal texts; ``NaN`` and the infinities
    are texts.  A struct is an object, a list is an array.  A map with texts as keys is an object, any other
    one an array of objects with ``key`` and ``value``.
    """
    import pyarrow as pa

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return json_values(array.storage) if not _is_uuid(kind) else _as_texts(array.to_pylist())
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _sliced(array, json_values(array.values))
    if pa.types.is_fixed_size_list(kind):
        return [
            None if one is None else json_values(pa.array(one, kind.value_type)) for one in array.to_pylist()
        ]
    if pa.types.is_floating(kind):
        return [_float(value) for value in array.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        return [
            # A time that Arrow cannot show has a text such as `<value out of range: 9223372036854775807>`.
            text if text is None or text.startswith("<") else text.replace(" ", "T")
            for text in array.cast(pa.string()).to_pylist()
        ]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return list(array.cast(pa.string()).to_pylist())
    if pa.types.is_interval(kind):
        return [None if one is None else _interval(*one) for one in array.to_pylist()]
    return list(array.to_pylist())


def _is_uuid(kind: pa.DataType) -> bool:
    return str(kind.extension_name) == "arrow.uuid"


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """A duration of ISO 8601."""
    seconds = f"{nanoseconds / 1_000_000_000:.9f}".rstrip("0").rstrip(".")
    return f"P{months}M{days}DT{seconds}S"


def _as_texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def _float(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _structs(array: pa.StructArray) -> list[dict[str, Any] | None]:
    names = [array.type.field(at).name for at in range(array.type.num_fields)]
    parts = [json_values(part) for part in array.flatten()]
    present = array.is_valid().to_pylist()
    return [
        dict(zip(names, values, strict=True)) if there else None
        for there, *values in zip(present, *parts, strict=True)
    ]


def _sliced(array: Any, items: list[Any]) -> list[list[Any] | None]:
    """The parts of the items that belong to each value of a list."""
    offsets, present = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [
        items[start:end] if there else None
        for there, start, end in zip(present, offsets, offsets[1:], strict=False)
    ]


def _maps(array: pa.MapArray) -> list[Any]:
    import pyarrow as pa

    keys, values = json_values(array.keys), json_values(array.items)
    pairs = _sliced(array, list(zip(keys, values, strict=True)))
    if pa.types.is_string(array.type.key_type) or pa.types.is_large_string(array.type.key_type):
        return [None if one is None else dict(one) for one in pairs]
    return [None if one is None else [{"key": key, "value": value} for key, value in one] for one in pairs]
