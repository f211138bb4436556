"""Kinds of change of a column, together: folding what they find gives what was wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from icemigrate.changes.positions import longest_rising
from icemigrate.diff import difference, unproved
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.types import (
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    children,
    is_nested,
    renumber,
)
from tests.build import NAME, table
from tests.columns import COLUMN_KINDS

_LEAVES: tuple[Type, ...] = (
    Primitive("int"),
    Primitive("float"),
    Primitive("string"),
    Decimal(9, 2),
)
_WIDER: dict[Type, Type] = {
    Primitive("int"): Primitive("long"),
    Primitive("float"): Primitive("double"),
    Decimal(9, 2): Decimal(12, 2),
}
_NAMES = ("a", "b", "c", "d", "e e", "f.f")


@dataclass
class _Ids:
    """New fields count down, as in a declaration."""

    new: count[int]


@st.composite
def types(draw: st.DrawFn, depth: int) -> Type:
    """A type without ids."""
    kind = draw(st.sampled_from(["leaf", "leaf", "struct", "list", "map"])) if depth else "leaf"
    if kind == "struct":
        return draw(structs(depth - 1))
    if kind == "list":
        return List(Field(0, "element", draw(types(depth - 1)), draw(st.booleans())))
    if kind == "map":
        value = Field(0, "value", draw(types(depth - 1)), draw(st.booleans()))
        return Map(Field(0, "key", Primitive("string"), True), value)
    return draw(st.sampled_from(_LEAVES))


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> Struct:
    """A struct without ids."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True))
    return Struct(tuple(Field(0, n, draw(types(depth)), draw(st.booleans())) for n in names))


@st.composite
def edits(draw: st.DrawFn, type_: Type, ids: _Ids) -> Type:
    """What a legal migration could make of a type."""
    if isinstance(type_, Struct):
        return draw(_edited_struct(type_, ids))
    if isinstance(type_, List):
        return List(draw(_edited_field(type_.element, ids, type_.element.name)))
    if isinstance(type_, Map):
        return Map(type_.key, draw(_edited_field(type_.value, ids, type_.value.name)))
    return draw(st.sampled_from([type_, _WIDER.get(type_, type_)]))


@st.composite
def _edited_struct(draw: st.DrawFn, struct: Struct, ids: _Ids) -> Struct:
    kept = [f for f in struct.fields if draw(st.integers(0, 4))] or [struct.fields[0]]
    new = draw(st.integers(0, 2))
    names = draw(st.permutations(_NAMES)) if draw(st.booleans()) else [f.name for f in kept]
    names = [*names, *(f"n{i}" for i in range(new))]
    fields = [draw(_edited_field(f, ids, name)) for f, name in zip(kept, names, strict=False)]
    for i in range(new):
        fields.append(Field(next(ids.new), f"n{i}", _numbered(draw(types(1)), ids), draw(st.booleans())))
    return Struct(tuple(draw(st.permutations(fields))) if draw(st.booleans()) else tuple(fields))


@st.composite
def _edited_field(draw: st.DrawFn, field: Field, ids: _Ids, name: str) -> Field:
    doc = draw(st.sampled_from([field.doc, "said"])) if name not in ("element", "value") else None
    required = draw(st.sampled_from([field.required, not field.required]))
    return replace(field, name=name, type=draw(edits(field.type, ids)), required=required, doc=doc)


def _numbered(type_: Type, ids: _Ids) -> Type:
    return renumber(type_, lambda: next(ids.new))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Table, Table]:
    """A table, and what a migration could want of it."""
    numbers = count(1)
    root = renumber(draw(structs()), lambda: next(numbers))
    assert isinstance(root, Struct)
    blank = table("x: int")
    before = replace(
        blank, schema=replace(blank.schema, fields=root.fields), last_column_id=next(numbers) - 1
    )
    target = draw(edits(root, _Ids(count(-1, -1))))
    assert isinstance(target, Struct)
    return before, replace(before, schema=replace(before.schema, fields=target.fields))


@given(pairs())
def test_the_changes_that_are_found_lead_to_what_was_wanted(pair: tuple[Table, Table]) -> None:
    before, target = pair
    outcome = difference(before, target, COLUMN_KINDS)
    assert unproved(outcome, COLUMN_KINDS) == ()
    new = index(outcome.after.schema)
    assert all(i > 0 for i in new)
    assert len(new) == len(list(outcome.after.schema.walk())), "an id was given twice"
    for field_id, entry in index(target.schema).items():
        if field_id > 0:
            assert new[field_id].field.name == entry.field.name
    assert outcome.after.last_column_id == max([before.last_column_id, *new])


@given(pairs())
def test_every_found_change_can_say_how_it_is_done(pair: tuple[Table, Table]) -> None:
    before, target = pair
    for found in difference(before, target, COLUMN_KINDS).found:
        assert found.change.statements(found.before, "lake")
        assert found.change.describe()
        assert found.change.subject
        assert found.change.table == NAME
        assert [p.rule for p in found.change.problems(found.before)] == []


@given(st.permutations(range(9)))
def test_the_longest_rising_part(ranks: list[int]) -> None:
    found = longest_rising(list(range(9)), ranks)
    in_order = [ranks[i] for i in sorted(found)]
    assert in_order == sorted(in_order)
    best = [1] * 9
    for i in range(9):
        best[i] += max((best[j] for j in range(i) if ranks[j] < ranks[i]), default=0)
    assert len(found) == max(best)


def test_nothing_rises_in_nothing() -> None:
    assert longest_rising([], []) == set()


def test_children_of_every_nested_kind_are_numbered() -> None:
    """The generator above must not leave a field out, or the tests above would say little."""
    type_ = _numbered(
        List(Field(0, "element", Struct((Field(0, "a", Primitive("int")),)))), _Ids(count(-1, -1))
    )
    assert is_nested(type_)
    assert [f.id for f in children(type_)] == [-1]
    assert [f.id for f in children(children(type_)[0].type)] == [-2]
