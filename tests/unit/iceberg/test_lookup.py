"""A lookup that refers to another struct's dictionaries answers as one with dictionaries of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg import lookup, schema
from icemigrate.iceberg.lookup import FieldLookup, nfc_form, shared_ends, unchanged_name
from icemigrate.iceberg.schema import Schema, SchemaIndex, differing_fields, schema_index
from icemigrate.iceberg.types import Field, List, Primitive, Struct, is_nested

LONG = Primitive("long")


def field(number: int, name: str | None = None) -> Field:
    """A column; every seventh is a struct, every eleventh a list."""
    name = name or f"c{number}"
    if number % 7 == 0:
        return Field(number, name, Struct((Field(1000 + number, "a.b", LONG),)))
    if number % 11 == 0:
        return Field(number, name, List(Field(1000 + number, "element", LONG)))
    return Field(number, name, LONG)


WIDE = tuple(field(number) for number in range(1, 101))
KINDS = st.sampled_from(["add", "drop", "move", "rename", "new"])
EDITS = st.lists(st.tuples(KINDS, st.integers(0, 99), st.integers(0, 99)), max_size=12)


def edited(edits: list[tuple[str, int, int]]) -> tuple[Field, ...]:
    fields = list(WIDE)
    for number, (kind, at, to) in enumerate(edits):
        at, to = at % len(fields), to % len(fields)
        if kind == "add":
            fields.insert(at, field(200 + number))
        elif kind == "new":
            fields.append(Field(-1 - number, f"n{number}", LONG))
        elif kind == "drop":
            del fields[at]
        elif kind == "move":
            fields.insert(to, fields.pop(at))
        else:
            old = fields[at]
            fields[at] = Field(old.id, f"R{number}.x", old.type)
    return tuple(fields)


@given(EDITS)
def test_everything_is_found_as_in_dictionaries_of_its_own(edits: list[tuple[str, int, int]]) -> None:
    fields = edited(edits)
    FieldLookup(WIDE)
    lookup = FieldLookup(fields)
    for at, one in enumerate(fields):
        assert lookup.position(one.id) == at
        assert lookup.position_of_name(one.name) == at
        for below in one.type.fields if isinstance(one.type, Struct) else ():
            assert lookup.owner(below.id) is one
    there = {one.id for one in fields}
    for gone in (one for one in WIDE if one.id not in there):
        assert lookup.position(gone.id) is None
        assert lookup.owner(1000 + gone.id) is None
    assert [f.id for f in lookup.unnumbered()] == [f.id for f in fields if f.id < 0]
    assert lookup.lowest() == min(0, *(f.id for f in fields))
    assert lookup.is_dotted() == any("." in f.name or isinstance(f.type, Struct) for f in fields)
    assert lookup.are_distinct(unchanged_name) == (len({f.name for f in fields}) == len(fields))
    assert lookup.are_distinct(nfc_form)


@given(EDITS, st.integers(0, 99))
def test_a_clash_of_names_is_found(edits: list[tuple[str, int, int]], at: int) -> None:
    fields = edited(edits)
    one = fields[at % len(fields)]
    FieldLookup(WIDE)
    clashing = (*fields, Field(500, one.name.upper() if one.name.islower() else one.name.lower(), LONG))
    assert FieldLookup(clashing).are_distinct(str.lower) is False


@given(EDITS, EDITS)
def test_what_is_apart_is_what_is_not_the_same(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
) -> None:
    one, other = edited(first), edited(second)
    start, end = shared_ends(other, one)
    assert one[:start] == other[:start]
    assert one[len(one) - end :] == other[len(other) - end :]
    twins = {f.id: f for f in other}
    expected = [f.id for f in one if twins.get(f.id) != f]
    found = [i for i, entry in differing_fields(Schema(one), Schema(other)) if entry.parent is None]
    assert [i for i in found if twins.get(i) != schema_index(Schema(one))[i].field] == expected


def test_an_index_of_a_wide_schema_has_every_field_with_its_path() -> None:
    schema = Schema(WIDE)
    assert [entry.path for entry in schema_index(schema).values()] == [path for path, _ in schema.walk()]
    nested = next(f for f in WIDE if is_nested(f.type))
    assert schema.path_of(1000 + nested.id) == (nested.name, "a.b")
    assert schema.find((nested.name, "a.b")) is not None


def test_only_nested_new_fields_are_searched_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Field(-3, "inner", LONG)
    plain = [Field(-n, f"c{n}", LONG) for n in range(10, 20)]
    index = SchemaIndex((*plain, Field(-2, "s", Struct((inner,)))))
    looked_up = list[tuple[Field, ...]]()

    def lookup(fields: tuple[Field, ...]) -> FieldLookup:
        looked_up.append(fields)
        return FieldLookup(fields)

    monkeypatch.setattr(schema, "FieldLookup", lookup)
    assert [i for i, _ in index.new()] == [*(f.id for f in plain), -2, -3]
    assert looked_up == [(inner,)]


def test_the_same_narrow_struct_gets_its_dictionaries_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_small_structs", {})
    narrow, equal = WIDE[:5], WIDE[:5]
    assert narrow is not equal
    first, again, other = FieldLookup(narrow), FieldLookup(narrow), FieldLookup(equal)
    assert [one.position_of_name(WIDE[4].name) for one in (first, again, other)] == [4, 4, 4]
    assert len(lookup._small_structs) == 2
    for number in range(1000):
        FieldLookup((field(number),))
    assert len(lookup._small_structs) < 100
