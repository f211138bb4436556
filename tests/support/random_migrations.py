"""Random migrations of one table, each made of edits that are named after the kind of change they lead to."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Primitive, Struct
from tests.support import random_column_edits, random_layout_edits, random_table_edits
from tests.support.random_fields import Edit, new_ids
from tests.support.random_tables import orders, specs

EDITS: dict[str, Edit] = {
    **random_column_edits.EDITS,
    **random_layout_edits.EDITS,
    **random_table_edits.EDITS,
}
"""By the kind of change that each leads to; more may come of it."""

RARE = frozenset({"upgrade_format", "restore_column", "change_reference", "drop_reference"})
"""What is drawn only where it is asked for: there is no way back, or it needs a migration before."""


@st.composite
def prepared(draw: st.DrawFn, table: Table, kind: str) -> Table:
    """A table that has what an edit of this kind needs, before it is made."""
    if kind == "free_identifier":
        inside = next(f.id for path, f in table.schema.walk() if path == ("s", "i"))
        return replace(table, schema=replace(table.schema, identifier_ids=frozenset({inside})))
    if kind == "free_sort_order":
        n = next(f.id for f in table.schema.fields if f.name == "n")
        order = draw(orders(table, min_size=1))
        first = replace(order.fields[0], source_ids=(n,))
        spec = tuple(f for f in table.spec.fields if f.source_ids != (n,))
        return replace(
            table, sort_order=replace(order, fields=(first,)), spec=replace(table.spec, fields=spec)
        )
    if kind in ("drop_partition_field", "rename_partition_field"):
        return replace(table, spec=draw(specs(table, min_size=1)))
    if kind == "add_partition_field":
        return replace(table, spec=PartitionSpec(table.spec.fields[:1]))
    if kind == "unset_property":
        return replace(table, properties={**table.properties, "k": "1"})
    if kind == "set_identifier":
        return replace(table, schema=replace(table.schema, identifier_ids=frozenset()))
    return table


@st.composite
def before_that(draw: st.DrawFn, table: Table, kind: str) -> Table | None:
    """What an earlier migration did, where an edit of this kind needs one."""
    ids = new_ids()
    if kind == "restore_column":
        return EDITS["drop_column"](draw, table, ids)
    if kind in ("change_reference", "drop_reference"):
        return EDITS["create_reference"](draw, table, ids)
    return None


@st.composite
def migrations(
    draw: st.DrawFn,
    table: Table,
    kind: str,
    is_legal: Callable[[Table], bool],
    more: int = 3,
    among: Collection[str] = EDITS.keys() - RARE,
) -> Table:
    """What a migration wants of a table: an edit of this kind, and up to so many of others.

    :param is_legal: whether a migration may lead there; edits that it may not are left out.
    :param among: the kinds of the others.
    """
    ids = new_ids()
    wanted = table
    others = draw(st.lists(st.sampled_from(sorted(among)), max_size=more))
    # Not everything that is drawn is legal: for the kind itself there are some attempts.
    for name in (kind, kind, kind, kind, kind, *others):
        if name not in EDITS or (name == kind and wanted is not table):
            continue
        after = EDITS[name](draw, wanted, ids)
        if (
            after is not None
            and has_unique_names(after.schema)
            and can_be_written(after.schema)
            and is_legal(after)
        ):
            wanted = after
    return wanted


def has_unique_names(schema: Schema) -> bool:
    """Whether every path names one field."""
    paths = [path for path, _ in schema.walk()]
    return len(set(paths)) == len(paths)


def can_be_written(schema: Schema) -> bool:
    """Whether each struct has a field that a file holds: Parquet has no empty group, and no ``unknown``."""
    structs = [f.type for _, f in schema.walk() if isinstance(f.type, Struct)]
    return all(any(f.type != Primitive("unknown") for f in s.fields) for s in structs)
