"""The state before a migration, but for facts that cannot go back: these stay as the migration left them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from icemigrate.frozen import replace
from icemigrate.model.schema import Schema, index, siblings
from icemigrate.model.schema_edits import edit_by_id, edit_fields_of, remove_by_id
from icemigrate.model.table import Table
from icemigrate.model.types import Field, is_nested
from icemigrate.undo.values import Key

_V = TypeVar("_V")


def keep(before: Table, after: Table, keys: Collection[Key]) -> Table:
    """``before`` with the facts of these keys as they are in ``after``.

    Keys are ``("type", id)``, ``("required", id)``, ``("column", id)`` (a dropped one stays dropped),
    ``("optional", id)`` (a dropped one comes back, and may be null), ``("added", id)`` (one that was added
    stays, and may be null), ``("stays", id)`` (one that was added stays as it is), ``("name", id)``,
    ``("identifier",)``, ``("format_version",)``, ``("spec",)``, ``("order",)``, ``("property", key)`` and
    ``("reference", name)``.
    """
    table = before
    for kind, *rest in keys:
        if kind == "format_version":
            table = replace(table, format_version=after.format_version)
        elif kind == "identifier":
            table = replace(table, schema=_with_identifier(table.schema, after.schema, keys))
        elif kind == "reference":
            table = replace(table, refs=_with_one_of(table.refs, after.refs, rest[0]))
        elif kind == "spec":
            table = replace(table, spec=after.spec)
        elif kind == "order":
            table = replace(table, sort_order=after.sort_order)
        elif kind == "property":
            table = replace(table, properties=_with_one_of(table.properties, after.properties, rest[0]))
        elif kind in ("added", "stays"):
            schema = _with_added(table.schema, after.schema, int(rest[0]), is_optional=kind == "added")
            table = replace(table, schema=schema)
        elif table.schema.by_id(int(rest[0])) is not None:
            table = _keep_field(table, kind, int(rest[0]), after.schema.by_id(int(rest[0])))
    return table


def _keep_field(table: Table, kind: str, field_id: int, left: Field | None) -> Table:
    if kind == "column":
        return replace(table, schema=remove_by_id(table.schema, field_id))
    if kind == "optional":
        return replace(table, schema=edit_by_id(table.schema, field_id, lambda f: replace(f, required=False)))
    assert left is not None, "only a field that is on both sides keeps a type or its being optional"
    if kind == "name":
        name = left.name
        return replace(table, schema=edit_by_id(table.schema, field_id, lambda f: replace(f, name=name)))
    if kind == "type":
        type_ = left.type
        return replace(table, schema=edit_by_id(table.schema, field_id, lambda f: replace(f, type=type_)))
    required = left.required
    return replace(table, schema=edit_by_id(table.schema, field_id, lambda f: replace(f, required=required)))


def _with_identifier(schema: Schema, after: Schema, keys: Collection[Key]) -> Schema:
    """The schema with the later identifier, as far as its fields stay: what came with the migration goes."""
    there = (i for i in after.identifier_ids if schema.by_id(i) is not None)
    added = (i for i in after.identifier_ids if ("added", str(i)) in keys or ("stays", str(i)) in keys)
    return replace(schema, identifier_ids=frozenset((*there, *added)))


def _with_added(schema: Schema, after: Schema, field_id: int, is_optional: bool = True) -> Schema:
    """The schema with a field of the later one, behind those that it stands behind there."""
    entry = index(after).get(field_id)
    if entry is None or schema.by_id(field_id) is not None:
        return schema  # it is not in the migration's difference
    order = siblings(after)[entry.parent]
    preceding = order[: order.index(field_id)]

    def put(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        at = max((at for at, f in enumerate(fields, 1) if f.id in preceding), default=0)
        field = replace(entry.field, required=False) if is_optional else entry.field
        return (*fields[:at], field, *fields[at:])

    return edit_fields_of(schema, entry.parent, put)


def _with_one_of(values: Mapping[str, _V], others: Mapping[str, _V], name: str) -> dict[str, _V]:
    kept = {n: value for n, value in values.items() if n != name}
    return {**kept, **({name: others[name]} if name in others else {})}


def narrowed(before: Table, after: Table) -> Iterator[int]:
    """The fields whose type the migration changed."""
    old = index(before.schema)
    for field_id, entry in index(after.schema).items():
        was = old.get(field_id)
        if was is not None and not is_nested(entry.field.type) and was.field.type != entry.field.type:
            yield field_id


def is_required(table: Table, field_id: int) -> bool:
    """Whether a file must hold the field: it is required, and no default stands in where it is missing."""
    field = table.schema.by_id(field_id)
    assert field is not None, "it is one of the table's"
    return field.required and field.initial_default is None


def made_optional(before: Table, after: Table) -> Iterator[int]:
    """The fields that were required before."""
    old = index(before.schema)
    for field_id, entry in index(after.schema).items():
        was = old.get(field_id)
        if was is not None and was.field.required and not entry.field.required:
            yield field_id


def dropped(before: Table, after: Table) -> Iterator[int]:
    """The top-most fields that the migration dropped."""
    old, new = index(before.schema), index(after.schema)
    for field_id, entry in old.items():
        if field_id not in new and (entry.parent is None or entry.parent in new):
            yield field_id
