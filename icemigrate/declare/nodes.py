"""What a YAML file holds: frozen nodes that know where they stand."""

from __future__ import annotations

from typing import TypeAlias

from icemigrate.declare.scalars import Value
from icemigrate.diagnostics import Place
from icemigrate.frozen import Frozen

Node: TypeAlias = "Scalar | Sequence | Mapping"
Data: TypeAlias = "Value | list[Data] | dict[str, Data]"


class Scalar(Frozen):
    """A single value: what it means, and the characters that were written, without quotes."""

    value: Value
    text: str
    place: Place


class Sequence(Frozen):
    """A list."""

    items: tuple[Node, ...]
    place: Place


class Mapping(Frozen):
    """Keys and values in the order of the file; keys are told apart by their text and are unique."""

    entries: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        """The value of a key."""
        for name, value in self.entries:
            if name.text == key:
                return value
        return None

    def key_place(self, key: str) -> Place:
        """The place of a key, or of the mapping where it does not have that key."""
        for name, _ in self.entries:
            if name.text == key:
                return name.place
        return self.place


def to_data(node: Node) -> Data:
    """The node as plain lists, dicts and values, as a JSON document would hold it."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [to_data(item) for item in node.items]
    return {key.text: to_data(value) for key, value in node.entries}
