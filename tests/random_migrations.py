"""Random migrations of one table, each made of edits that are named after the kind of change they lead to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from typing import TypeAlias

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.model.partitioning import PartitionField, PartitionSpec
from icemigrate.model.schema import Entry, Schema, index, siblings
from icemigrate.model.schema_edits import edit_by_id, edit_fields_of, fields_of, remove_by_id
from icemigrate.model.table import DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY, Ref, Table
from icemigrate.model.types import Decimal, Field, Map, Primitive, Struct, Type, renumber
from tests.random_rows import may_hold_null
from tests.random_tables import (
    KEY,
    NAMES,
    PROPERTIES,
    fields,
    orders,
    partition_field,
    specs,
    terms,
)
from tests.strategies import fitting, keys
from tests.tables import DEFAULTS

Ids: TypeAlias = Iterator[int]
Edit: TypeAlias = Callable[[st.DrawFn, Table, Ids], "Table | None"]
"""Another state of a table, or ``None`` where the table has nothing to do it to."""

_WIDER: dict[Type, Type] = {
    Primitive("int"): Primitive("long"),
    Primitive("float"): Primitive("double"),
    Decimal(9, 2): Decimal(12, 2),
    Decimal(20, 4): Decimal(38, 4),
}
_WIDER_SINCE_V3: dict[Type, Type] = {
    Primitive("unknown"): Primitive("string"),
}
_AGES = (None, 86_400_000, 2_592_000_000)


def new_ids() -> Ids:
    """Ids of what is new in a declaration."""
    return count(-1, -1)


def _entries(table: Table) -> Iterator[Entry]:
    """The fields that a migration may touch: not the key, and nothing in the key of a map."""
    entries = index(table.schema)
    in_keys = {i for i, e in entries.items() if _is_map_key(table, e)}
    for i, entry in entries.items():
        above = entry.parent
        while above is not None and above not in in_keys:
            above = entries[above].parent
        if i != KEY and i not in in_keys and above is None:
            yield entry


def _is_map_key(table: Table, entry: Entry) -> bool:
    above = None if entry.parent is None else index(table.schema)[entry.parent].field.type
    return isinstance(above, Map) and entry.field.name == "key"


def _named(table: Table) -> list[Entry]:
    """The columns and the fields of structs."""
    entries = index(table.schema)
    return [
        e for e in _entries(table) if e.parent is None or isinstance(entries[e.parent].field.type, Struct)
    ]


def _choose(draw: st.DrawFn, found: Iterable[Entry]) -> Field | None:
    some = [e.field for e in found]
    return draw(st.sampled_from(some)) if some else None


def _with(table: Table, field: Field) -> Table:
    return replace(table, schema=edit_by_id(table.schema, field.id, lambda _: field))


def _structs(table: Table) -> list[int | None]:
    """What a field can be added to."""
    return [None, *(e.field.id for e in _entries(table) if isinstance(e.field.type, Struct))]


def _free_names(table: Table, parent: int | None) -> list[str]:
    taken = {f.name for f in fields_of(table.schema, parent)} | {f.name for f in table.spec.fields}
    taken |= {f.name for spec in table.older_specs for f in spec.fields}
    return [name for name in (*NAMES, "new", "newer") if name not in taken]


def _rename_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    chosen = _choose(draw, _named(table))
    if chosen is None:
        return None
    parent = index(table.schema)[chosen.id].parent
    others = [f for f in fields_of(table.schema, parent) if f.id not in (chosen.id, KEY)]
    if others and draw(st.booleans()):
        other = draw(st.sampled_from(others))
        table = _with(table, replace(other, name=chosen.name))
        return _with(table, replace(chosen, name=other.name))
    return _with(table, replace(chosen, name=draw(st.sampled_from(_free_names(table, parent)))))


def _drop_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    around = siblings(table.schema)
    chosen = _choose(draw, (e for e in _named(table) if len(around[e.parent]) > 1))
    if chosen is None:
        return None
    return fitting(replace(table, schema=remove_by_id(table.schema, chosen.id)))


def _add_column(draw: st.DrawFn, table: Table, ids: Ids) -> Table | None:
    parent = draw(st.sampled_from(_structs(table)))
    new = draw(fields(table.format_version))
    default = None
    if table.format_version >= 3 and isinstance(new.type, Primitive) and new.type.name in DEFAULTS:
        default = draw(st.none() | st.sampled_from(DEFAULTS[new.type.name]))
    # Rows that are there have nothing where a required column has no default, and then read as anything.
    required = new.required and (default is not None or table.snapshot is None)
    field = Field(
        next(ids),
        draw(st.sampled_from(_free_names(table, parent))),
        renumber(new.type, lambda: next(ids)),
        required,
        new.doc,
        default,
        default,
    )
    at = draw(st.integers(0, len(fields_of(table.schema, parent))))
    schema = edit_fields_of(table.schema, parent, lambda found: (*found[:at], field, *found[at:]))
    return replace(table, schema=schema)


def _widen_type(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    wider = {**_WIDER, **(_WIDER_SINCE_V3 if table.format_version >= 3 else {})}
    chosen = _choose(draw, (e for e in _entries(table) if e.field.type in wider))
    # A default of the narrower type may be none of the wider one's.
    if chosen is None or chosen.write_default is not None or chosen.initial_default is not None:
        return None
    return _with(table, replace(chosen, type=wider[chosen.type]))


def _make_optional(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    entries = list(_entries(table))
    chosen = _choose(draw, (e for e in entries if e.field.required))
    if chosen is None:
        return None
    changed = _with(table, replace(chosen, required=False))
    possible = frozenset(keys(changed))
    ids = table.schema.identifier_ids & possible
    return replace(changed, schema=replace(changed.schema, identifier_ids=ids))


def _make_required(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    unsaid = (e for e in _entries(table) if not e.field.required and not may_hold_null(e.field))
    chosen = _choose(draw, (e for e in unsaid if e.field.id > 0))
    return None if chosen is None else _with(table, replace(chosen, required=True))


def _describe_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    chosen = _choose(draw, _named(table))
    if chosen is None:
        return None
    doc = draw(st.sampled_from([d for d in (None, "Told", "It's\n`this`") if d != chosen.doc]))
    return _with(table, replace(chosen, doc=doc))


def _move_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    around = siblings(table.schema)
    movable = [p for p in _structs(table) if len(around.get(p, ())) > 1]
    parent = draw(st.sampled_from(movable))
    order = draw(st.permutations(range(len(around[parent]))))
    if list(order) == sorted(order):
        order = [*order[1:], order[0]]
    schema = edit_fields_of(table.schema, parent, lambda found: tuple(found[i] for i in order))
    return replace(table, schema=schema)


def _set_default(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if table.format_version < 3:
        return None
    chosen = _choose(draw, (e for e in _named(table) if getattr(e.field.type, "name", None) in DEFAULTS))
    if chosen is None or not isinstance(chosen.type, Primitive):
        return None
    values = [v for v in DEFAULTS[chosen.type.name] if v != chosen.write_default]
    return _with(table, replace(chosen, write_default=draw(st.sampled_from(values))))


def _restore_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    entries = index(table.schema)
    possible = [
        d
        for d in table.dropped
        if (d.parent is None or d.parent in entries)
        and d.field.name not in {f.name for f in fields_of(table.schema, d.parent)}
    ]
    if not possible:
        return None
    chosen = draw(st.sampled_from(possible))
    # Rows that were written meanwhile have nothing for it.
    field = replace(chosen.field, required=False)
    schema = edit_fields_of(table.schema, chosen.parent, lambda found: (*found, field))
    dropped = tuple(d for d in table.dropped if d is not chosen)
    return replace(table, schema=schema, dropped=(*dropped, chosen))


def _free_identifier(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    """A field of the identifier inside a struct takes another name."""
    ids = table.schema.identifier_ids
    chosen = _choose(draw, (e for e in _named(table) if e.field.id in ids and e.parent is not None))
    if chosen is None:
        return None
    parent = index(table.schema)[chosen.id].parent
    return _with(table, replace(chosen, name=draw(st.sampled_from(_free_names(table, parent)))))


def _set_identifier(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    possible = [i for i in keys(table) if i > 0]
    chosen = draw(st.frozensets(st.sampled_from(possible), min_size=1, max_size=2)) if possible else None
    if chosen is None or chosen <= table.schema.identifier_ids:
        return None
    return replace(table, schema=replace(table.schema, identifier_ids=chosen))


def _free_sort_order(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    """A column goes by which the table is sorted."""
    around, entries = siblings(table.schema), index(table.schema)
    sources = {f.source_ids[0] for f in table.sort_order.fields} - {KEY}
    partitioned = {f.source_ids[0] for f in table.spec.live}
    possible = [e for i, e in entries.items() if i in sources - partitioned and len(around[e.parent]) > 1]
    chosen = _choose(draw, possible)
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


def _write_distribution(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, DISTRIBUTION_PROPERTY, ("none", "hash", "range"))


def _with_property(draw: st.DrawFn, table: Table, key: str, values: Iterable[str]) -> Table:
    value = draw(st.sampled_from([v for v in values if v != table.properties.get(key)]))
    return replace(table, properties={**table.properties, key: value})


def _describe_table(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, DESCRIPTION_PROPERTY, (*PROPERTIES[DESCRIPTION_PROPERTY], "Else"))


def _set_property(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    return _with_property(draw, table, draw(st.sampled_from(("k", "fresh"))), ("1", "2", "", "it's: #3"))


def _unset_property(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    own = [k for k in ("k", "a.b: c") if k in table.properties]
    if not own:
        return None
    gone = draw(st.sampled_from(own))
    return replace(table, properties={k: v for k, v in table.properties.items() if k != gone})


def _upgrade_format(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if table.format_version >= 3:
        return None
    return replace(table, format_version=draw(st.integers(table.format_version + 1, 3)))


def _references(table: Table) -> dict[str, Ref]:
    return {n: r for n, r in table.refs.items() if n in ("golden", "b 1", "other")}


def _create_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    free = [n for n in ("golden", "b 1", "other") if n not in table.refs]
    if not free or table.snapshot is None:
        return None
    kind = draw(st.sampled_from(("tag", "branch")))
    ref = Ref(kind, -1, draw(st.sampled_from(_AGES)))
    return replace(table, refs={**table.refs, draw(st.sampled_from(free)): ref})


def _change_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not _references(table):
        return None
    name, ref = draw(st.sampled_from(sorted(_references(table).items())))
    age = draw(st.sampled_from([a for a in _AGES if a != ref.max_ref_age_ms]))
    return replace(table, refs={**table.refs, name: replace(ref, max_ref_age_ms=age)})


def _drop_reference(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if not _references(table):
        return None
    gone = draw(st.sampled_from(sorted(_references(table))))
    return replace(table, refs={n: r for n, r in table.refs.items() if n != gone})


EDITS: dict[str, Edit] = {
    "rename_column": _rename_column,
    "drop_column": _drop_column,
    "add_column": _add_column,
    "widen_type": _widen_type,
    "make_optional": _make_optional,
    "make_required": _make_required,
    "describe_column": _describe_column,
    "move_column": _move_column,
    "set_default": _set_default,
    "restore_column": _restore_column,
    "free_identifier": _free_identifier,
    "set_identifier": _set_identifier,
    "free_sort_order": _free_sort_order,
    "set_sort_order": _set_sort_order,
    "add_partition_field": _add_partition_field,
    "drop_partition_field": _drop_partition_field,
    "rename_partition_field": _rename_partition_field,
    "write_distribution": _write_distribution,
    "describe_table": _describe_table,
    "set_property": _set_property,
    "unset_property": _unset_property,
    "upgrade_format": _upgrade_format,
    "create_reference": _create_reference,
    "change_reference": _change_reference,
    "drop_reference": _drop_reference,
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
        return _drop_column(draw, table, ids)
    if kind in ("change_reference", "drop_reference"):
        return _create_reference(draw, table, ids)
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
