"""What a plain scalar means: YAML 1.2's core schema, which is what editors know.

``no``, ``on``, ``y``, ``2026-01-01`` and ``12:30:00`` are texts, never booleans, dates or numbers, and so is
``010``, in which YAML 1.1 sees eight and YAML 1.2 sees ten.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | None"

_CONSTANTS: dict[str, Value] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,37})")
_EXPONENT = r"[eE][-+]?[0-9]{1,9}"
_FLOAT = re.compile(
    rf"[-+]?((\.[0-9]{{1,300}}|(0|[1-9][0-9]{{0,300}})\.[0-9]{{0,300}})({_EXPONENT})?|(0|[1-9][0-9]{{0,300}}){_EXPONENT})"
)
_SPECIAL_FLOAT = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_START = frozenset("-+.0123456789")


def plain_value(text: str) -> Value:
    """What an unquoted scalar means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if special := _SPECIAL_FLOAT.fullmatch(text):
        return float((special.group(1) or "") + (special.group(2) or special.group(3)))
    return text
