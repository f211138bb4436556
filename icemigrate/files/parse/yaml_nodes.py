"""Nodes of a YAML document, with their positions, and the values of plain scalars.

Plain scalars follow YAML 1.2's core schema, as editors do: ``no``, ``on``, ``y``, ``2026-01-01`` and
``12:30:00`` are strings, never booleans, dates or numbers, and so is ``010``, which is eight in YAML 1.1 and
ten in YAML 1.2.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from icemigrate.diagnostics import FilePosition
from icemigrate.frozen import Frozen

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
    """The value of an unquoted scalar."""
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


YamlNode: TypeAlias = "YamlScalar | YamlSequence | YamlMapping"
YamlData: TypeAlias = "Value | list[YamlData] | dict[str, YamlData]"


class YamlScalar(Frozen):
    """A scalar: its value, and its characters as written, without quotes."""

    value: Value
    text: str
    place: FilePosition


class YamlSequence(Frozen):
    """A list."""

    items: tuple[YamlNode, ...]
    place: FilePosition


class YamlMapping(Frozen):
    """Keys and values in the order of the file; keys are unique by their text."""

    entries: tuple[tuple[YamlScalar, YamlNode], ...]
    place: FilePosition

    def get(self, key: str) -> YamlNode | None:
        """The value of a key."""
        for name, value in self.entries:
            if name.text == key:
                return value
        return None

    def key_place(self, key: str) -> FilePosition:
        """The position of a key, or of the mapping where it does not have that key."""
        for name, _ in self.entries:
            if name.text == key:
                return name.place
        return self.place


def to_data(node: YamlNode) -> YamlData:
    """The node as plain lists, dicts and values, as in a JSON document."""
    if isinstance(node, YamlScalar):
        return node.value
    if isinstance(node, YamlSequence):
        return [to_data(item) for item in node.items]
    return {key.text: to_data(value) for key, value in node.entries}
