"""JSON from its text: a plan reads megabytes of it."""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec import Raw

from icemigrate.system.inflate import MIB, ZLIB, inflate

__all__ = [
    "Json",
    "Raw",
    "compress",
    "decompress",
    "object_form",
    "read_json",
    "read_strictly",
    "read_values",
    "write_json",
    "write_json_bytes",
    "write_texts",
    "write_without_floats",
]

T = TypeVar("T")
Json: TypeAlias = Mapping[str, Any]
"""A JSON object."""

_MOST_BYTES = 64 * MIB
"""The largest text in a property: a table of 20,000 fields takes 2 MB."""
_MOST_DIGITS = 1000
"""The digits of a whole number. Python refuses some 4300 with a message about its own settings."""


def read_json(content: bytes | str | Raw, form: Any = Any) -> Any:
    """The values of a JSON text.

    ``msgspec`` takes half the time of Python's own parser.  That one is used where msgspec refuses a text: it
    accepts more (a byte order mark, ``NaN``, half a surrogate pair), and has clearer errors.

    :param form: the keys to read, and the parts that stay text (:class:`Raw`), as types of msgspec. Text of
        another form is read without one.
    :raises ValueError: it is not JSON.
    :raises RecursionError: it is nested too deeply.
    """
    try:
        return _decoder(form).decode(content)
    except msgspec.DecodeError:
        return json.loads(bytes(content) if isinstance(content, Raw) else content)


def read_strictly(text: str) -> Any:
    """The values of a JSON text that may have been edited: every key is unique, every number is finite.

    :raises ValueError: it is no JSON, an object has a key twice, or a number is not finite.
    :raises RecursionError: it is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=unique_keys, parse_constant=_not_finite, parse_float=_finite, parse_int=_whole
    )


def read_values(json: Any, kind: type[T], is_strict: bool = True) -> T:
    """Convert JSON values to a struct, by its types and the names of its keys; other keys are ignored.

    :param is_strict: refuse numbers and times that are written as strings.
    :raises ValueError: the JSON has another shape; the message says where, as ``type: expected `str`…``.
    """
    try:
        return msgspec.convert(json, kind, strict=is_strict)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        where = path.rstrip("`").lstrip(".")
        reason = reason[:1].lower() + reason[1:]
        raise ValueError(f"{where}: {reason}" if where else reason) from error


def write_json(value: Any) -> str:
    """JSON values as compact text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_without_floats(value: Any) -> str:
    """As :func:`write_json`, for values without floating-point numbers, which msgspec writes differently."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):  # as for half a surrogate pair
        return write_json(value)


def write_json_bytes(value: Any) -> bytes:
    """JSON values as compact text in UTF-8; half a surrogate pair stays one.

    ``msgspec`` takes a tenth of the time of Python's own encoder.  That one is used where msgspec cannot
    write a value, or may have replaced a number that is not finite by null.
    """
    try:
        content = msgspec.json.encode(value)
        if b"null" not in content:
            return content
    except (TypeError, ValueError, OverflowError, RecursionError):  # as for half a surrogate pair
        pass
    return _write_slowly(value)


def write_texts(value: Mapping[str, str] | Sequence[tuple[str, str]]) -> bytes:
    """As :func:`write_json_bytes`, for texts only: no number is among them, whatever they contain."""
    try:
        return msgspec.json.encode(value)
    except ValueError:  # half a surrogate pair
        return _write_slowly(value)


def _write_slowly(value: Any) -> bytes:
    return write_json(value).encode("utf-8", "surrogatepass")


def compress(text: str) -> str:
    """Compress text to ASCII: metadata takes a tenth of its length."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def decompress(packed: str) -> bytes:
    """Decompress what :func:`compress` returned.

    :raises ValueError: it is damaged, or too large.
    """
    return inflate(base64.b64decode(packed, validate=True), ZLIB, _MOST_BYTES)


def _not_finite(constant: str) -> NoReturn:
    raise ValueError(f"`{constant}` is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number `{digits[:40]}` is too large")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"the number `{digits[:40]}…` has {len(digits)} digits")
    return int(digits)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some keys and values, as a hook for :func:`json.loads`.

    :raises ValueError: a key is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"duplicate key `{doubled}` in an object")
    return found


def object_form(keys: Mapping[str, Any]) -> Any:
    """A form for :func:`read_json`: an object with these keys, each with its form; others are skipped."""
    return TypedDict("Form", dict(keys), total=False)  # type: ignore[operator]


@functools.cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)
