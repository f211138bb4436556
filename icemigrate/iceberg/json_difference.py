"""Differences between JSON values: the parts of a value that an earlier value, its base, does not have.

A difference is a JSON value too:

- ``0`` where the value is its base;
- ``{"value": …}`` with the whole value;
- ``{"set": {key: difference}, "drop": [key]}`` for an object;
- ``{"keep": [first, last], "items": [difference]}`` for a list: so many items of the base at its begin and at
  its end stay, and these items are between them.  An item is a difference from the base's item at this place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

_SAME = 0
_FEW = 32
"""The size of an object with fewer keys than this is estimated from the sizes of its values."""


def json_difference(base: Any, value: Any) -> Any:
    """The difference of a value from its base.

    :func:`with_difference` gives the value back; only the order of keys in its objects can be another one.
    """
    if _is_same(base, value):
        return _SAME
    whole = {"value": value}
    if isinstance(base, dict) and isinstance(value, dict):
        same = _same_keys(base, value)
        found = {
            "set": {
                key: json_difference(base[key], item) if key in base else {"value": item}
                for key, item in value.items()
                if key not in same
            },
            "drop": [key for key in base if key not in value],
        }
    elif isinstance(base, list) and isinstance(value, list):
        found = _list_difference(base, value)
    else:
        return whole
    size = len(_encoded(found))
    return found if size < _least_size(value) or size < len(_encoded(whole)) else whole


def _least_size(value: Any) -> int:
    """No more than the number of bytes that a value takes; the number itself takes long for large values."""
    if isinstance(value, list):
        return 2 * len(value)  # each item and its comma
    if isinstance(value, dict):
        parts = value.values() if len(value) < _FEW else ()
        return 5 * len(value) + sum(map(_least_size, parts))  # quotes, colon, value and comma
    return 0


def with_difference(base: Any, difference: Any) -> Any:
    """The value with this difference from a base; it may share parts with both.

    :raises ValueError: the difference has another shape, or belongs to another base.
    """
    if type(difference) is int and difference == _SAME:
        return base
    if not isinstance(difference, dict):
        raise ValueError(f"{difference!r} is no difference of JSON values")
    if "value" in difference:
        return difference["value"]
    if "set" in difference and isinstance(base, dict):
        dropped = set(difference["drop"])
        left = {key: part for key, part in base.items() if key not in dropped}
        return left | {k: with_difference(base.get(k), part) for k, part in difference["set"].items()}
    if "keep" in difference and isinstance(base, list):
        first, last = difference["keep"]
        middle = _middle(base, first, last)
        items = (
            with_difference(middle[at] if at < len(middle) else None, part)
            for at, part in enumerate(difference["items"])
        )
        return [*base[:first], *items, *base[len(base) - last :]]
    raise ValueError(f"a difference of another kind than its base, which is a {type(base).__name__}")


def _same_keys(base: dict[str, Any], value: dict[str, Any]) -> Collection[str]:
    """The keys with the same value in both."""
    equal = {key for key, item in value.items() if key in base and base[key] == item}
    # One comparison of all: an object may have thousands of keys.
    if _is_same([base[key] for key in value if key in equal], [value[key] for key in value if key in equal]):
        return equal
    return {key for key in equal if _is_same(base[key], value[key])}


def _list_difference(base: list[Any], value: list[Any]) -> Any:
    most = min(len(base), len(value))
    first = _equal_start(base, value, most)
    last = _equal_start(base[::-1], value[::-1], most - first)
    end, value_end = len(base) - last, len(value) - last
    if not (
        _is_same(base[:first], value[:first]) and _is_same(base[end:], value[value_end:])
    ):  # such as 1 and true, which Python takes for equal
        first = last = 0
        value_end = len(value)
    middle = _middle(base, first, last)
    items = [
        json_difference(middle[at], item) if at < len(middle) else {"value": item}
        for at, item in enumerate(value[first:value_end])
    ]
    return {"keep": [first, last], "items": items}


def _equal_start(one: Sequence[Any], other: Sequence[Any], most: int) -> int:
    """The number of equal items at the start of both."""
    low, high = 0, most
    while low < high:  # the items before the lower number are equal
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _middle(base: list[Any], first: int, last: int) -> list[Any]:
    if min(first, last) < 0 or first + last > len(base):
        raise ValueError(f"a difference keeps {first} and {last} items of a list of {len(base)}")
    return base[first : len(base) - last]


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, list):
        # Definitions of one table share most of their columns.
        apart = [(item, its) for item, its in zip(one, other, strict=True) if item is not its]
        one, other = [item for item, _ in apart], [its for _, its in apart]
    return _encoded(one) == _encoded(other)


def _encoded(value: Any) -> bytes:
    """Bytes that differ where equal values of Python differ in JSON."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # as for half a surrogate pair
        return repr(value).encode("utf-8", "backslashreplace")
