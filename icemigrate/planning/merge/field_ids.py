"""Field ids of a declared table: matched with those of the catalog, whose other facts complete it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import is_

from icemigrate.frozen import replace
from icemigrate.iceberg.lookup import FieldLookup, shared_ends, unchanged_name
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.schema_edits import change_fields, fields_of
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.iceberg.types import (
    Field,
    Struct,
    Type,
    children,
    is_nested,
    map_fields,
    with_children,
    with_id,
)
from icemigrate.planning.merge.merge_fields import match_new_fields


def rebind_field_ids(table: Table, ids: Mapping[int, int]) -> Table:
    """The table with field ids replaced everywhere: schema, identifier, spec and order."""
    if not ids:
        return table

    def new(old: int) -> int:
        return ids.get(old, old)

    fields = change_fields(table.schema, lambda f: with_id(f, ids[f.id]) if f.id in ids else f, ids)
    return replace(
        table,
        schema=replace(
            table.schema,
            fields=fields,
            identifier_ids=frozenset(new(i) for i in table.schema.identifier_ids),
        ),
        spec=replace(
            table.spec,
            fields=tuple(
                replace(f, source_ids=tuple(new(i) for i in f.source_ids)) for f in table.spec.fields
            ),
        ),
        sort_order=replace(
            table.sort_order,
            fields=tuple(
                replace(f, source_ids=tuple(new(i) for i in f.source_ids)) for f in table.sort_order.fields
            ),
        ),
        dropped=tuple(replace(d, parent=None if d.parent is None else new(d.parent)) for d in table.dropped),
    )


def rebind_by_path(table: Table, onto: Table, above: int = 0, kept: Collection[int] = ()) -> Table:
    """The table with its negative field ids replaced by the ids of the same fields in ``onto``.

    Fields are the same if they have one name in the same parent; parents are matched by id, because another
    client may have renamed one.

    :param above: ids up to this one belong to older fields: a column that is created again under its old name
        must not take the id of the one that it replaces.
    :param kept: negative ids that stay, of fields whose id is unknown.
    """
    here = schema_index(table.schema)
    new = [(i, entry) for i, entry in here.new() if i not in kept]
    there: dict[int | None, FieldLookup] = {}
    ids: dict[int, int] = {}
    for i, entry in new:  # parents come before their children
        parent = None if entry.parent is None else ids.get(entry.parent, entry.parent)
        if parent not in there:
            fields = fields_of(onto.schema, parent)
            there[parent] = FieldLookup(fields)
            if not there[parent].are_distinct(unchanged_name):  # halfway through a swap
                there[parent] = FieldLookup(tuple(f for f in fields if f.id > above and f.id not in here))
        at = there[parent].position_of_name(entry.field.name)
        found = None if at is None else there[parent].fields[at].id
        if found is not None and found > above and found not in here:
            ids[i] = found
    rebound = rebind_field_ids(table, ids)
    if rebound.schema.fields is not onto.schema.fields and rebound.schema.fields == onto.schema.fields:
        # One tuple serves both: a history of thousands of migrations has as many states of a table.
        return replace(rebound, schema=replace(rebound.schema, fields=onto.schema.fields))
    return rebound


def with_catalog_order(table: Table, actual: Table) -> Table:
    """The declared table with the field order of the catalog.

    A file may list columns in another order than the table has them.
    """
    fields = _in_order(table.schema.fields, actual.schema.fields)
    if fields is table.schema.fields:
        return table
    return replace(table, schema=replace(table.schema, fields=fields))


def _in_order(fields: tuple[Field, ...], there: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields in the order of those with the same ids; the others last, in their own order."""
    start, end = shared_ends(fields, there)
    if start == len(fields):
        return fields
    ids = {f.id for f in there[start : len(there) - end]}
    if all(f.id in ids for f in fields[start : len(fields) - end]):
        middle = _in_order_of(fields[start : len(fields) - end], there[start : len(there) - end])
        return (*fields[:start], *middle, *fields[len(fields) - end :])
    return _in_order_of(fields, there)


def _in_order_of(fields: tuple[Field, ...], there: tuple[Field, ...]) -> tuple[Field, ...]:
    twins = {f.id: (at, f) for at, f in enumerate(there)}
    below = tuple(_with_order(f, twins[f.id][1].type) if f.id in twins else f for f in fields)
    ordered = tuple(sorted(below, key=lambda f: twins[f.id][0] if f.id in twins else len(twins)))
    return fields if all(map(is_, fields, ordered)) else ordered


def _with_order(field: Field, there: Type) -> Field:
    """The field with its descendants in order; a field in order is returned as the same object."""
    if not is_nested(field.type) or field.type is there:
        return field
    before = children(field.type)
    after = _in_order(before, children(there))
    return field if after is before else replace(field, type=with_children(field.type, after))


def complete_adopted_table(wanted: Table, actual: Table, unsaid: Collection[str]) -> Table:
    """The declared table with the field ids of the adopted one, and its values for keys that the file omits.

    The initial default, which older rows read, is the catalog's: a file declares the write default only.

    :param wanted: the declared table, its fields with negative ids.
    :param unsaid: keys that the file omits; see :class:`~icemigrate.iceberg.declared_sides.TableTarget`.
    """
    table = rebind_field_ids(wanted, match_new_fields(Schema(), wanted.schema, actual.schema))
    there = schema_index(actual.schema)

    def completed(field: Field) -> Field:
        entry = there.get(field.id)
        return field if entry is None else replace(field, initial_default=entry.field.initial_default)

    root = map_fields(table.schema.root, completed)
    assert isinstance(root, Struct)
    ids = actual.schema.identifier_ids if "identifier" in unsaid else table.schema.identifier_ids
    return replace(
        table,
        schema=replace(table.schema, fields=root.fields, identifier_ids=ids),
        spec=actual.spec if "partition_by" in unsaid else table.spec,
        sort_order=actual.sort_order if "sort_by" in unsaid else table.sort_order,
        format_version=actual.format_version if "format_version" in unsaid else table.format_version,
    )


def with_catalog_ids(wanted: Table, after: Table | None, base: Table | None = None) -> Table:
    """The declared table as the history records it: with the ids and the field order of the catalog's table.

    Undeclared fields and references are left out.  Of earlier specs only the highest id is recorded, as the
    id of the current spec.

    :param after: the table in the catalog after the migration.
    :param base: the table as declared before; its negative ids belong to fields that a baseline did not find.
    """
    if after is None:
        return wanted
    gone = [i for i, _ in schema_index(base.schema).new()] if base is not None else []
    settled = with_catalog_order(rebind_by_path(wanted, after, kept=gone), after)
    return replace(
        settled,
        spec=_with_catalog_spec_ids(settled.spec, after),
        refs={
            name: _with_catalog_snapshot(ref, after.refs.get(name), name in settled.pins)
            for name, ref in settled.refs.items()
        }
        if settled.refs
        else settled.refs,
        uuid=after.uuid or settled.uuid,
        last_column_id=after.last_column_id,
        last_partition_id=after.last_partition_id,
    )


def _with_catalog_spec_ids(spec: PartitionSpec, after: Table) -> PartitionSpec:
    highest = max(s.id for s in (after.spec, *after.older_specs))
    if not spec.fields and spec.id == highest:
        return spec
    ids = {f.definition: f.id for f in after.spec.fields}
    fields = tuple(replace(f, id=ids.get(f.definition, f.id)) for f in spec.fields)
    return replace(spec, fields=fields, id=highest)


def _with_catalog_snapshot(ref: Ref, current: Ref | None, is_pinned: bool) -> Ref:
    """A tag with its snapshot: the pinned one, or that of the catalog's tag.  Branches move with every write,
    and have none."""
    if ref.kind == "branch":
        return replace(ref, snapshot_id=CURRENT_SNAPSHOT)
    is_known = is_pinned and ref.snapshot_id != CURRENT_SNAPSHOT
    if is_known or current is None or ref.kind != current.kind:
        return ref
    return replace(ref, snapshot_id=current.snapshot_id)
