"""Random tables and random edits of them, for property tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

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
    default_name,
)
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.schema_edits import edit_fields_of
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Fixed,
    JsonValue,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    is_nested,
    map_fields,
    renumber_fields,
)

NAMES = (
    "a",
    "b",
    "c",
    "ts",
    "id",
    "x.y",
    "zip code",
    "é",
    "no",
    "1st",
    "`",
    "A",
    "a: b",
    "with, comma",
    "😎",
)
DEFAULTS: dict[str, tuple[JsonValue, ...]] = {
    "int": (0, -7),
    "double": (0.5, 1e300),
    "boolean": (True, False),
    "string": ("", "no", "1.0", "it's: a #1", " padded "),
    "date": ("2026-11-27",),
    "timestamp": ("2026-11-27T22:31:08.12",),
}
names = st.sampled_from(NAMES)
docs = st.none() | st.text(st.characters(codec="utf-8"), max_size=12)
primitives: st.SearchStrategy[Type] = st.sampled_from(
    [
        *map(
            Primitive,
            ("int", "long", "string", "double", "boolean", "date", "timestamp", "timestamptz", "uuid"),
        ),
        Decimal(9, 2),
        Fixed(4),
    ]
)
TRANSFORMS = (
    *map(Transform, ("identity", "year", "month", "day", "hour")),
    Transform("bucket", 16),
    Transform("truncate", 4),
)


@st.composite
def fields(draw: st.DrawFn, types: st.SearchStrategy[Type], name: str | None = None) -> Field:
    """A field that nobody numbered."""
    type_ = draw(types)
    default = None
    if isinstance(type_, Primitive) and type_.name in DEFAULTS:
        default = draw(st.none() | st.sampled_from(DEFAULTS[type_.name]))
    return Field(0, name or draw(names), type_, draw(st.booleans()), draw(docs), default, default)


def _structs(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    some = st.lists(fields(types), min_size=1, max_size=4, unique_by=lambda f: f.name)
    return some.map(lambda found: Struct(tuple(found)))


def _nested(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        _structs(types),
        st.builds(lambda t, r: List(Field(0, "element", t, r)), types, st.booleans()),
        st.builds(
            lambda k, v, r: Map(Field(0, "key", k, True), Field(0, "value", v, r)),
            types,
            types,
            st.booleans(),
        ),
    )


types: st.SearchStrategy[Type] = st.recursive(primitives, _nested, max_leaves=5)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table as a catalog would hold it, ids and all."""
    columns = draw(st.lists(fields(types), min_size=1, max_size=6, unique_by=lambda f: f.name))
    counter = iter(range(1, 1000))
    root = renumber_fields(Struct(tuple(columns)), lambda: next(counter))
    assert isinstance(root, Struct)
    table = Table(
        TableName(("db", "odd name"), "t"),
        Schema(root.fields),
        properties=draw(properties),
        format_version=draw(st.sampled_from((1, 2, 3))),
        location=draw(st.none() | st.just("s3://lake/t: 1")),
        refs=draw(refs),
        last_column_id=next(counter),
    )
    return draw(layouts(table))


property_values = st.text(st.characters(codec="utf-8"), max_size=8)
properties = st.fixed_dictionaries(
    {},
    optional={
        "k": property_values,
        "a.b: c": property_values,
        "comment": property_values,
        "write.distribution-mode": st.sampled_from(("none", "hash", "range", "odd")),
        "history.expire.max-snapshot-age-ms": st.sampled_from(("86400000", "1500", "0", "x")),
        "history.expire.min-snapshots-to-keep": st.sampled_from(("10", "010", "0")),
        "icemigrate.retention.rows.column": st.just("`no such`"),
        "icemigrate.retention.rows.max-age-ms": st.sampled_from(("86400000", "-1")),
    },
)
ages = st.none() | st.sampled_from((60_000, 86_400_000, 2_592_000_000))
refs = st.dictionaries(
    st.sampled_from(("r1", "r 2", "yes")),
    st.builds(Ref, st.just("tag"), st.just(-1), ages)
    | st.builds(Ref, st.just("branch"), st.just(-1), ages, ages, st.none() | st.integers(1, 9)),
    max_size=3,
)


@st.composite
def layouts(draw: st.DrawFn, table: Table) -> Table:
    """The table with another identifier, spec and order; terms that are there keep their ids."""
    entries = schema_index(table.schema)
    by_id = st.sampled_from(sorted(entries))
    identifier = draw(st.frozensets(by_id, max_size=2))
    known = {(f.source_ids, f.transform): f for f in table.spec.live}
    fields: dict[tuple[tuple[int, ...], Transform], PartitionField] = {}
    for source, transform in draw(st.lists(st.tuples(by_id, st.sampled_from(TRANSFORMS)), max_size=3)):
        key = ((source,), transform)
        if accepts_source_type(transform, entries[source].field.type) and key not in fields:
            unsaid = default_name(entries[source].path, transform)
            name = draw(st.sampled_from((unsaid, f"n{len(fields)}", f"odd {len(fields)}")))
            if key in known:
                fields[key] = replace(known[key], name=draw(st.sampled_from((name, known[key].name))))
            else:
                fields[key] = PartitionField(*key, name, -1 - len(fields))
    order = draw(
        st.lists(
            st.builds(
                SortField,
                st.tuples(by_id),
                st.sampled_from(TRANSFORMS),
                st.sampled_from(("asc", "desc")),
                st.sampled_from(("nulls-first", "nulls-last")),
            ),
            max_size=3,
            unique_by=lambda f: (f.source_ids, f.transform),
        )
    )
    unique = {f.name: f for f in fields.values()}
    return replace(
        table,
        schema=replace(table.schema, identifier_ids=identifier),
        spec=PartitionSpec(tuple(unique.values())),
        sort_order=SortOrder(tuple(order)),
    )


def _sibling_groups(table: Table) -> list[int | None]:
    """Ids of the structs, ``None`` for the columns."""
    return [None, *(f.id for _, f in table.schema.walk() if isinstance(f.type, Struct))]


@st.composite
def edits(draw: st.DrawFn, table: Table) -> Table:
    """Another state of the table: fields renamed, dropped, added, moved and altered at any depth."""
    lowest = iter(range(-1, -1000, -1))
    for _ in range(draw(st.integers(0, 4))):
        parent = draw(st.sampled_from(_sibling_groups(table)))
        change = draw(st.sampled_from((_rename, _drop, _add, _move, _alter)))
        siblings = partial(change, draw, lambda: next(lowest))
        schema = edit_fields_of(table.schema, parent, siblings)
        table = replace(table, schema=schema)
    alive = {f.id for _, f in table.schema.walk()}
    table = replace(
        table,
        schema=replace(table.schema, identifier_ids=table.schema.identifier_ids & alive),
        spec=PartitionSpec(tuple(f for f in table.spec.fields if f.source_ids[0] in alive)),
        sort_order=SortOrder(tuple(f for f in table.sort_order.fields if f.source_ids[0] in alive)),
    )
    if draw(st.booleans()):
        table = draw(layouts(table))
    return replace(
        table,
        properties=draw(st.just(table.properties) | properties),
        refs=draw(st.just(table.refs) | refs),
        format_version=draw(st.integers(table.format_version, 3)),
    )


Siblings = tuple[Field, ...]
NextId = Callable[[], int]


def _rename(draw: st.DrawFn, _: NextId, found: Siblings) -> Siblings:
    """New names for all, often among themselves: swaps, rotations, chains."""
    pool = (
        draw(st.permutations([f.name for f in found]))
        if draw(st.booleans())
        else draw(st.permutations(NAMES))
    )
    return tuple(replace(f, name=name) for f, name in zip(found, pool, strict=False))


def _drop(draw: st.DrawFn, _: NextId, found: Siblings) -> Siblings:
    gone = draw(st.sampled_from(found))
    return tuple(f for f in found if f is not gone) or found


def _add(draw: st.DrawFn, next_id: NextId, found: Siblings) -> Siblings:
    new = draw(fields(types))
    if any(f.name == new.name for f in found):
        return found
    numbered = replace(new, id=next_id(), type=renumber_fields(new.type, next_id))
    at = draw(st.integers(0, len(found)))
    return (*found[:at], numbered, *found[at:])


def _move(draw: st.DrawFn, _: NextId, found: Siblings) -> Siblings:
    return tuple(draw(st.permutations(found)))


def _alter(draw: st.DrawFn, next_id: NextId, found: Siblings) -> Siblings:
    one = draw(st.sampled_from(found))
    other = replace(one, required=not one.required, doc=draw(docs))
    if not is_nested(one.type) and draw(st.booleans()):
        changed = draw(types)
        # The initial default is set when a field is added, and stays.
        initial = one.initial_default if one.id > 0 else None
        other = replace(
            other, type=renumber_fields(changed, next_id), initial_default=initial, write_default=None
        )
    return tuple(other if f is one else f for f in found)


def without_ids(table: Table) -> Table:
    """The table with its fields numbered in the order in which they stand."""
    return _numbered(table, {f.id: at for at, (_, f) in enumerate(table.schema.walk(), 1)})


def with_new_ids_in_order(table: Table) -> Table:
    """The table with its new fields numbered in the order in which they stand."""
    new = [f.id for _, f in table.schema.walk() if f.id < 0]
    return _numbered(table, {i: -at for at, i in enumerate(new, 1)})


def _numbered(table: Table, ids: dict[int, int]) -> Table:
    def give(type_: Type) -> Type:
        return map_fields(type_, lambda f: replace(f, id=ids.get(f.id, f.id)))

    root = give(table.schema.root)
    assert isinstance(root, Struct)

    def sources(found: Iterable[int]) -> tuple[int, ...]:
        return tuple(ids.get(i, i) for i in found)

    spec = [replace(f, source_ids=sources(f.source_ids)) for f in table.spec.fields]
    new = (-at for at in range(1, 100))
    return replace(
        table,
        schema=Schema(root.fields, frozenset(sources(table.schema.identifier_ids))),
        spec=PartitionSpec(tuple(replace(f, id=next(new)) if f.id < 0 else f for f in spec)),
        sort_order=SortOrder(
            tuple(replace(f, source_ids=sources(f.source_ids)) for f in table.sort_order.fields)
        ),
        last_column_id=0,
    )
