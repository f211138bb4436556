"""Fields of OTLP messages in their JSON form, with the types that the protocol gives them.

OTLP specification, `JSON Protobuf Encoding <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>`_:
names are in lowerCamelCase, integers of 64 bits may be decimal strings, ids are hexadecimal, enumerations are
numbers, bytes are base64, and unknown names are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from icemigrate.errors import IcemigrateError

Message: TypeAlias = Mapping[str, Any]
_LATEST_NS = 2**63
"""In the year 2262: differences of times are numbers of 64 bits."""
_DEEPEST = 32
"""How deep a value of an attribute can be nested."""


class UnreadablePayload(IcemigrateError):
    """A payload that is no export request of its kind; the message says where it differs."""


def messages(parent: Message, name: str) -> Iterator[Message]:
    """The messages of a repeated field; none where it is missing.

    :raises UnreadablePayload: the field is no list of objects.
    """
    found = parent.get(name)
    if found is None:
        return
    if not isinstance(found, list):
        raise _unexpected(name, found, "a list")
    for one in found:
        if not isinstance(one, Mapping):
            raise _unexpected(name, one, "an object")
        yield one


def message(parent: Message, name: str) -> Message:
    """A nested message; an empty one where it is missing.

    :raises UnreadablePayload: the field is no object.
    """
    found = parent.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise _unexpected(name, found, "an object")
    return found


def text(parent: Message, name: str) -> str | None:
    """A text; ``None`` where it is missing or empty, which Protocol Buffers do not distinguish.

    :raises UnreadablePayload: the field is no text.
    """
    found = parent.get(name)
    if found is None or found == "":
        return None
    if not isinstance(found, str):
        raise _unexpected(name, found, "a string")
    return found


def integer(parent: Message, name: str, bits: int = 64) -> int | None:
    """A whole number; ``None`` where it is missing.

    :param bits: how many a signed number of the column has.
    :raises UnreadablePayload: the field is no such number, or it is too large.
    """
    found = parent.get(name)
    if found is None:
        return None
    if isinstance(found, str) and found.removeprefix("-").isascii() and found.removeprefix("-").isdigit():
        found = int(found) if len(found) <= 20 else None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    limit = 2 ** (bits - 1)
    if not isinstance(found, int) or isinstance(found, bool) or not -limit <= found < limit:
        raise _unexpected(name, parent[name], f"an integer of {bits} bits")
    return found


def integers(parent: Message, name: str) -> list[int]:
    """The whole numbers of a repeated field.

    :raises UnreadablePayload: one of them is none.
    """
    return [number for one in _values(parent, name) if (number := integer({name: one}, name)) is not None]


def decimal(parent: Message, name: str) -> float | None:
    """A floating-point number; ``None`` where it is missing.

    :raises UnreadablePayload: the field is no number.
    """
    found = parent.get(name)
    if found is None:
        return None
    if isinstance(found, str) and found in _NAMED_NUMBERS:
        return _NAMED_NUMBERS[found]
    try:
        if isinstance(found, bool):
            raise ValueError
        return float(found)
    except (TypeError, ValueError, OverflowError):
        raise _unexpected(name, found, "a number") from None


_NAMED_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON has no notation for, as Protocol Buffers write them."""


def decimals(parent: Message, name: str) -> list[float]:
    """The floating-point numbers of a repeated field.

    :raises UnreadablePayload: one of them is none.
    """
    return [number for one in _values(parent, name) if (number := decimal({name: one}, name)) is not None]


def flag(parent: Message, name: str) -> bool:
    """A truth value; false where it is missing.

    :raises UnreadablePayload: the field is none.
    """
    found = parent.get(name, False)
    if not isinstance(found, bool):
        raise _unexpected(name, found, "true or false")
    return found


def hex_id(parent: Message, name: str, size: int) -> bytes | None:
    """An id; ``None`` where it is missing, empty or all zero, which the protocol calls invalid.

    :param size: in bytes.
    :raises UnreadablePayload: the field is no hexadecimal number of this size.
    """
    found = text(parent, name)
    if found is None:
        return None
    try:
        number = binascii.unhexlify(found)
    except (ValueError, UnicodeEncodeError):
        number = b""
    if len(number) != size:
        raise _unexpected(name, found, f"{2 * size} hexadecimal digits")
    return number if any(number) else None


def nanoseconds(parent: Message, name: str) -> int | None:
    """A time in nanoseconds since 1970 (UTC); ``None`` where it is missing or zero, which means unknown.

    :raises UnreadablePayload: it is no such time, or not before the year 2262.
    """
    found = integer(parent, name, 65)
    if not found:
        return None
    if not 0 < found < _LATEST_NS:
        raise _unexpected(name, found, "a time between 1970 and 2262 in nanoseconds")
    return found


def microseconds(nanos: int | None) -> int | None:
    """A time in the unit of Iceberg's ``timestamptz``; the rest is cut off."""
    return None if nanos is None else nanos // 1000


def attributes(parent: Message, name: str = "attributes") -> dict[str, str]:
    """Attributes by name, each value as text: a string as it is, all others as JSON.

    The last one of several with the same name is used.

    :raises UnreadablePayload: an attribute has no name, or a value is no ``AnyValue``.
    """
    found = dict[str, str]()
    for one in messages(parent, name):
        key = one.get("key", "")
        if not isinstance(key, str):
            raise _unexpected(f"{name}.key", key, "a string")
        found[key] = any_text(message(one, "value")) or ""
    return found


def any_text(value: Message) -> str | None:
    """A value of any type as text; ``None`` where it has none.

    :raises UnreadablePayload: it is no ``AnyValue``.
    """
    plain = _any_value(value, 0)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _any_value(value: Message, depth: int) -> Any:
    """A value as JSON has it: bytes stay base64."""
    if depth > _DEEPEST:
        raise UnreadablePayload(f"a value is nested more than {_DEEPEST} levels deep")
    for name in _VALUES:
        found = value.get(name)
        if found is None:
            continue
        if name == "stringValue":
            return "" if found == "" else text(value, name)
        if name == "boolValue":
            return flag(value, name)
        if name == "intValue":
            return integer(value, name)
        if name == "doubleValue":
            number = decimal(value, name)
            return number if number is None or math.isfinite(number) else str(found)
        if name == "bytesValue":
            return _base64(value, name)
        if name == "arrayValue":
            return [_any_value(one, depth + 1) for one in messages(message(value, name), "values")]
        if name == "kvlistValue":
            return {
                str(one.get("key", "")): _any_value(message(one, "value"), depth + 1)
                for one in messages(message(value, name), "values")
            }
    return None


_VALUES = (
    "stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue",
)  # fmt: skip
"""Fields of a value, of which it has one; of several, the first one in this order counts."""


def _base64(value: Message, name: str) -> str | None:
    found = text(value, name)
    try:
        base64.b64decode(found or "", validate=True)
    except (ValueError, UnicodeEncodeError):
        raise _unexpected(name, found, "base64") from None
    return found


def _values(parent: Message, name: str) -> list[Any]:
    found = parent.get(name)
    if found is not None and not isinstance(found, list):
        raise _unexpected(name, found, "a list")
    return found or []


def _unexpected(name: str, value: object, wanted: str) -> UnreadablePayload:
    shown = json.dumps(value, default=str)
    return UnreadablePayload(f"`{name}` is {shown[:_SHOWN]}, and {wanted} is expected")


_SHOWN = 60
"""How many characters of a wrong value a message shows."""
