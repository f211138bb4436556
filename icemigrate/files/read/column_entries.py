"""Reads column nodes as :class:`ColumnEntry`, with positions and the errors that a schema cannot find."""

from __future__ import annotations

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.migration_file import UNSET, ColumnEntry, KeyPath, Unset
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    nullable_text,
    optional_flag,
    optional_text,
    read_default,
    read_flag,
    scalar_text,
)

_SHAPES = {"type": "type", "fields": "fields", "element": "element", "key": "key", "value": "key"}
"""Key → the form of a type that it belongs to; a column has at most one form."""


class ColumnReader:
    """Reads the columns of one table entry, and collects positions and diagnostics."""

    def __init__(self, places: dict[KeyPath, FilePosition], diagnostics: list[Diagnostic]) -> None:
        self._places = places
        self._diagnostics = diagnostics

    def columns(self, node: YamlNode | None, parent: str = "") -> tuple[ColumnEntry, ...]:
        """A list of columns, or of the fields of the struct at ``parent``."""
        seen: dict[str, FilePosition] = {}
        found = []
        for item in list_items(node):
            entry = as_mapping(item)
            name_node = entry.get("name")
            name = scalar_text(name_node)
            assert name_node is not None
            place = name_node.place
            if name in seen:
                what = f"the field `{name}` of `{parent}`" if parent else f"the column `{name}`"
                message = f"{what} is declared twice, first on line {seen[name].line}"
                self._add("duplicate-column", message, place, "remove one of the two")
            else:
                seen[name] = place
            found.append(self._column(entry, name, _below(parent, name), place))
        return tuple(found)

    def _column(self, node: YamlMapping, name: str, path: str, place: FilePosition) -> ColumnEntry:
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
            default=UNSET if default_node is None else read_default(default_node),
            description=nullable_text(given.get("description")),
            first=read_flag(given.get("first")),
            after=optional_text(given.get("after")),
            fields=UNSET if fields is None else self.columns(fields, path),
            element=self._part(node, given.get("element"), "element", path),
            key=self._part(node, given.get("key"), "key", path),
            value=self._part(node, given.get("value"), "value", path),
        )

    def _part(self, node: YamlMapping, part: YamlNode | None, name: str, path: str) -> ColumnEntry | Unset:
        """``element``, ``key`` or ``value``: a type, or a mapping like a column's without its name."""
        if part is None:
            return UNSET
        below = _below(path, name)
        if isinstance(part, YamlScalar):
            self._places[("columns", below)] = part.place
            return ColumnEntry(name, below, part.place, type=part.text)
        return self._column(as_mapping(part), name, below, node.key_place(name))

    def _note(self, node: YamlMapping, path: str, place: FilePosition) -> None:
        places = self._places
        places.setdefault(("columns", path), place)
        for key, value in node.entries:
            # A scalar is wrong at its value, a list or a mapping at its key.
            where = value.place if isinstance(value, YamlScalar) else key.place
            places.setdefault(("columns", path, key.text), where)

    def _contradictions(self, node: YamlMapping, given: dict[str, YamlNode], path: str) -> None:
        if len(_SHAPES.keys() & given.keys()) > 1:
            written = [key for key, _ in node.entries if key.text in _SHAPES]
            first = written[0].text
            for other in written:
                if _SHAPES[other.text] != _SHAPES[first]:
                    message = f"the type of `{path}` is written twice, as `{first}` and as `{other.text}`"
                    self._add("conflicting-keys", message, other.place, "remove one of the two")
                    break
        if "after" in given and read_flag(given.get("first")):
            self._add(
                "conflicting-keys",
                f"`{path}` can have only one of `first` and `after`",
                node.key_place("after"),
            )

    def _add(self, code: str, message: str, place: FilePosition, hint: str | None = None) -> None:
        self._diagnostics.append(Diagnostic(code, message, place, hint))


def _below(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name
