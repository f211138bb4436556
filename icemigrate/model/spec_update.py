"""What Iceberg makes of a table's partition spec when a field is added, dropped, renamed or replaced.

The rules are those of ``BaseUpdatePartitionSpec`` and ``TableMetadata`` in Iceberg's Java library:
from format version 2 a dropped field is gone and its id is taken again when the same field comes
back; in version 1 it stays as a void field, since ids count through every spec there.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.frozen import replace
from icemigrate.model.partitioning import VOID, PartitionField, PartitionSpec, Transform
from icemigrate.model.table import Table


def drop_partition_field(table: Table, name: str) -> Table:
    """The table after ``DROP PARTITION FIELD``; the field must be there."""
    return _with_fields(table, _without(table, _named(table.spec, name)))


def add_partition_field(table: Table, source_id: int, transform: Transform, name: str) -> Table:
    """The table after ``ADD PARTITION FIELD … AS name``."""
    return _with_fields(
        table, (*_move_void(table.spec.fields, name), _new(table, source_id, transform, name))
    )


def replace_partition_field(table: Table, old: str, source_id: int, transform: Transform, name: str) -> Table:
    """The table after ``REPLACE PARTITION FIELD old WITH … AS name``, which is one update, not two."""
    rest = _move_void(_without(table, _named(table.spec, old)), name)
    return _with_fields(table, (*rest, _new(table, source_id, transform, name)))


def rename_partition_field(table: Table, old: str, new: str) -> Table:
    """The table after a replacement by the same source and transform: the field keeps its id and place."""
    fields = _move_void(table.spec.fields, new)
    return _with_fields(table, tuple(replace(f, name=new) if f.name == old else f for f in fields))


def _named(spec: PartitionSpec, name: str) -> PartitionField:
    return next(f for f in spec.fields if f.name == name)


def _without(table: Table, dropped: PartitionField) -> tuple[PartitionField, ...]:
    if table.format_version >= 2:
        return tuple(f for f in table.spec.fields if f != dropped)
    return tuple(replace(f, transform=VOID) if f == dropped else f for f in table.spec.fields)


def _move_void(fields: Iterable[PartitionField], name: str) -> tuple[PartitionField, ...]:
    """Void fields give up their name to a new one: they take their id into it."""
    fields = tuple(fields)
    for field in fields:
        if field.name == name and field.transform == VOID:
            moved = f"{name}_{field.id}"
            rest = _move_void((f for f in fields if f != field), moved)
            by_id = {f.id: f for f in (*rest, replace(field, name=moved))}
            return tuple(by_id[f.id] for f in fields)
    return fields


def _new(table: Table, source_id: int, transform: Transform, name: str) -> PartitionField:
    earlier = (
        f.id
        for spec in _all_specs(table)
        for f in spec.fields
        if f.source_ids == (source_id,) and f.transform == transform and f.name == name
    )
    recycled = min(earlier, default=None) if table.format_version >= 2 else None
    field_id = table.last_partition_id + 1 if recycled is None else recycled
    return PartitionField((source_id,), transform, name, field_id)


def _with_fields(table: Table, fields: tuple[PartitionField, ...]) -> Table:
    """The table under a spec of these fields; a spec that says the same is taken again under its own id."""
    specs = _all_specs(table)
    wanted = [f.definition for f in fields]
    spec = next((s for s in specs if [f.definition for f in s.fields] == wanted), None)
    last = table.last_partition_id
    if spec is None:
        spec = PartitionSpec(fields, max(s.id for s in specs) + 1)
        last = max((last, *(f.id for f in fields)))
    older = tuple(s for s in specs if s.id != spec.id)
    return replace(table, spec=spec, older_specs=older, last_partition_id=last)


def _all_specs(table: Table) -> tuple[PartitionSpec, ...]:
    return tuple(sorted((*table.older_specs, table.spec), key=lambda s: s.id))
