"""Values of rows in the form that a Parquet column stores: numbers, texts and bytes.

A value is a Python value, or has the JSON form of the specification's `Appendix D
<https://iceberg.apache.org/spec/#json-single-value-serialization>`_; a struct is a mapping by name, and a map
a mapping by key.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from uuid import UUID

from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.single_values import TIMESTAMP_PATTERN
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
    with_children,
)

_SHOWN = 60
"""How many characters of a value a message shows."""
_NANOSECONDS = 1_000


class UnfitValue(ValueError):
    """A value that a column cannot have; the message names both."""


def stored_field(field: Field) -> Field | None:
    """The field as a file has it; ``None`` for one that is left out.

    The specification stores no column of the type ``unknown``.  Values of variants, geometries and
    geographies are not supported, and a file may lack a column that has nulls only.
    """
    type_ = field.type
    if not is_nested(type_):
        is_stored = isinstance(type_, (Decimal, Fixed)) or _name(type_) in _CONVERSIONS
        return field if is_stored else None
    inner = tuple(found for child in children(type_) if (found := stored_field(child)) is not None)
    if not inner or (not isinstance(type_, Struct) and len(inner) < len(children(type_))):
        return None
    return Field(field.id, field.name, with_children(type_, inner), field.required)


def stored_value(field: Field, value: Any, path: str) -> Any:
    """The stored form of a field's value; a map is a list of pairs.

    :param path: names the field in a message.
    :raises UnfitValue: the field cannot have the value.
    """
    if value is None:
        if field.required:
            raise UnfitValue(f"`{path}` is required, and there is no value")
        return None
    try:
        if stored_field(field) is None:
            raise ValueError("no values of its type are written")
        return _stored(field.type, value, path)
    except UnfitValue:
        raise
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        type_ = "" if is_nested(field.type) else f" ({primitive_text(field.type)})"
        raise UnfitValue(f"`{path}`{type_} cannot have the value {shown}: {error}") from error


def _stored(type_: Type, value: Any, path: str) -> Any:
    if isinstance(type_, Struct):
        fields = {f.name: f for f in type_.fields}
        _require(isinstance(value, Mapping), "a mapping is needed")
        if unknown := [name for name in value if name not in fields]:
            raise ValueError(f"the struct has no field `{unknown[0]}`")
        return {name: stored_value(f, value.get(name), f"{path}.{name}") for name, f in fields.items()}
    if isinstance(type_, List):
        _require(isinstance(value, (list, tuple)), "a list is needed")
        return [stored_value(type_.element, item, f"{path}.element") for item in value]
    if isinstance(type_, Map):
        _require(isinstance(value, Mapping), "a mapping is needed")
        return [
            (stored_value(type_.key, key, f"{path}.key"), stored_value(type_.value, item, f"{path}.value"))
            for key, item in value.items()
        ]
    if isinstance(type_, Decimal):
        return _decimal(type_, value)
    if isinstance(type_, Fixed):
        content = _binary(value)
        _require(len(content) == type_.length, f"it has {len(content)} bytes")
        return content
    return _CONVERSIONS[_name(type_)](value)


def _name(type_: Type) -> str:
    return type_.name if isinstance(type_, Primitive) else ""


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(reason)


def _boolean(value: Any) -> bool:
    _require(isinstance(value, bool), "true or false is needed")
    return bool(value)


def _whole_number(bits: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        _require(isinstance(value, int) and not isinstance(value, bool), "a whole number is needed")
        _require(-(2 ** (bits - 1)) <= value < 2 ** (bits - 1), f"a number of {bits} bits is needed")
        return int(value)

    return convert


def _float(exact_limit: int, form: str) -> Callable[[Any], float]:
    """A conversion that refuses whole numbers without an exact floating-point number, and lost magnitudes.

    :param exact_limit: from this number on, the type lacks whole numbers.
    :param form: of the type in :mod:`struct`.
    """

    def convert(value: Any) -> float:
        _require(isinstance(value, (int, float)) and not isinstance(value, bool), "a number is needed")
        if isinstance(value, int) and abs(value) > exact_limit:
            step = 1 << (abs(value).bit_length() - exact_limit.bit_length() + 1)
            _require(value % step == 0, "the type has no number with these digits")
        found = float(value)
        try:
            stored = struct.unpack(form, struct.pack(form, found))[0]
        except OverflowError as error:
            raise ValueError("the type has no number as large") from error
        _require(bool(stored) == bool(found), "the type has no number as small")
        return found

    return convert


def _text(value: Any) -> str:
    _require(isinstance(value, str), "a text is needed")
    if (problem := surrogate_problem(value)) is not None:
        raise ValueError(problem)
    return str(value)


def surrogate_problem(text: str) -> str | None:
    """Why a text has no form in UTF-8, which files have; ``None`` where it has one."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"it has the surrogate U+{ord(text[error.start]):04X}, which is no character"
    return None


def _binary(value: Any) -> bytes:
    return bytes.fromhex(value) if isinstance(value, str) else bytes(memoryview(value))


def _decimal(type_: Decimal, value: Any) -> decimal.Decimal:
    _require(not isinstance(value, (bool, float)), "an exact number is needed")
    with decimal.localcontext() as context:
        context.prec = 2 * type_.precision
        found = decimal.Decimal(value)
        unscaled = found.scaleb(type_.scale)
        _require(unscaled == unscaled.to_integral_value(), f"it has more than {type_.scale} decimal places")
        _require(abs(unscaled) < 10**type_.precision, f"it has more than {type_.precision} digits")
    return found


_FIRST_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def _days(value: Any) -> int:
    day = value if isinstance(value, date) else date.fromisoformat(value)
    _require(not isinstance(day, datetime), "a day is needed")
    return (day - _FIRST_DAY).days


def _time_of_day(value: Any) -> int:
    """Microseconds since midnight."""
    found = value if isinstance(value, time) else time.fromisoformat(value)
    _require(found.tzinfo is None, "a time without a zone is needed")
    return (datetime.combine(_FIRST_DAY, found, timezone.utc) - _EPOCH) // _MICROSECOND


def _timestamp(has_zone: bool, is_fine: bool = False) -> Callable[[Any], int]:
    """Microseconds since the epoch; nanoseconds for a fine one.

    A time without a zone is in UTC where the type has zones.
    """

    def convert(value: Any) -> int:
        rest = 0
        if isinstance(value, datetime):
            found = value
        else:
            _require(isinstance(value, str), "a time is needed")
            found, rest = _parsed_timestamp(value)
            _require(is_fine or rest == 0, "it is finer than a microsecond")
        _require(has_zone or found.tzinfo is None, "a time without a zone is needed")
        since = (found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)) - _EPOCH
        return since // _MICROSECOND * _NANOSECONDS + rest if is_fine else since // _MICROSECOND

    return convert


def _parsed_timestamp(text: str) -> tuple[datetime, int]:
    """A time, and its nanoseconds below a microsecond."""
    match = TIMESTAMP_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError("it is no time")
    day, minutes, seconds, fraction, zone = match.groups()
    digits = (fraction or "").ljust(9, "0")
    zone = (zone or "").upper().replace("Z", "+00:00")
    # Before Python 3.11 it accepts no zone without a colon.
    zone = zone if len(zone) != len("+0000") else f"{zone[:3]}:{zone[3:]}"
    return datetime.fromisoformat(f"{day} {minutes}:{seconds or '00'}.{digits[:6]}{zone}"), int(digits[6:])


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "int": _whole_number(32),
    "long": _whole_number(64),
    "float": _float(2**24, "<f"),
    "double": _float(2**53, "<d"),
    "date": _days,
    "time": _time_of_day,
    "timestamp": _timestamp(has_zone=False),
    "timestamptz": _timestamp(has_zone=True),
    "timestamp_ns": _timestamp(has_zone=False, is_fine=True),
    "timestamptz_ns": _timestamp(has_zone=True, is_fine=True),
    "string": _text,
    "uuid": lambda value: UUID(str(value)).bytes,
    "binary": _binary,
}
"""The primitives that are stored, each with the conversion of a value."""
