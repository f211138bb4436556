"""Random evolutions for the laws of planning: what there was, what is wanted, what others did by hand.

Made of the tables of ``tests/support/table_strategies.py`` and the column edits of
``tests/support/column_edits.py``, with legal layouts.
"""

from __future__ import annotations

from itertools import count

from hypothesis import strategies as st

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import (
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    accepts_source_type,
)
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.iceberg.types import Primitive, Struct, is_nested
from tests.support import column_edits
from tests.support.replayed_migrations import settled
from tests.support.table_strategies import TRANSFORMS, tables

NAME = TableName.parse("db.t")
_PROPERTIES = st.dictionaries(st.sampled_from(("k", "l", "m")), st.sampled_from(("1", "2", "3")))
_TAGS = st.dictionaries(
    st.sampled_from(("t1", "t2")),
    st.builds(Ref, st.just("tag"), st.just(-1), st.none() | st.sampled_from((60_000, 86_400_000))),
)
_NO_KEYS = ("double", "float", "variant")


class Evolution(Frozen):
    """One migration of one table.

    :param before: the table as the history has it.
    :param wanted: what the migration makes of it, new fields under negative ids.
    :param actual: what the catalog has meanwhile.
    """

    before: Table
    wanted: Table
    actual: Table


def plain(table: Table) -> list[int]:
    """Ids of the fields by which a table can be partitioned and sorted."""
    entries = schema_index(table.schema)
    return [i for i, e in entries.items() if not is_nested(e.field.type) and not _in_container(table, i)]


def _in_container(table: Table, field_id: int) -> bool:
    entries = schema_index(table.schema)
    parent = entries[field_id].parent
    while parent is not None:
        if not isinstance(entries[parent].field.type, Struct):
            return True
        parent = entries[parent].parent
    return False


def _required(table: Table, field_id: int | None) -> bool:
    entries = schema_index(table.schema)
    while field_id is not None:
        if not entries[field_id].field.required:
            return False
        field_id = entries[field_id].parent
    return True


def keys(table: Table) -> list[int]:
    """Ids of the fields that may identify a row."""
    entries = schema_index(table.schema)
    return [
        i
        for i in plain(table)
        if _required(table, i)
        and not (isinstance(t := entries[i].field.type, Primitive) and t.name in _NO_KEYS)
    ]


@st.composite
def layouts(draw: st.DrawFn, table: Table) -> Table:
    """The table with another identifier, spec and order, all of them legal."""
    entries, sources = schema_index(table.schema), plain(table)
    ids = draw(st.frozensets(st.sampled_from(found), max_size=2)) if (found := keys(table)) else frozenset()
    chosen: list[PartitionField] = []
    order: list[int] = []
    if sources:
        order = draw(st.lists(st.sampled_from(sources), max_size=2, unique=True))
        for source in draw(st.lists(st.sampled_from(sources), max_size=2, unique=True)):
            transform = draw(st.sampled_from(TRANSFORMS))
            if accepts_source_type(transform, entries[source].field.type):
                name = f"by_{source}_{transform.name}".replace("-", "new")
                chosen.append(PartitionField((source,), transform, name, -1 - len(chosen)))
    known = {(f.source_ids, f.transform): f for f in table.spec.live}
    kept = [known.get((f.source_ids, f.transform), f) for f in chosen]
    descending = draw(st.booleans())
    return replace(
        table,
        schema=replace(table.schema, identifier_ids=ids),
        spec=PartitionSpec(tuple(kept), table.spec.id),
        sort_order=SortOrder(
            tuple(
                SortField(
                    (i,),
                    direction="desc" if descending else "asc",
                    null_order="nulls-last" if descending else "nulls-first",
                )
                for i in order
            )
        ),
    )


@st.composite
def evolved(draw: st.DrawFn, table: Table) -> Table:
    """What a migration, or a hand, can make of a table; new fields have negative ids."""
    root = draw(column_edits.edits(table.schema.root, column_edits._Ids(count(-1, -1))))
    assert isinstance(root, Struct)
    after = fitting(replace(table, schema=replace(table.schema, fields=root.fields)))
    if draw(st.booleans()):
        after = draw(layouts(after))
    return replace(
        after,
        properties=draw(st.just(after.properties) | _PROPERTIES),
        refs=draw(st.just(after.refs) | _TAGS),
        format_version=draw(st.integers(after.format_version, 3)),
    )


def fitting(table: Table) -> Table:
    """The table without what its layout says of fields that are gone or not fit any more."""
    there, ids = set(plain(table)), set(keys(table))
    return replace(
        table,
        schema=replace(table.schema, identifier_ids=frozenset(table.schema.identifier_ids & ids)),
        spec=replace(table.spec, fields=tuple(f for f in table.spec.live if f.source_ids[0] in there)),
        sort_order=replace(
            table.sort_order,
            fields=tuple(f for f in table.sort_order.fields if f.source_ids[0] in there),
        ),
    )


@st.composite
def befores(draw: st.DrawFn) -> Table:
    """A table that the history knows, with a layout, rows and tags."""
    drawn = draw(tables())
    bare = replace(
        drawn,
        name=NAME,
        schema=Schema(drawn.schema.fields),
        spec=PartitionSpec(),
        sort_order=SortOrder(),
        properties=draw(_PROPERTIES),
        refs=draw(_TAGS),
        location=None,
        uuid="00000000-0000-4000-8000-000000000001",
        last_column_id=max(f.id for _, f in drawn.schema.walk()),
    )
    laid = settled(draw(layouts(bare)))
    order = replace(laid.sort_order, id=1 if laid.sort_order.fields else 0)
    return replace(laid, sort_order=order, snapshot=Snapshot(7, 0, 1))


@st.composite
def evolutions(draw: st.DrawFn, by_hand: bool = True) -> Evolution:
    """A migration; ``by_hand``: of a table that others may have changed meanwhile.

    They may have done what the migration wants, something else, and both.
    """
    before = draw(befores())
    wanted = draw(evolved(before))
    actual = before
    if by_hand:
        start = draw(st.sampled_from((before, settled(wanted))))
        actual = draw(st.just(start) | evolved(start).map(settled).filter(_has_unique_names))
    return Evolution(before, wanted, actual)


def _has_unique_names(table: Table) -> bool:
    """A hand cannot add a column under a name that is there; the random edit tries."""
    paths = [path for path, _ in table.schema.walk()]
    return len(set(paths)) == len(paths)
