"""Random edits of what identifies, sorts and partitions the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec
from icemigrate.iceberg.schema import schema_index, sibling_ids
from icemigrate.iceberg.schema_edits import remove_by_id
from icemigrate.iceberg.table import Table
from tests.support.evolution_strategies import fitting, keys
from tests.support.random_fields import Edit, Ids, choose, free_names, named, with_field
from tests.support.random_tables import KEY, orders, partition_field, terms


def _free_identifier(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    """A field of the identifier inside a struct takes another name."""
    ids = table.schema.identifier_ids
    chosen = choose(draw, (e for e in named(table) if e.field.id in ids and e.parent is not None))
    if chosen is None:
        return None
    parent = schema_index(table.schema)[chosen.id].parent
    return with_field(table, replace(chosen, name=draw(st.sampled_from(free_names(table, parent)))))


def _set_identifier(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    possible = [i for i in keys(table) if i > 0]
    chosen = draw(st.frozensets(st.sampled_from(possible), min_size=1, max_size=2)) if possible else None
    if chosen is None or chosen <= table.schema.identifier_ids:
        return None
    return replace(table, schema=replace(table.schema, identifier_ids=chosen))


def _free_sort_order(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    """A column goes by which the table is sorted."""
    around, entries = sibling_ids(table.schema), schema_index(table.schema)
    sources = {f.source_ids[0] for f in table.sort_order.fields} - {KEY}
    partitioned = {f.source_ids[0] for f in table.spec.live}
    possible = [e for i, e in entries.items() if i in sources - partitioned and len(around[e.parent]) > 1]
    chosen = choose(draw, possible)
    if chosen is None:
        return None
    return fitting(replace(table, schema=remove_by_id(table.schema, chosen.id)))


def _set_sort_order(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    order = draw(orders(table, min_size=0 if table.sort_order.fields else 1))
    same = order.fields == table.sort_order.fields
    return None if same else replace(table, sort_order=replace(order, id=table.sort_order.id))


def _add_partition_field(draw: st.DrawFn, table: Table, ids: Ids) -> Table | None:
    spent = {(f.source_ids[0], f.transform) for f in table.spec.fields}
    free = [
        t for t in terms(table) if t not in spent and t[0] not in {f.source_ids[0] for f in table.spec.live}
    ]
    if not free:
        return None
    source, transform = draw(st.sampled_from(free))
    name = f"part_{transform.name}_{abs(source)}"
    field = partition_field(source, transform, next(ids), name)
    return _with_spec(table, (*table.spec.live, field))


def _with_spec(table: Table, found: Iterable[PartitionField]) -> Table:
    return replace(table, spec=PartitionSpec(tuple(found), table.spec.id))


def _drop_partition_field(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not table.spec.live:
        return None
    gone = draw(st.sampled_from(table.spec.live))
    return _with_spec(table, (f for f in table.spec.live if f != gone))


def _rename_partition_field(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not table.spec.live:
        return None
    chosen = draw(st.sampled_from(table.spec.live))
    new = replace(chosen, name=f"{chosen.name} anew")
    return _with_spec(table, (new if f == chosen else f for f in table.spec.live))


EDITS: dict[str, Edit] = {
    "free_identifier": _free_identifier,
    "set_identifier": _set_identifier,
    "free_sort_order": _free_sort_order,
    "set_sort_order": _set_sort_order,
    "add_partition_field": _add_partition_field,
    "drop_partition_field": _drop_partition_field,
    "rename_partition_field": _rename_partition_field,
}
"""By the kind of change that each leads to; more may come of it."""
