"""What others did to a table, as the entry of a migration that declares it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from icemigrate.changes.reference_sql import reference_text
from icemigrate.declare.author import entry_between
from icemigrate.declare.author_parts import is_sayable
from icemigrate.drift.values import Machines, as_declared
from icemigrate.frozen import Frozen, replace
from icemigrate.model.names import BadName, TableName, format_path, parse_path
from icemigrate.model.promotions import is_promotion
from icemigrate.model.schema import Schema, index
from icemigrate.model.schema_edits import edit_by_id, remove_by_id
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, Type, is_nested
from icemigrate.redaction import is_secret_property


class Accepted(Frozen):
    """One table as it is, declared.

    :param entry: ``None`` where there is nothing that an entry could say.
    :param notes: what no entry can say.
    """

    entry: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()


def accept(
    base: Table,
    there: Table | None,
    name: TableName,
    machines: Machines,
    adjust: Callable[[Table], Table],
) -> Accepted:
    """The entry that leads from what is recorded to what is there.

    :param base: as the history recorded it, under its declared name.
    :param there: the table in the catalog; ``None`` where it is gone.
    :param name: what files would call a table of the name that it has there.
    :param machines: what the catalog's server and its clients set by themselves.
    :param adjust: what the environment adds to a declared table.
    """
    if there is None:
        return Accepted(entry_between(base, None))
    wanted = replace(as_declared(base, there, machines, foreign=True), name=name)
    notes: list[str] = []
    for settle in (_format, _names, _types, _defaults, _references, _secrets):
        wanted = settle(base, wanted, notes)
    wanted = _overridden(base, wanted, adjust(replace(wanted, name=there.name)), notes)
    entry = entry_between(base, wanted)
    return Accepted(entry if len(entry) > 1 else None, tuple(f"{base.name}: {note}" for note in notes))


def _format(base: Table, wanted: Table, notes: list[str]) -> Table:
    if wanted.format_version >= base.format_version:
        return wanted
    notes.append(f"format version {wanted.format_version} is below the recorded one, which no file can say")
    return replace(wanted, format_version=base.format_version)


def _names(base: Table, wanted: Table, notes: list[str]) -> Table:
    """A column that no file can name stays undeclared, or goes by the name that it had."""
    schema, known = wanted.schema, index(base.schema)
    for path, field in wanted.schema.walk():
        if _is_sayable(field.name):
            continue
        notes.append(f"columns.{format_path(path)}: no file can say such a name")
        if field.id in known:
            schema = edit_by_id(schema, field.id, partial(_of_name, known[field.id].field.name))
        else:
            schema = remove_by_id(schema, field.id)
    return replace(wanted, schema=schema)


def _is_sayable(name: str) -> bool:
    try:
        return parse_path(format_path((name,))) == (name,)
    except BadName:
        return False


def _of_name(name: str, field: Field) -> Field:
    return replace(field, name=name)


def _types(base: Table, wanted: Table, notes: list[str]) -> Table:
    """What is no promotion may not be declared: files that hold the earlier type are misread."""
    schema = wanted.schema
    for old, new in _both(base.schema, wanted.schema):
        nested = is_nested(old.type) or is_nested(new.type)
        if nested or old.type == new.type or is_promotion(old.type, new.type, wanted.format_version):
            continue
        path = format_path(index(wanted.schema)[new.id].path)
        notes.append(
            f"columns.{path}.type was made {format_type(new.type)} out of {format_type(old.type)}, which is "
            "no promotion that Iceberg allows: files of before may be misread; `plan --reconcile` leads back"
        )
        schema = edit_by_id(schema, new.id, partial(_of_type, old.type))
    return replace(wanted, schema=schema)


def _of_type(type_: Type, field: Field) -> Field:
    return replace(field, type=type_)


def _defaults(base: Table, wanted: Table, notes: list[str]) -> Table:
    for old, new in _both(base.schema, wanted.schema):
        if old.initial_default != new.initial_default:
            path = format_path(index(wanted.schema)[new.id].path)
            notes.append(f"columns.{path}.initial_default changed, which no file can say")
    return wanted


def _references(base: Table, wanted: Table, notes: list[str]) -> Table:
    """Limits that no file can say stay undeclared: a file that said less would take them off elsewhere."""
    refs = dict(wanted.refs)
    for name, ref in wanted.refs.items():
        if is_sayable(ref) or ref == base.refs.get(name):
            continue
        room = "tags" if ref.kind == "tag" else "branches"
        del refs[name]
        if name in base.refs:
            refs[name] = base.refs[name]
        notes.append(f"{room}.{name} is a {reference_text(ref)}, which no file can say")
    return replace(wanted, refs=refs)


def _secrets(base: Table, wanted: Table, notes: list[str]) -> Table:
    """A credential in a property is not for a file: it stays undeclared, or as it was declared."""
    properties = dict(wanted.properties)
    for key, value in wanted.properties.items():
        if value == base.properties.get(key) or not is_secret_property(key, value):
            continue
        del properties[key]
        if key in base.properties:
            properties[key] = base.properties[key]
        notes.append(f"properties.{key} holds a credential and is left out")
    return replace(wanted, properties=properties)


def _both(old: Schema, new: Schema) -> Iterator[tuple[Field, Field]]:
    before = index(old)
    for field_id, entry in index(new).items():
        if field_id in before:
            yield before[field_id].field, entry.field


def _overridden(base: Table, wanted: Table, adjusted: Table, notes: list[str]) -> Table:
    """Properties that the environment's overrides set are not the files' to declare."""
    properties = dict(wanted.properties)
    for key in sorted({*wanted.properties, *adjusted.properties}):
        if wanted.properties.get(key) == adjusted.properties.get(key):
            continue
        properties.pop(key, None)
        if key in base.properties:
            properties[key] = base.properties[key]
        if wanted.properties.get(key) != base.properties.get(key):
            notes.append(f"properties.{key} is set by the environment's overrides in the project file")
    return replace(wanted, properties=properties)
