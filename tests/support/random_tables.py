"""Random tables that Spark can make and write to, in one format version."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import (
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
    accepts_source_type,
)
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    renumber_fields,
)
from tests.support.evolution_strategies import keys, plain
from tests.support.table_strategies import TRANSFORMS

KEY = 1
"""Field id of the column that tells rows apart; no migration drops it or changes its type."""
NAMES = ("a", "b", "c", "x.y", "zip code", "é", "no", "1st", "select", "with, comma", "back`tick")
_ALWAYS: tuple[Type, ...] = (
    *map(
        Primitive,
        ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string"),
    ),
    *map(Primitive, ("uuid", "binary")),
    Decimal(9, 2),
    Decimal(20, 4),
    Fixed(4),
)
_SINCE_V3: tuple[Type, ...] = (Primitive("unknown"), Primitive("variant"))
_MAP_KEYS: tuple[Type, ...] = (*map(Primitive, ("string", "int", "date")), Decimal(9, 2))
UNSORTED = ("unknown", "variant")
"""Types whose values have no order, and by which nothing is partitioned."""
PROPERTIES = {
    "k": ("1", "2"),
    "a.b: c": ("it's: #1", ""),
    "comment": ("Trades", 'What, it\'s a "table"?'),
    "write.distribution-mode": ("none", "hash"),
    "write.parquet.compression-codec": ("zstd", "snappy"),
    "write.metadata.metrics.default": ("full", "counts"),
}


def leaves(format_version: int) -> st.SearchStrategy[Type]:
    """The primitive types that Spark can write into a table of this version."""
    return st.sampled_from((*_ALWAYS, *(_SINCE_V3 if format_version >= 3 else ())))


def types(format_version: int, depth: int = 2) -> st.SearchStrategy[Type]:
    """Types without ids, nested up to ``depth``; null has no column of its own in a list or a map."""
    plain_types = leaves(format_version)
    if depth == 0:
        return plain_types
    inner = types(format_version, depth - 1).filter(lambda t: t != Primitive("unknown"))
    return st.one_of(
        plain_types,
        structs(format_version, depth - 1),
        st.builds(lambda t, r: List(Field(0, "element", t, r)), inner, st.booleans()),
        st.builds(
            lambda k, v, r: Map(Field(0, "key", k, True), Field(0, "value", v, r)),
            st.sampled_from(_MAP_KEYS),
            inner,
            st.booleans(),
        ),
    )


def structs(format_version: int, depth: int) -> st.SearchStrategy[Struct]:
    """Structs without ids; null is not all that is in one."""
    some = st.lists(fields(format_version, depth), min_size=1, max_size=3, unique_by=lambda f: f.name)
    return some.filter(lambda found: any(f.type != Primitive("unknown") for f in found)).map(
        lambda found: Struct(tuple(found))
    )


@st.composite
def fields(draw: st.DrawFn, format_version: int, depth: int = 2) -> Field:
    """A field without an id."""
    type_ = draw(types(format_version, depth))
    required = draw(st.booleans()) and type_ != Primitive("unknown")
    doc = draw(st.none() | st.sampled_from(("Said", 'It\'s: "so"; -- `x`', "é\n2")))
    return Field(0, draw(st.sampled_from(NAMES)), type_, required, doc)


def _common(key_required: bool) -> tuple[Field, ...]:
    """The columns that every table has, so that every kind of change finds something to change."""
    inside = (
        Field(0, "i", Primitive("int"), True),
        Field(0, "t", Primitive("string")),
        Field(0, "f", Primitive("float")),
    )
    return (
        Field(0, "key", Primitive("long"), key_required),
        Field(0, "n", Primitive("int")),
        Field(0, "r", Primitive("string"), True),
        Field(0, "s", Struct(inside), True),
        Field(0, "d", Primitive("date")),
    )


@st.composite
def lake_tables(draw: st.DrawFn, name: str, format_version: int) -> Table:
    """A table as a migration file declares it: nested columns, layout, properties; ids from 1 up."""
    drawn = draw(st.lists(fields(format_version), max_size=3, unique_by=lambda f: f.name))
    common = _common(draw(st.booleans()))
    numbers = count(KEY)
    root = renumber_fields(Struct((*common, *drawn)), lambda: next(numbers))
    assert isinstance(root, Struct)
    bare = Table(
        TableName.parse(name),
        Schema(root.fields),
        properties=draw(some_properties()),
        format_version=format_version,
        last_column_id=next(numbers) - 1,
    )
    identifier = draw(st.frozensets(st.sampled_from(keys(bare)), max_size=2))
    bare = replace(bare, schema=replace(bare.schema, identifier_ids=identifier))
    return replace(bare, spec=draw(specs(bare)), sort_order=draw(orders(bare)))


def some_properties() -> st.SearchStrategy[dict[str, str]]:
    """Properties as Spark and Iceberg take them."""
    return st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in PROPERTIES.items()})


def sortable(table: Table) -> list[int]:
    """Ids of the fields by which a table can be partitioned and sorted."""
    entries = schema_index(table.schema)
    return [
        i
        for i in plain(table)
        if not (isinstance(t := entries[i].field.type, Primitive) and t.name in UNSORTED)
    ]


def terms(table: Table) -> list[tuple[int, Transform]]:
    """What the table can be partitioned by.

    Not by the very value of a field below a struct that may be null: Iceberg 1.12 takes that from the
    partition and reads a struct of nulls where there was none; to compact a required one fails.
    """
    entries = schema_index(table.schema)
    below_null = {i for i, e in entries.items() if _may_have_no_parent(entries, e)}
    return [
        (i, t)
        for i in sortable(table)
        for t in TRANSFORMS
        if accepts_source_type(t, entries[i].field.type) and not (t.name == "identity" and i in below_null)
    ]


def _may_have_no_parent(entries: Mapping[int, IndexedField], entry: IndexedField) -> bool:
    parent = None if entry.parent is None else entries[entry.parent]
    return parent is not None and (not parent.field.required or _may_have_no_parent(entries, parent))


@st.composite
def specs(draw: st.DrawFn, table: Table, min_size: int = 0) -> PartitionSpec:
    """A spec of up to two fields of different columns, under names of their own."""
    chosen = draw(
        st.lists(st.sampled_from(terms(table)), min_size=min_size, max_size=2, unique_by=lambda t: t[0])
    )
    return PartitionSpec(tuple(partition_field(i, t, -1 - at) for at, (i, t) in enumerate(chosen)))


def partition_field(
    source: int, transform: Transform, field_id: int, name: str | None = None
) -> PartitionField:
    """A field that is new."""
    given = name or f"by_{source}_{transform.name}".replace("-", "new")
    return PartitionField((source,), transform, given, field_id)


@st.composite
def orders(draw: st.DrawFn, table: Table, min_size: int = 0) -> SortOrder:
    """An order of up to two fields."""
    chosen = draw(st.lists(st.sampled_from(sortable(table)), min_size=min_size, max_size=2, unique=True))
    ways = [draw(st.sampled_from((("asc", "nulls-first"), ("desc", "nulls-last")))) for _ in chosen]
    return SortOrder(
        tuple(
            SortField((i,), direction=direction, null_order=nulls)
            for i, (direction, nulls) in zip(chosen, ways, strict=True)
        )
    )
