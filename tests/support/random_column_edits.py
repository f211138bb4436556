"""Random edits of columns and of the fields inside them."""

from __future__ import annotations

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.schema import schema_index, sibling_ids
from icemigrate.iceberg.schema_edits import edit_fields_of, fields_of, remove_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Decimal, Field, Primitive, Type, renumber_fields
from tests.support.evolution_strategies import fitting, keys
from tests.support.random_fields import Edit, Ids, choose, free_names, named, structs, touchable, with_field
from tests.support.random_rows import may_hold_null
from tests.support.random_tables import KEY, fields
from tests.support.table_strategies import DEFAULTS

_WIDER: dict[Type, Type] = {
    Primitive("int"): Primitive("long"),
    Primitive("float"): Primitive("double"),
    Decimal(9, 2): Decimal(12, 2),
    Decimal(20, 4): Decimal(38, 4),
}
_WIDER_SINCE_V3: dict[Type, Type] = {
    Primitive("unknown"): Primitive("string"),
}


def _rename_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    chosen = choose(draw, named(table))
    if chosen is None:
        return None
    parent = schema_index(table.schema)[chosen.id].parent
    others = [f for f in fields_of(table.schema, parent) if f.id not in (chosen.id, KEY)]
    if others and draw(st.booleans()):
        other = draw(st.sampled_from(others))
        table = with_field(table, replace(other, name=chosen.name))
        return with_field(table, replace(chosen, name=other.name))
    return with_field(table, replace(chosen, name=draw(st.sampled_from(free_names(table, parent)))))


def _drop_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    around = sibling_ids(table.schema)
    chosen = choose(draw, (e for e in named(table) if len(around[e.parent]) > 1))
    if chosen is None:
        return None
    return fitting(replace(table, schema=remove_by_id(table.schema, chosen.id)))


def _add_column(draw: st.DrawFn, table: Table, ids: Ids) -> Table | None:
    parent = draw(st.sampled_from(structs(table)))
    new = draw(fields(table.format_version))
    default = None
    if table.format_version >= 3 and isinstance(new.type, Primitive) and new.type.name in DEFAULTS:
        default = draw(st.none() | st.sampled_from(DEFAULTS[new.type.name]))
    # Rows that are there have nothing where a required column has no default, and then read as anything.
    required = new.required and (default is not None or table.snapshot is None)
    field = Field(
        next(ids),
        draw(st.sampled_from(free_names(table, parent))),
        renumber_fields(new.type, lambda: next(ids)),
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
    chosen = choose(draw, (e for e in touchable(table) if e.field.type in wider))
    # A default of the narrower type may be none of the wider one's.
    if chosen is None or chosen.write_default is not None or chosen.initial_default is not None:
        return None
    return with_field(table, replace(chosen, type=wider[chosen.type]))


def _make_optional(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    entries = list(touchable(table))
    chosen = choose(draw, (e for e in entries if e.field.required))
    if chosen is None:
        return None
    changed = with_field(table, replace(chosen, required=False))
    possible = frozenset(keys(changed))
    ids = table.schema.identifier_ids & possible
    return replace(changed, schema=replace(changed.schema, identifier_ids=ids))


def _make_required(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    unsaid = (e for e in touchable(table) if not e.field.required and not may_hold_null(e.field))
    chosen = choose(draw, (e for e in unsaid if e.field.id > 0))
    return None if chosen is None else with_field(table, replace(chosen, required=True))


def _describe_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    chosen = choose(draw, named(table))
    if chosen is None:
        return None
    doc = draw(st.sampled_from([d for d in (None, "Told", "It's\n`this`") if d != chosen.doc]))
    return with_field(table, replace(chosen, doc=doc))


def _move_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    around = sibling_ids(table.schema)
    movable = [p for p in structs(table) if len(around.get(p, ())) > 1]
    parent = draw(st.sampled_from(movable))
    order = draw(st.permutations(range(len(around[parent]))))
    if list(order) == sorted(order):
        order = [*order[1:], order[0]]
    schema = edit_fields_of(table.schema, parent, lambda found: tuple(found[i] for i in order))
    return replace(table, schema=schema)


def _set_default(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    if table.format_version < 3:
        return None
    chosen = choose(draw, (e for e in named(table) if getattr(e.field.type, "name", None) in DEFAULTS))
    if chosen is None or not isinstance(chosen.type, Primitive):
        return None
    values = [v for v in DEFAULTS[chosen.type.name] if v != chosen.write_default]
    return with_field(table, replace(chosen, write_default=draw(st.sampled_from(values))))


def _restore_column(draw: st.DrawFn, table: Table, _: Ids) -> Table | None:
    entries = schema_index(table.schema)
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
}
"""By the kind of change that each leads to; more may come of it."""
