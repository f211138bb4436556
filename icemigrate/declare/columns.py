"""Column nodes → :class:`ColumnEntry`, noting every place and what no schema can say about them."""

from __future__ import annotations

from icemigrate.declare.migration import UNSET, ColumnEntry, Subject, Unset
from icemigrate.declare.nodes import Mapping, Node, Scalar
from icemigrate.declare.values import (
    default,
    flag,
    items,
    mapping,
    nullable_text,
    optional_flag,
    optional_text,
    text,
)
from icemigrate.diagnostics import Diagnostic, Place

_SHAPES = {"type": "type", "fields": "fields", "element": "element", "key": "key", "value": "key"}
"""Key → the way of writing a type that it belongs to; a column has one way at most."""


class ColumnReader:
    """Reads the columns of one table entry, and collects places and mistakes while it does."""

    def __init__(self, places: dict[Subject, Place], diagnostics: list[Diagnostic]) -> None:
        self._places = places
        self._diagnostics = diagnostics

    def columns(self, node: Node | None, parent: str = "") -> tuple[ColumnEntry, ...]:
        """A list of columns, or of the fields of the struct at ``parent``."""
        seen: dict[str, Place] = {}
        found = []
        for item in items(node):
            entry = mapping(item)
            name_node = entry.get("name")
            name = text(name_node)
            assert name_node is not None
            place = name_node.place
            if name in seen:
                what = f"the field `{name}` of `{parent}`" if parent else f"the column `{name}`"
                message = f"{what} is given twice, first on line {seen[name].line}"
                self._add("duplicate-column", message, place, "keep one of the two")
            else:
                seen[name] = place
            found.append(self._column(entry, name, _below(parent, name), place))
        return tuple(found)

    def _column(self, node: Mapping, name: str, path: str, place: Place) -> ColumnEntry:
        self._note(node, path, place)
        given = {key.text: value for key, value in node.entries}
        self._contradictions(node, given, path)
        default_node, fields = given.get("default"), given.get("fields")
        return ColumnEntry(
            name,
            path,
            place,
            type=optional_text(given.get("type")),
            required=optional_flag(given.get("required")),
            default=UNSET if default_node is None else default(default_node),
            description=nullable_text(given.get("description")),
            first=flag(given.get("first")),
            after=optional_text(given.get("after")),
            fields=UNSET if fields is None else self.columns(fields, path),
            element=self._part(node, given.get("element"), "element", path),
            key=self._part(node, given.get("key"), "key", path),
            value=self._part(node, given.get("value"), "value", path),
        )

    def _part(self, node: Mapping, part: Node | None, name: str, path: str) -> ColumnEntry | Unset:
        """``element``, ``key`` or ``value``: a type, or a mapping like a column's without its name."""
        if part is None:
            return UNSET
        below = _below(path, name)
        if isinstance(part, Scalar):
            self._places[("columns", below)] = part.place
            return ColumnEntry(name, below, part.place, type=part.text)
        return self._column(mapping(part), name, below, node.key_place(name))

    def _note(self, node: Mapping, path: str, place: Place) -> None:
        places = self._places
        places.setdefault(("columns", path), place)
        for key, value in node.entries:
            # A scalar is wrong at its value, a list or a mapping at its key.
            where = value.place if isinstance(value, Scalar) else key.place
            places.setdefault(("columns", path, key.text), where)

    def _contradictions(self, node: Mapping, given: dict[str, Node], path: str) -> None:
        if len(_SHAPES.keys() & given.keys()) > 1:
            written = [key for key, _ in node.entries if key.text in _SHAPES]
            first = written[0].text
            for other in written:
                if _SHAPES[other.text] != _SHAPES[first]:
                    message = f"the type of `{path}` is written twice, as `{first}` and as `{other.text}`"
                    self._add("conflicting-keys", message, other.place, "keep one of the two")
                    break
        if "after" in given and flag(given.get("first")):
            self._add(
                "conflicting-keys", f"`{path}` has only one of `first` and `after`", node.key_place("after")
            )

    def _add(self, code: str, message: str, place: Place, hint: str | None = None) -> None:
        self._diagnostics.append(Diagnostic(code, message, place, hint))


def _below(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name
