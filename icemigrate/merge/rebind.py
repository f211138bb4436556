"""A declared table fitted to the one in the catalog: its field ids, and fields in its order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from icemigrate.frozen import replace
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Struct, children, is_nested, map_fields, with_children, with_id


def rebind(table: Table, ids: Mapping[int, int]) -> Table:
    """The table with field ids replaced everywhere: schema, identifier, spec and order."""
    if not ids:
        return table

    def new(old: int) -> int:
        return ids.get(old, old)

    root = map_fields(table.schema.root, lambda f: with_id(f, ids[f.id]) if f.id in ids else f)
    assert isinstance(root, Struct)
    return replace(
        table,
        schema=replace(
            table.schema,
            fields=root.fields,
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
    new = [i for i in here if i < 0 and i not in kept]
    if not new:
        return table
    there = {
        (entry.parent, entry.field.name): i
        for i, entry in index(onto.schema).items()
        if i > above and i not in here
    }
    ids: dict[int, int] = {}
    for i in new:  # parents come before what is in them
        parent = here[i].parent
        key = (None if parent is None else ids.get(parent, parent), here[i].field.name)
        if key in there:
            ids[i] = there[key]
    return rebind(table, ids)


def ordered_like(table: Table, actual: Table) -> Table:
    """The declared table with its fields in the order that they have in the catalog.

    Nobody has to say where a column stands, so a file may list columns otherwise than a table has them.
    """
    entries = index(actual.schema)

    def ordered(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        below = (
            replace(f, type=with_children(f.type, ordered(children(f.type)))) if is_nested(f.type) else f
            for f in fields
        )
        return _in_order(entries, tuple(below))

    if [i for i in index(table.schema) if i in entries] == [i for i in entries if i in index(table.schema)]:
        return table
    return replace(table, schema=replace(table.schema, fields=ordered(table.schema.fields)))


def _in_order(entries: Mapping[int, Entry], fields: tuple[Field, ...]) -> tuple[Field, ...]:
    rank = {field_id: at for at, field_id in enumerate(entries)}
    return tuple(sorted(fields, key=lambda f: rank.get(f.id, len(rank))))
