"""JSON from its text: a plan reads megabytes of it."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypedDict

import msgspec
from msgspec import Raw

__all__ = ["Raw", "object_form", "read_json", "read_strictly"]

_MOST_DIGITS = 1000
"""Of a whole number. Python refuses some 4300 with a message about its own settings."""


def read_json(content: bytes | str | Raw, form: Any = Any) -> Any:
    """The values of a JSON text.

    ``msgspec`` takes half the time of Python's own reader.  That one is asked where it refuses: it takes more
    (a mark of byte order, ``NaN``, half a surrogate pair), and says better what is wrong.

    :param form: which keys are wanted, and which parts stay text (:class:`Raw`), as types that msgspec knows.
        Text that is not of that form is read as without one.
    :raises ValueError: it is no JSON.
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
        text, object_pairs_hook=_once, parse_constant=_not_finite, parse_float=_finite, parse_int=_whole
    )


def _not_finite(constant: str) -> NoReturn:
    raise ValueError(f"`{constant}` is no number in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number `{digits[:40]}` is too large")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"the number `{digits[:40]}…` has {len(digits)} digits")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key `{doubled}` stands twice in one object")
    return found


def object_form(keys: Mapping[str, Any]) -> Any:
    """A form for :func:`read_json`: an object of these keys, each with its form; others are passed over."""
    return TypedDict("Form", dict(keys), total=False)  # type: ignore[operator]


@functools.cache
def _decoder(form: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)
