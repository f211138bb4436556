"""Types whose structs are read on first access to their fields (``docs/decisions/0014``).

Only for validated JSON: an access has no file to report an error for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from icemigrate.iceberg.json_text import Json, Raw, object_form, read_json
from icemigrate.iceberg.schema_json import field_from_json, primitive_from_text
from icemigrate.iceberg.types import Field, List, Map, NestedFieldIds, Struct, Type

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
"""Forms for :func:`~icemigrate.iceberg.json_text.read_json` that keep the content of nested types as text."""

_NOTHING: Iterator[NestedFieldIds] = iter(())


def lazy_type(json: Any, nested: Iterator[NestedFieldIds] = _NOTHING) -> Type:
    """A type from JSON whose nested part may still be text.

    :param nested: the descendants of the outermost structs, in order, as far as they are known.
    """
    if type(json) is Raw:
        json = read_json(json, TYPE)
    if isinstance(json, str):
        return primitive_from_text(json)
    if json["type"] == "struct":
        return Struct.unread(_Written(json["fields"], next(nested, None)))
    if json["type"] == "list":
        element = lazy_type(json["element"], nested)
        return List(Field(json["element-id"], "element", element, json["element-required"]))
    return Map(
        Field(json["key-id"], "key", lazy_type(json["key"], nested), True),
        Field(json["value-id"], "value", lazy_type(json["value"], nested), json["value-required"]),
    )


def lazy_field(json: Json, nested: Iterator[NestedFieldIds] = _NOTHING) -> Field:
    """A field whose structs are read on first access; see :func:`lazy_type`."""
    return field_from_json(json, lambda type_: lazy_type(type_, nested))


def fully_read(json: Json) -> Json:
    """The JSON of a field with all of it read."""
    type_ = json["type"]
    if not isinstance(type_, dict):
        return json
    return {**json, "type": {k: read_json(v) if type(v) is Raw else v for k, v in type_.items()}}


class _Written:
    """The fields of a struct as written: as text, or as parsed JSON."""

    __slots__ = ("_below", "_json", "_text")

    def __init__(self, fields: Raw | Sequence[Json], known: NestedFieldIds | None = None) -> None:
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
        # One level of it, where not all of it was read.
        written = self.json if self._text is None else read_json(self._text, COLUMNS)
        return tuple(map(lazy_field, written))

    def below(self) -> NestedFieldIds:
        return _gathered(self.json) if self._below is None else self._below


_ID, _NAME, _TYPE = map(itemgetter, ("id", "name", "type"))


def _gathered(fields: Sequence[Json]) -> NestedFieldIds:
    ids, texts, names = set[int](), set[str](), list[str]()
    while fields:  # one depth after another
        ids.update(map(_ID, fields))
        names.extend(map(_NAME, fields))
        types = list(map(_TYPE, fields))
        texts.update(t for t in types if type(t) is str)
        fields = [f for t in types if type(t) is not str for f in _below(t)]
    leaves = frozenset(map(primitive_from_text, texts))
    return NestedFieldIds(frozenset(ids), min(ids, default=0), leaves, "." in "".join(names))


def _below(json: Json) -> Sequence[Json]:
    """The fields of a nested type; the parts of a list or a map, as the fields of a struct are written."""
    if json["type"] == "struct":
        fields: Sequence[Json] = json["fields"]
        return fields
    names = ("element",) if json["type"] == "list" else ("key", "value")
    return [{"id": json[f"{name}-id"], "name": name, "type": json[name]} for name in names]
