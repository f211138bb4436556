"""Field ids replaced everywhere in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.types import Struct, map_fields, with_id


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


def rebind_by_path(table: Table, onto: Table, above: int = 0) -> Table:
    """The table with its negative field ids replaced by those that the same fields have in ``onto``.

    Same are fields of one name in the same parent; parents are matched by id, since somebody else may
    have renamed one.

    :param above: ids up to this one belong to fields that were there before: a column that is made
        anew under its old name must not take the id of the one that it replaces.
    """
    here = index(table.schema)
    new = [i for i in here if i < 0]
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
