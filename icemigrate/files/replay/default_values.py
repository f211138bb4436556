"""Default values: from YAML to the specification's JSON single-value form.

Specification, "Appendix D: Single-value serialization" and "Default values".  Where the specification allows
several forms, this is the one that Iceberg's library writes (``SingleValueParser``), so that values read back
are equal: fractions of seconds without trailing zeros, bytes in upper case.  The library supports defaults of
primitive types only, so nested ones are refused here.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal as Number
from decimal import InvalidOperation

from icemigrate.files.read.migration_file import DefaultEntry
from icemigrate.iceberg.single_values import TIMESTAMP_PATTERN
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Decimal, Fixed, JsonValue, Primitive, Type

_INT = 2**31
_LONG = 2**63
_FLOAT_MAX = 3.4028234663852886e38
_LONGEST_NUMBER = 1_000
"""In characters; a decimal has 38 digits, and may be written with zeros around them."""
_TIME = re.compile(r"([0-9][0-9]:[0-9][0-9])(?::([0-9][0-9])(?:\.([0-9]{1,6}))?)?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")


class BadDefault(ValueError):
    """A default that its column's type cannot represent; :attr:`hint` shows a valid one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def default_value(default: DefaultEntry, type_: Type) -> JsonValue:
    """The default in JSON single-value form.

    :raises BadDefault: the type cannot represent it, or has no defaults.
    """
    if default.is_null:
        return None
    name = type_.name if isinstance(type_, Primitive) else type(type_).__name__.lower()
    reader = _READERS.get(name)
    if reader is None:
        raise BadDefault(f"the only default of a column of type `{format_type(type_)}` is null")
    if isinstance(default.value, (list, dict)):
        raise BadDefault(f"a default of type `{format_type(type_)}` is a single value")
    value = reader(default, type_)
    if value is None:
        raise BadDefault(
            f"`{default.text}` is not a value of type `{format_type(type_)}`",
            f"write for example `{_EXAMPLES[name]}`",
        )
    return value


def _boolean(default: DefaultEntry, _: Type) -> JsonValue:
    return default.value if isinstance(default.value, bool) else None


def _integer(bound: int) -> Callable[[DefaultEntry, Type], JsonValue]:
    def read(default: DefaultEntry, _: Type) -> JsonValue:
        value = default.value
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if -bound <= value < bound else None

    return read


def _float(default: DefaultEntry, type_: Type) -> JsonValue:
    value = default.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # JSON has neither infinity nor NaN, so no reader is certain to get one back.
    if not math.isfinite(number) or (type_ == Primitive("float") and abs(number) > _FLOAT_MAX):
        return None
    return number


def _decimal(default: DefaultEntry, type_: Type) -> JsonValue:
    assert isinstance(type_, Decimal)
    if len(default.text) > _LONGEST_NUMBER:
        return None
    try:
        number = Number(default.text.replace("_", ""))
    except InvalidOperation:
        return None
    if isinstance(default.value, bool) or not number.is_finite():
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + type_.scale
    if not any(digits):
        shift, digits = 0, (0,)
    # An exponent may have nine digits: no power of ten is computed that no decimal can have.
    if shift > type_.precision or -shift > len(digits):
        return None
    unscaled = int("".join(map(str, digits)))
    if shift < 0 and unscaled % 10**-shift:
        return None
    unscaled = unscaled * 10**shift if shift >= 0 else unscaled // 10**-shift
    if unscaled >= 10**type_.precision:
        return None
    text = str(unscaled).rjust(type_.scale + 1, "0")
    if type_.scale:
        text = f"{text[: -type_.scale]}.{text[-type_.scale :]}"
    return "-" + text if sign and unscaled else text


def _string(default: DefaultEntry, _: Type) -> JsonValue:
    return default.value if isinstance(default.value, str) else None


def _uuid(default: DefaultEntry, _: Type) -> JsonValue:
    try:
        return str(uuid.UUID(default.text))
    except ValueError:
        return None


def _date(default: DefaultEntry, _: Type) -> JsonValue:
    return default.text if _is_date(default.text) else None


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_clock(minutes: str, seconds: str) -> bool:
    try:
        time.fromisoformat(f"{minutes}:{seconds}")
    except ValueError:
        return False
    return True


def _time(default: DefaultEntry, _: Type) -> JsonValue:
    match = _TIME.fullmatch(default.text)
    if match is None or not _is_clock(match[1], match[2] or "00"):
        return None
    return f"{match[1]}:{match[2] or '00'}{_fraction(match[3])}"


def _fraction(digits: str | None) -> str:
    kept = (digits or "").rstrip("0")
    return f".{kept}" if kept else ""


def _timestamp(zoned: bool, digits: int) -> Callable[[DefaultEntry, Type], JsonValue]:
    def read(default: DefaultEntry, _: Type) -> JsonValue:
        match = TIMESTAMP_PATTERN.fullmatch(default.text)
        if match is None or not _is_date(match[1]) or not _is_clock(match[2], match[3] or "00"):
            return None
        fraction, zone = match[4] or "", match[5]
        if len(fraction) > digits or (zone is None) is zoned:
            return None
        # The specification stores instants in UTC; another offset would have to be converted here.
        if zoned and zone.upper() not in ("Z", "+00:00", "+0000"):
            return None
        text = f"{match[1]}T{match[2]}:{match[3] or '00'}{_fraction(fraction)}"
        return text + "+00:00" if zoned else text

    return read


def _binary(default: DefaultEntry, _: Type) -> JsonValue:
    return default.text.upper() if _HEX.fullmatch(default.text) else None


def _fixed(default: DefaultEntry, type_: Type) -> JsonValue:
    assert isinstance(type_, Fixed)
    return (
        default.text.upper()
        if _HEX.fullmatch(default.text) and len(default.text) == 2 * type_.length
        else None
    )


_READERS: dict[str, Callable[[DefaultEntry, Type], JsonValue]] = {
    "boolean": _boolean,
    "int": _integer(_INT),
    "long": _integer(_LONG),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "string": _string,
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp(False, 6),
    "timestamptz": _timestamp(True, 6),
    "timestamp_ns": _timestamp(False, 9),
    "timestamptz_ns": _timestamp(True, 9),
    "binary": _binary,
    "fixed": _fixed,
}

_EXAMPLES = {
    "boolean": "true",
    "int": "0",
    "long": "0",
    "float": "0.5",
    "double": "0.5",
    "decimal": "1.50",
    "string": '"text"',
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "date": "2026-11-27",
    "time": "22:31:08.123456",
    "timestamp": "2026-11-27T22:31:08",
    "timestamptz": "2026-11-27T22:31:08+00:00",
    "timestamp_ns": "2026-11-27T22:31:08.123456789",
    "timestamptz_ns": "2026-11-27T22:31:08.123456789+00:00",
    "binary": "00ff",
    "fixed": "00ff",
}
