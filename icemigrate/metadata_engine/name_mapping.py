"""The name mapping of a table after its schema changed.

A table with files without field ids has one (specification, "Column Projection" and "Name Mapping
Serialization"), and Iceberg's Java library extends it with every schema: a renamed field keeps its old names
beside the new one, a new field is added, and a name leaves the field that had it before
(``MappingUtil.update``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field, List, Map, Struct, Type

_Entry = dict[str, Any]


def updated_name_mapping(text: str, before: Schema, after: Schema) -> str:
    """The value of ``schema.name-mapping.default`` after a change of the schema.

    :param text: the value before; one that is not a mapping stays as it is, as in Iceberg's library.
    """
    try:
        mapping = json.loads(text)
        old = {field.id: field for _, field in before.walk()}
        return json.dumps(_fields(mapping, after.fields, old), separators=(",", ":"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return text


def _fields(entries: Sequence[_Entry], fields: Sequence[Field], old: Mapping[int, Field]) -> list[_Entry]:
    """The entries of one struct, list or map.

    :param fields: those of the new schema.
    :param old: all fields of the old schema, by id.
    """
    now = {field.id: field for field in fields}
    renamed = {f.name: f.id for f in fields if f.id in old and old[f.id].name != f.name}
    added = [field for field in fields if field.id not in old]
    taken = renamed | {field.name: field.id for field in added}
    result = []
    for entry in entries:
        number = entry.get("field-id")
        field = None if number is None else now.get(number)
        names = [name for name in entry["names"] if taken.get(name, number) == number]
        if field is not None and field.name not in names:
            names.append(field.name)
        new = {**entry, "names": names}
        inner = [] if field is None else _inner(field.type)
        if inner and field is not None and field.id in old:
            new["fields"] = _fields(entry.get("fields") or (), inner, old)
        result.append(new)
    return [*result, *map(_new_entry, sorted(added, key=lambda field: field.id))]


def _new_entry(field: Field) -> _Entry:
    inner = [_new_entry(f) for f in _inner(field.type)]
    entry: _Entry = {"field-id": field.id, "names": [field.name]}
    return {**entry, "fields": inner} if inner else entry


def _inner(type_: Type) -> Sequence[Field]:
    if isinstance(type_, Struct):
        return type_.fields
    if isinstance(type_, List):
        return (type_.element,)
    return (type_.key, type_.value) if isinstance(type_, Map) else ()
