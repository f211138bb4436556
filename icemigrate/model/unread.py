"""Types whose structs are read when somebody asks for their fields (``docs/decisions/0014``).

For JSON that is known to be whole: who asks for the fields knows no file to tell of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from icemigrate.model.json_form import field_from_json, primitive_from_text
from icemigrate.model.json_text import Raw, object_form, read_json
from icemigrate.model.types import Below, Field, List, Map, Struct, Type

Json = Mapping[str, Any]

NESTED = object_form(
    {"type": str, "fields": Raw}
    | {"element-id": int, "element": Raw, "element-required": bool}
    | {"key-id": int, "key": Raw}
    | {"value-id": int, "value": Raw, "value-required": bool}
)
TYPE: Any = str | NESTED
COLUMN = object_form(
    dict.fromkeys(("id", "name", "required", "doc", "initial-default", "write-default"), Any) | {"type": TYPE}
)
COLUMNS: Any = list[COLUMN]  # type: ignore[valid-type]
SCHEMA = object_form({"schema-id": Any, "identifier-field-ids": Any, "fields": COLUMNS})
"""Forms for :func:`~icemigrate.model.json_text.read_json` that leave as text what is inside a nested type."""

_NOTHING: Iterator[Below] = iter(())


def unread_type(json: Any, nested: Iterator[Below] = _NOTHING) -> Type:
    """A type from JSON that may be text still where it is nested.

    :param nested: what is below the structs that are in no other one, in order, as far as that is known.
    """
    if type(json) is Raw:
        json = read_json(json, TYPE)
    if isinstance(json, str):
        return primitive_from_text(json)
    if json["type"] == "struct":
        return Struct.unread(_Written(json["fields"], next(nested, None)))
    if json["type"] == "list":
        element = unread_type(json["element"], nested)
        return List(Field(json["element-id"], "element", element, json["element-required"]))
    return Map(
        Field(json["key-id"], "key", unread_type(json["key"], nested), True),
        Field(json["value-id"], "value", unread_type(json["value"], nested), json["value-required"]),
    )


def unread_field(json: Json, nested: Iterator[Below] = _NOTHING) -> Field:
    """A struct's field whose own structs are read when somebody asks; see :func:`unread_type`."""
    return field_from_json(json, lambda type_: unread_type(type_, nested))


def whole(json: Json) -> Json:
    """The JSON of a field with all of it read."""
    type_ = json["type"]
    if not isinstance(type_, dict):
        return json
    return {**json, "type": {k: read_json(v) if type(v) is Raw else v for k, v in type_.items()}}


class _Written:
    """The fields of a struct as they are written: as text, or as JSON that somebody read."""

    __slots__ = ("_below", "_json", "_text")

    def __init__(self, fields: Raw | Sequence[Json], known: Below | None = None) -> None:
        self._text = fields if isinstance(fields, Raw) else None
        self._json: Sequence[Json] | None = None if isinstance(fields, Raw) else fields
        self._below = known

    @property
    def json(self) -> Sequence[Json]:
        """All of it, read."""
        if self._json is None:
            assert self._text is not None
            self._json = read_json(self._text)
        return self._json

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Written):
            return NotImplemented
        # Two that write JSON alike, as Iceberg and the history do, need not be read.
        is_same_text = self._text is not None and self._text == other._text
        return is_same_text or self.json == other.json

    __hash__ = None  # type: ignore[assignment]

    def fields(self) -> tuple[Field, ...]:
        # One depth of it, where nobody has read all.
        written = self.json if self._text is None else read_json(self._text, COLUMNS)
        return tuple(map(unread_field, written))

    def below(self) -> Below:
        return _gathered(self.json) if self._below is None else self._below


_ID, _NAME, _TYPE = map(itemgetter, ("id", "name", "type"))


def _gathered(fields: Sequence[Json]) -> Below:
    ids, texts, names = set[int](), set[str](), list[str]()
    while fields:  # one depth after another
        ids.update(map(_ID, fields))
        names.extend(map(_NAME, fields))
        types = list(map(_TYPE, fields))
        texts.update(t for t in types if type(t) is str)
        fields = [f for t in types if type(t) is not str for f in _below(t)]
    leaves = frozenset(map(primitive_from_text, texts))
    return Below(frozenset(ids), min(ids, default=0), leaves, "." in "".join(names))


def _below(json: Json) -> Sequence[Json]:
    """The fields of a nested type; the parts of a list or a map, as the fields of a struct are written."""
    if json["type"] == "struct":
        fields: Sequence[Json] = json["fields"]
        return fields
    names = ("element",) if json["type"] == "list" else ("key", "value")
    return [{"id": json[f"{name}-id"], "name": name, "type": json[name]} for name in names]
