"""Writes other clients' changes of a table as the entry of a migration that declares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from icemigrate.changes.reference_sql import reference_text
from icemigrate.files.write.entry_parts import is_declarable_ref
from icemigrate.files.write.migration_entries import entry_between
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import BadName, TableName, format_path, parse_path
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.schema_edits import edit_by_id, remove_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import is_promotion
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, Type, is_nested
from icemigrate.planning.drift.comparable_tables import ServerManaged, as_declared
from icemigrate.redaction import is_secret_property


class AcceptedTable(Frozen):
    """The current state of one table, declared.

    :param entry: ``None`` where an entry would be empty.
    :param notes: changes that no entry can express.
    """

    entry: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()


def accepted_table_entry(
    base: Table,
    there: Table | None,
    name: TableName,
    machines: ServerManaged,
    adjust: Callable[[Table], Table],
) -> AcceptedTable:
    """The entry that changes the recorded table to the current one.

    :param base: the recorded table, under its declared name.
    :param there: the table in the catalog; ``None`` where it is gone.
    :param name: the declared name for the table's current name.
    :param machines: facts that the catalog's server and its clients set automatically.
    :param adjust: adds the environment's overrides to a declared table.
    """
    if there is None:
        return AcceptedTable(entry_between(base, None))
    wanted = replace(as_declared(base, there, machines, foreign=True), name=name)
    notes: list[str] = []
    for settle in (_format, _names, _types, _defaults, _references, _secrets):
        wanted = settle(base, wanted, notes)
    wanted = _overridden(base, wanted, adjust(replace(wanted, name=there.name)), notes)
    entry = entry_between(base, wanted)
    return AcceptedTable(entry if len(entry) > 1 else None, tuple(f"{base.name}: {note}" for note in notes))


def _format(base: Table, wanted: Table, notes: list[str]) -> Table:
    if wanted.format_version >= base.format_version:
        return wanted
    notes.append(
        f"format version {wanted.format_version} is below the recorded one, which a file cannot declare"
    )
    return replace(wanted, format_version=base.format_version)


def _names(base: Table, wanted: Table, notes: list[str]) -> Table:
    """A column whose name no file can declare stays undeclared, or keeps its declared name."""
    schema, known = wanted.schema, schema_index(base.schema)
    for path, field in wanted.schema.walk():
        if _is_sayable(field.name):
            continue
        notes.append(f"columns.{format_path(path)}: a file cannot declare this name")
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
    """A type that is not a promotion must not be declared: files with the earlier type would be misread."""
    schema = wanted.schema
    for old, new in _both(base.schema, wanted.schema):
        nested = is_nested(old.type) or is_nested(new.type)
        if nested or old.type == new.type or is_promotion(old.type, new.type, wanted.format_version):
            continue
        path = format_path(schema_index(wanted.schema)[new.id].path)
        notes.append(
            f"columns.{path}.type changed from {format_type(old.type)} to {format_type(new.type)}, which is "
            f"not a promotion that Iceberg allows: older files may be misread; `plan --reconcile` changes "
            f"it back"
        )
        schema = edit_by_id(schema, new.id, partial(_of_type, old.type))
    return replace(wanted, schema=schema)


def _of_type(type_: Type, field: Field) -> Field:
    return replace(field, type=type_)


def _defaults(base: Table, wanted: Table, notes: list[str]) -> Table:
    for old, new in _both(base.schema, wanted.schema):
        if old.initial_default != new.initial_default:
            path = format_path(schema_index(wanted.schema)[new.id].path)
            notes.append(f"columns.{path}.initial_default changed, which a file cannot declare")
    return wanted


def _references(base: Table, wanted: Table, notes: list[str]) -> Table:
    """Limits that no file can express stay undeclared: an incomplete declaration would
    remove them elsewhere.
    """
    refs = dict(wanted.refs)
    for name, ref in wanted.refs.items():
        if is_declarable_ref(ref) or ref == base.refs.get(name):
            continue
        room = "tags" if ref.kind == "tag" else "branches"
        del refs[name]
        if name in base.refs:
            refs[name] = base.refs[name]
        notes.append(f"{room}.{name} is a {reference_text(ref)}, which a file cannot declare")
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
    before = schema_index(old)
    for field_id, entry in schema_index(new).items():
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
