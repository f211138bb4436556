"""Single values as text and JSON: timestamps, and the bounds in a manifest (specification, "Appendix D")."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from uuid import UUID

from icemigrate.iceberg.partitioning import IDENTITY, Transform
from icemigrate.iceberg.types import Decimal, Fixed, JsonValue, Primitive, Type

TIMESTAMP_PATTERN = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-](?:(?:0[0-9]|1[0-7]):?[0-5][0-9]|18:?00))?",
    re.IGNORECASE,
)
"""Groups: the date, hours and minutes, seconds, their fraction, the zone.

A zone is at most 18 hours from UTC, as in Spark and in DuckDB's texts of a load.
"""


def parse_spark_timestamp(text: str) -> datetime | None:
    """The time in a text of PySpark: without a zone, in the time zone of this process.

    ``None`` where it is not a time, or finer than a microsecond.
    """
    match = TIMESTAMP_PATTERN.fullmatch(text)
    if match is None:
        return None
    day, minutes, seconds, fraction, zone = match.groups()
    # Before Python 3.11 it accepts neither `Z` nor a zone without a colon.
    zone = re.sub(r"([0-9][0-9])([0-9][0-9])", r"\1:\2", (zone or "").upper().replace("Z", "+00:00"))
    fraction = (fraction or "").rstrip("0").ljust(6, "0")
    try:
        moment = datetime.fromisoformat(f"{day} {minutes}:{seconds or '00'}.{fraction}{zone}")
        return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError):  # the first and the last day of all have no time in other zones
        return None


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMESTAMP_BYTES = 8
_WHOLE_NUMBERS = ("int", "long")


def from_bytes(type_: Type, value: bytes) -> JsonValue:
    """A value in the binary form, as JSON; a number whose type was widened has fewer bytes.

    ``None`` where a bound is not exact (floating point numbers: a bound has neither NaN nor the sign of zero;
    a timestamp that was a date: its bound counts days), or where Python has no such value.
    """
    if isinstance(type_, Decimal):
        return _decimal_text(int.from_bytes(value, "big", signed=True), type_.scale)
    if isinstance(type_, Fixed):
        return value.hex()
    name = type_.name if isinstance(type_, Primitive) else ""
    number = int.from_bytes(value, "little", signed=True)
    if name in _WHOLE_NUMBERS:
        return number
    if name == "boolean":
        return value != b"\x00"
    if name == "string":
        return value.decode("utf-8")
    if name == "binary":
        return value.hex()
    if name == "uuid":
        return str(UUID(bytes=value))
    return None if name.startswith("timestamp") and len(value) != _TIMESTAMP_BYTES else _moment(name, number)


def apply_transform(transform: Transform, type_: Type, value: JsonValue) -> JsonValue:
    """The result of ``identity`` or ``truncate`` for a value (specification, "Truncate Transform Details").

    Both sides are JSON single values.
    """
    if transform == IDENTITY or value is None:
        return value
    assert transform.name == "truncate", "only these two keep a value of the column's own type"
    width = transform.width
    assert width is not None, "a truncation has a width"
    if isinstance(type_, Decimal):
        unscaled = int(str(value).replace(".", ""))
        return _decimal_text(unscaled - unscaled % width, type_.scale)
    if isinstance(value, int):
        return value - value % width
    assert isinstance(value, str), "strings and bytes"
    # In JSON a byte is two digits.
    return value[: width * 2] if type_ == Primitive("binary") else value[:width]


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def _moment(name: str, number: int) -> JsonValue:
    try:
        if name == "date":
            return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
        if name == "time":
            return (_EPOCH + timedelta(microseconds=number)).time().isoformat("microseconds")
        if name in ("timestamp", "timestamptz"):
            text = (_EPOCH + timedelta(microseconds=number)).isoformat(timespec="microseconds")
            return text if name == "timestamptz" else text.removesuffix("+00:00")
        if name in ("timestamp_ns", "timestamptz_ns"):
            seconds, nanoseconds = divmod(number, 1_000_000_000)
            text = (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
            zone = "+00:00" if name == "timestamptz_ns" else ""
            return f"{text}.{nanoseconds:09d}{zone}"
    except OverflowError:
        pass  # before the year 1, or after 9999
    return None
