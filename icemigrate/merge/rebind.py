"""A declared table fitted to the one in the catalog: its field ids, and fields in its order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import is_

from icemigrate.frozen import replace
from icemigrate.model.lookup import Lookup, same, shared_ends
from icemigrate.model.schema import index
from icemigrate.model.schema_edits import change_fields, fields_of
from icemigrate.model.table import Table
from icemigrate.model.types import (
    Field,
    Type,
    children,
    is_nested,
    with_children,
    with_id,
)


def rebind(table: Table, ids: Mapping[int, int]) -> Table:
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
    """The table with its negative field ids replaced by those that the same fields have in ``onto``.

    Same are fields of one name in the same parent; parents are matched by id, since somebody else may
    have renamed one.

    :param above: ids up to this one belong to fields that were there before: a column that is made
        anew under its old name must not take the id of the one that it replaces.
    :param kept: negative ids that stay: of fields that nobody knows the id of.
    """
    here = index(table.schema)
    new = [(i, entry) for i, entry in here.new() if i not in kept]
    there: dict[int | None, Lookup] = {}
    ids: dict[int, int] = {}
    for i, entry in new:  # parents come before what is in them
        parent = None if entry.parent is None else ids.get(entry.parent, entry.parent)
        if parent not in there:
            fields = fields_of(onto.schema, parent)
            there[parent] = Lookup(fields)
            if not there[parent].are_distinct(same):  # halfway through a swap
                there[parent] = Lookup(tuple(f for f in fields if f.id > above and f.id not in here))
        at = there[parent].position_of_name(entry.field.name)
        found = None if at is None else there[parent].fields[at].id
        if found is not None and found > above and found not in here:
            ids[i] = found
    rebound = rebind(table, ids)
    if rebound.schema.fields == onto.schema.fields:
        # One tuple serves both: a history of thousands of migrations has as many states of a table.
        return replace(rebound, schema=replace(rebound.schema, fields=onto.schema.fields))
    return rebound


def ordered_like(table: Table, actual: Table) -> Table:
    """The declared table with its fields in the order that they have in the catalog.

    Nobody has to say where a column stands, so a file may list columns otherwise than a table has them.
    """
    fields = _in_order(table.schema.fields, actual.schema.fields)
    if fields is table.schema.fields:
        return table
    return replace(table, schema=replace(table.schema, fields=fields))


def _in_order(fields: tuple[Field, ...], there: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields in the order that those of the same ids have; the others last, as they stand."""
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
    """The field with all that is below it in order; what is in order stays the same object."""
    if not is_nested(field.type) or field.type is there:
        return field
    before = children(field.type)
    after = _in_order(before, children(there))
    return field if after is before else replace(field, type=with_children(field.type, after))
