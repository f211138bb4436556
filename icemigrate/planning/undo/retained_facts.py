"""The state before a migration, except for facts that cannot be undone: these stay as the migration left
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import VOID, PartitionField
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index, sibling_ids
from icemigrate.iceberg.schema_edits import edit_by_id, edit_fields_of, remove_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, is_nested
from icemigrate.planning.undo.undo_inputs import FactKey


def void_field_sources(before: Table, after: Table, there: Table) -> dict[int, str]:
    """The fields that the migration added and that must stay, by id, each with the reason.

    Format version 1 replaces a dropped partition field by a void transform of the same source (specification,
    "Partition Evolution"), and without that source Iceberg writes no row.

    :param before: the migration's own difference, the result of
        :func:`icemigrate.planning.undo.inverse.with_net_change`.
    :param there: the current table.
    """
    old, new, now = schema_index(before.schema), schema_index(after.schema), schema_index(there.schema)
    kept: dict[int, str] = {}
    for field in there.spec.fields:
        source = field.source_ids[0]
        if (
            source in old
            or source not in new
            or source not in now
            or not _is_void_after_undo(field, before, after, there)
        ):
            continue
        top = _topmost_added(source, old, new)
        kept[top] = (
            f"stays: {format_path(now[top].path)}; format version 1 keeps the partition field `{field.name}` "
            "as a void one, and without its source no row could be written"
        )
    return kept


def _is_void_after_undo(field: PartitionField, before: Table, after: Table, there: Table) -> bool:
    if field.transform == VOID:
        return True
    added = {f.definition for f in after.spec.live} - {f.definition for f in before.spec.live}
    return there.format_version == 1 and field.definition in added


def _topmost_added(field_id: int, old: Mapping[int, IndexedField], new: Mapping[int, IndexedField]) -> int:
    parent = new[field_id].parent
    return field_id if parent is None or parent in old else _topmost_added(parent, old, new)


_V = TypeVar("_V")


def retain_facts(before: Table, after: Table, keys: Collection[FactKey]) -> Table:
    """``before`` with the facts of these keys as they are in ``after``.

    Keys are ``("type", id)``, ``("required", id)``, ``("column", id)`` (a dropped one stays dropped),
    ``("optional", id)`` (a dropped one is restored, and may be null), ``("added", id)`` (an added one stays,
    and may be null), ``("stays", id)`` (an added one stays as it is), ``("name", id)``, ``("identifier",)``,
    ``("format_version",)``, ``("spec",)``, ``("order",)``, ``("property", key)`` and ``("reference", name)``.
    """
    table = before
    for kind, *rest in keys:
        if kind == "format_version":
            table = replace(table, format_version=after.format_version)
        elif kind == "identifier":
            table = replace(table, schema=_with_identifier(table.schema, after.schema, keys))
        elif kind == "reference":
            refs, pins = (table.refs, after.refs), (table.pins, after.pins)
            table = replace(table, refs=_with_one_of(*refs, rest[0]), pins=_with_one_of(*pins, rest[0]))
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
            table = _retain_field(table, kind, int(rest[0]), after.schema.by_id(int(rest[0])))
    return table


def _retain_field(table: Table, kind: str, field_id: int, left: Field | None) -> Table:
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


def _with_identifier(schema: Schema, after: Schema, keys: Collection[FactKey]) -> Schema:
    """The schema with the later identifier, without fields that the undo drops."""
    there = (i for i in after.identifier_ids if schema.by_id(i) is not None)
    added = (i for i in after.identifier_ids if ("added", str(i)) in keys or ("stays", str(i)) in keys)
    return replace(schema, identifier_ids=frozenset((*there, *added)))


def _with_added(schema: Schema, after: Schema, field_id: int, is_optional: bool = True) -> Schema:
    """The schema with a field of the later one, after the same siblings as there."""
    entry = schema_index(after).get(field_id)
    if entry is None or schema.by_id(field_id) is not None:
        return schema  # it is not in the migration's difference
    order = sibling_ids(after)[entry.parent]
    preceding = order[: order.index(field_id)]

    def put(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        at = max((at for at, f in enumerate(fields, 1) if f.id in preceding), default=0)
        field = replace(entry.field, required=False) if is_optional else entry.field
        return (*fields[:at], field, *fields[at:])

    return edit_fields_of(schema, entry.parent, put)


def _with_one_of(values: Mapping[str, _V], others: Mapping[str, _V], name: str) -> dict[str, _V]:
    kept = {n: value for n, value in values.items() if n != name}
    return {**kept, **({name: others[name]} if name in others else {})}


def fields_with_changed_type(before: Table, after: Table) -> Iterator[int]:
    """The fields whose type the migration changed."""
    old = schema_index(before.schema)
    for field_id, entry in schema_index(after.schema).items():
        was = old.get(field_id)
        if was is not None and not is_nested(entry.field.type) and was.field.type != entry.field.type:
            yield field_id


def is_required_in_files(table: Table, field_id: int) -> bool:
    """Whether a file must contain the field: it is required, and has no default for files without it."""
    field = table.schema.by_id(field_id)
    assert field is not None, "it is one of the table's"
    return field.required and field.initial_default is None


def fields_made_optional(before: Table, after: Table) -> Iterator[int]:
    """The fields that were required before."""
    old = schema_index(before.schema)
    for field_id, entry in schema_index(after.schema).items():
        was = old.get(field_id)
        if was is not None and was.field.required and not entry.field.required:
            yield field_id


def dropped_fields(before: Table, after: Table) -> Iterator[int]:
    """The top-most fields that the migration dropped."""
    old, new = schema_index(before.schema), schema_index(after.schema)
    for field_id, entry in old.items():
        if field_id not in new and (entry.parent is None or entry.parent in new):
            yield field_id
