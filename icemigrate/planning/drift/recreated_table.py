"""The recorded state of a table that another client dropped and created again under its name; pure.

What the migrations declare stays, under the field ids of the new table, so that everything in which the new
table differs is drift of single facts: `drift --accept` and `plan --reconcile` work on these.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DroppedField, Table
from icemigrate.iceberg.types import Field, is_nested, renumber_fields
from icemigrate.planning.merge import match_new_fields, rebind_field_ids, with_catalog_ids


def recreated_table_hint(declared: TableName) -> str:
    """What ends a state in which another table has the name of a recorded one that is gone."""
    return (
        f"`icemigrate repair --adopt {declared}` records it; to restore the recorded table instead, move "
        "this one away, then rename the recorded one back or use `register_table`"
    )


def bound_to_recreated(base: Table, current: Table) -> Table:
    """The recorded table, bound to the table that has its name now.

    A declared column that the new table lacks gets an id that the new table never gave.

    :param base: as recorded, under its declared name.
    :param current: the table in the catalog.
    """
    unbound = rebind_field_ids(base, {f.id: -f.id for _, f in base.schema.walk() if f.id > 0})
    bound = rebind_field_ids(unbound, match_new_fields(Schema(), unbound.schema, current.schema))
    missing = [f.id for _, f in bound.schema.walk() if f.id < 0]
    last = max([current.last_column_id, *(f.id for _, f in current.schema.walk())])
    bound = rebind_field_ids(bound, {old: new for new, old in enumerate(missing, start=last + 1)})
    recorded = with_catalog_ids(replace(bound, older_specs=(), older_orders=(), snapshot=None), current)
    return replace(
        recorded,
        name=base.name,
        uuid=current.uuid,
        location=None if base.location is None else current.location,
        last_column_id=last + len(missing),
        dropped=_without_ids(base, recorded),
    )


def _without_ids(base: Table, bound: Table) -> tuple[DroppedField, ...]:
    """The dropped fields with negative ids: the new table never had them, so restoring adds new fields."""
    number = itertools.count(-1, -1)
    gone = [replace(d, field=_with_new_ids(d.field, lambda: next(number))) for d in base.dropped]
    ids = {was.id: now.id for (_, was), (_, now) in zip(base.schema.walk(), bound.schema.walk(), strict=True)}
    ids |= {was.field.id: now.field.id for was, now in zip(base.dropped, gone, strict=True)}

    def new(old: int | None) -> int | None:
        return None if old is None else ids.get(old, 0)

    return tuple(replace(d, parent=new(d.parent), after=new(d.after)) for d in gone)


def _with_new_ids(field: Field, next_id: Callable[[], int]) -> Field:
    type_ = renumber_fields(field.type, next_id) if is_nested(field.type) else field.type
    return replace(field, id=next_id(), type=type_)
