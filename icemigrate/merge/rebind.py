"""Field ids replaced everywhere in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icemigrate.model.table import Table
from icemigrate.model.types import Struct, map_fields


def rebind(table: Table, ids: Mapping[int, int]) -> Table:
    """The table with field ids replaced everywhere: schema, identifier, spec and order."""
    if not ids:
        return table

    def new(old: int) -> int:
        return ids.get(old, old)

    root = map_fields(table.schema.root, lambda f: replace(f, id=ids[f.id]) if f.id in ids else f)
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
    """The table with its negative field ids replaced by those of the fields at the same paths of ``onto``.

    :param above: ids up to this one belong to fields that were there before: a column that is made
        anew under its old name must not take the id of the one that it replaces.
    """
    here = {f.id: path for path, f in table.schema.walk()}
    new = {i: path for i, path in here.items() if i < 0}
    if not new:
        return table
    there = {path: f.id for path, f in onto.schema.walk() if f.id > above and f.id not in here}
    ids = {i: there[path] for i, path in new.items() if path in there}
    return rebind(table, ids)
