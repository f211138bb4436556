"""Columns merged by name, at every depth."""

from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState, FieldPosition
from icemigrate.iceberg.table import DroppedField
from icemigrate.iceberg.types import Decimal, Field, List, Map, Primitive, Struct
from tests.support.replayed_migrations import (
    T,
    column,
    dropped_paths,
    entry,
    field_ids,
    mistake,
    names,
    replay_text,
    state,
    table,
    wanted,
)

INT, LONG, STRING = Primitive("int"), Primitive("long"), Primitive("string")
CREATE = """
columns:
  - {name: id, type: int, required: true, description: The key}
  - {name: price, type: "decimal(9,2)"}
  - {name: s, type: "struct<x: required int 'across', y: int>"}
  - {name: l, type: "list<struct<p: int>>"}
  - {name: m, type: "map<string, int>"}
  - {name: z, type: string}
"""
BEFORE = state(entry(CREATE))
IDS = field_ids(BEFORE.tables[T])


def test_the_first_mention_creates_with_ids_of_its_own() -> None:
    t = table(entry(CREATE))
    assert all(f.id < 0 for _, f in t.schema.walk())
    assert len({f.id for _, f in t.schema.walk()}) == sum(1 for _ in t.schema.walk())
    assert column(t, "id").required
    assert not column(t, "z").required
    assert column(t, "s.x").doc == "across"
    assert column(t, "m.key").required
    assert t.format_version == 2


def test_only_what_is_said_changes() -> None:
    t = table(entry("columns: [{name: id, type: long}, {name: z, required: true}]"), BEFORE)
    assert column(t, "id").type == LONG
    assert column(t, "id").required
    assert column(t, "id").doc == "The key"
    assert column(t, "z").type == STRING
    assert column(t, "z").required
    assert field_ids(t) == IDS


def test_a_description_is_cleared_by_null() -> None:
    t = table(entry("columns: [{name: id, description: null}, {name: z, description: Last}]"), BEFORE)
    assert (column(t, "id").doc, column(t, "z").doc) == (None, "Last")


def test_a_new_column_is_optional_comes_last_and_gets_the_next_lower_id() -> None:
    t = table(entry("columns: [{name: n, type: int}, {name: o, type: int, required: true}]"), BEFORE)
    assert names(t)[-2:] == ["n", "o"]
    assert (column(t, "n").id, column(t, "o").id) == (-1, -2)
    assert (column(t, "n").required, column(t, "o").required) == (False, True)


def test_ids_that_a_dropped_column_holds_are_not_given_again() -> None:
    first = replay_text(entry("columns: [{name: n, type: int}]"), BEFORE).wanted[0].table
    assert first is not None
    gone = DroppedField(
        replace(column(first, "n"), type=Struct((replace(column(first, "n"), id=-7),))), None, ("n",)
    )
    t = table(entry("columns: [{name: k, type: int}]"), DeclaredState({T: replace(first, dropped=(gone,))}))
    assert column(t, "k").id == -8


@pytest.mark.parametrize(
    "text",
    [
        """columns: [{name: s, type: "struct<y: long, w: required string 'wide'>"}]""",
        "columns: [{name: s, fields: [{name: y, type: long}, "
        "{name: w, type: string, required: true, description: wide}]}]",
        "columns: [{name: s.y, type: long}, {name: s.w, type: string, required: true, description: wide}]",
    ],
)
def test_a_struct_merges_by_name_however_it_is_written(text: str) -> None:
    t = table(entry(text), BEFORE)
    assert names(t, "s") == ["x", "y", "w"]
    assert column(t, "s.y").type == LONG
    assert column(t, "s.x").required, "an unmarked or absent field keeps its nullability"
    assert column(t, "s.x").doc == "across"
    assert column(t, "s.w").required
    assert column(t, "s.w").doc == "wide"
    assert {k: v for k, v in field_ids(t).items() if v > 0} == IDS


def test_an_unmarked_nested_field_keeps_its_nullability_and_description() -> None:
    t = table(entry('columns: [{name: s, type: "struct<x: long>"}]'), BEFORE)
    assert column(t, "s.x") == Field(IDS["s.x"], "x", LONG, True, "across")


def test_a_nested_field_is_made_optional_in_yaml() -> None:
    t = table(entry("columns: [{name: s, fields: [{name: x, required: false, description: null}]}]"), BEFORE)
    assert not column(t, "s.x").required
    assert column(t, "s.x").doc is None


@pytest.mark.parametrize(
    "text",
    [
        'columns: [{name: l, type: "list<required struct<q: int>>"}]',
        "columns: [{name: l, element: {required: true, fields: [{name: q, type: int}]}}]",
        "columns: [{name: l.element, required: true}, {name: l.element.q, type: int}]",
    ],
)
def test_a_list_merges_its_element(text: str) -> None:
    t = table(entry(text), BEFORE)
    assert column(t, "l.element").required
    assert names(t, "l.element") == ["p", "q"]
    assert field_ids(t)["l.element"] == IDS["l.element"]


@pytest.mark.parametrize(
    "text",
    [
        'columns: [{name: m, type: "map<string, required long>"}]',
        "columns: [{name: m, value: {type: long, required: true}}]",
        "columns: [{name: m, key: string, value: {type: long, required: true}}]",
    ],
)
def test_a_map_merges_its_value(text: str) -> None:
    t = table(entry(text), BEFORE)
    assert column(t, "m.value").type == LONG
    assert column(t, "m.value").required
    assert field_ids(t) == IDS


def test_nested_types_in_yaml_for_new_columns() -> None:
    t = table(
        entry(
            """
            columns:
              - name: a
                element: {fields: [{name: b, key: string, value: "decimal(4,1)"}]}
              - {name: c, element: int}
            """
        )
    )
    assert column(t, "a.element.b.value").type == Decimal(4, 1)
    assert column(t, "a.element.b.key").required
    assert isinstance(column(t, "c").type, List)


def test_another_kind_of_type_takes_the_place_of_the_old_one_under_the_same_id() -> None:
    t = table(entry('columns: [{name: z, type: "map<int, int>"}, {name: s, type: int}]'), BEFORE)
    assert isinstance(column(t, "z").type, Map)
    assert column(t, "z").id == IDS["z"]
    assert column(t, "s").type == INT
    assert column(t, "z.key").id < 0


def test_a_column_that_is_dropped_and_given_is_made_anew() -> None:
    t = table(entry("drop_columns: [z]\ncolumns: [{name: z, type: int}]"), BEFORE)
    assert column(t, "z").id < 0
    assert dropped_paths(t) == [("z",)]


def test_a_nested_field_that_is_dropped_and_given_is_made_anew() -> None:
    t = table(entry('drop_columns: [s.y]\ncolumns: [{name: s, type: "struct<y: string>"}]'), BEFORE)
    assert column(t, "s.y").id < 0
    assert t.dropped[0].parent == IDS["s"]
    assert t.dropped[0].after == IDS["s.x"]


def test_defaults() -> None:
    t = table(entry("columns: [{name: n, type: int, default: 7}, {name: z, default: x}]"), BEFORE)
    assert (column(t, "n").initial_default, column(t, "n").write_default) == (7, 7)
    assert (column(t, "z").initial_default, column(t, "z").write_default) == (None, "x")


def test_a_default_is_taken_away_by_null_for_writers_only() -> None:
    before = state(entry("columns: [{name: n, type: int, default: 7}]"))
    t = table(entry("columns: [{name: n, default: null}]"), before)
    assert (column(t, "n").initial_default, column(t, "n").write_default) == (7, None)


def test_positions() -> None:
    found = wanted(entry("columns: [{name: z, first: true}, {name: n, type: int, after: id}]"), BEFORE)
    assert found.table is not None
    assert names(found.table) == ["z", "id", "n", "price", "s", "l", "m"]
    assert found.positions == (FieldPosition(IDS["z"], None), FieldPosition(-1, IDS["id"]))


def test_a_column_may_stand_behind_one_that_is_written_later() -> None:
    text = "columns: [{name: n, type: int, after: o}, {name: o, type: int, after: z}, {name: z, after: id}]"
    found = wanted(entry(text), BEFORE)
    assert found.table is not None
    assert names(found.table)[:4] == ["id", "z", "o", "n"]
    assert [p.field_id for p in found.positions] == [IDS["z"], -2, -1]


def test_positions_inside_structs() -> None:
    text = "columns: [{name: s, fields: [{name: y, first: true}, {name: n, type: int, after: s.y}]}]"
    found = wanted(entry(text), BEFORE)
    assert found.table is not None
    assert names(found.table, "s") == ["y", "n", "x"]
    assert found.positions == (FieldPosition(IDS["s.y"], None), FieldPosition(-1, IDS["s.y"]))


@pytest.mark.parametrize(
    ("text", "code", "column_at", "message", "hint"),
    [
        (
            "columns: [{name: pricee}]",
            "type-missing",
            22,
            "`pricee` is not declared yet",
            "did you mean `price`?",
        ),
        ("columns: [{name: q, description: d}]", "type-missing", 22, "needs a type", None),
        ("columns: [{name: s.xx}]", "type-missing", 22, "`s.xx`", "did you mean `s.x`?"),
        (
            "columns: [{name: z, type: strng}]",
            "bad-type",
            31,
            "unknown type `strng`",
            "did you mean `string`?",
        ),
        ("columns: [{name: n, type: 'list<strng>'}]", "bad-type", 31, "at character 6", "`string`"),
        ("columns: [{name: t.q, type: int}]", "unknown-column", 22, "inside `t`", "backticks"),
        ("columns: [{name: ss.x, type: int}]", "unknown-column", 22, "inside `ss`", "did you mean `s.x`?"),
        ("columns: [{name: z.x, type: int}]", "unknown-column", 22, "`z` is not a struct", None),
        ("columns: [{name: l.p, type: int}]", "unknown-column", 22, "a list has `element`", None),
        ("columns: [{name: m.v, type: int}]", "unknown-column", 22, "a map has `key` and `value`", None),
        ("columns: [{name: a..b, type: int}]", "bad-name", 22, "empty name", None),
        ("columns: [{name: n, element: {required: true}}]", "type-missing", 25, "`n.element`", None),
        ("columns: [{name: n, fields: [{name: x}]}]", "type-missing", 41, "`n.x`", "`s.x`"),
        ("columns: [{name: n, type: itn, default: 1}]", "bad-type", 31, "unknown type `itn`", "`int`"),
        ("renames: {q.r.k: t}", "unknown-column", 15, "no column `q.r.k`", None),
        ("columns: [{name: n, default: 1}]", "type-missing", 22, "`n`", None),
        ("columns: [{name: n, key: int}]", "type-missing", 22, "needs a `value`", None),
        ("columns: [{name: m, key: {required: false}}]", "key-required", 41, "always required", None),
        ("columns: [{name: id, default: x}]", "bad-default", 35, "`x` is not a value of type `int`", "`0`"),
        ("columns: [{name: s, default: {}}]", "bad-default", 25, "the only default of a column", None),
        ("columns: [{name: l.element, default: 1}]", "no-part-of-that", 42, "has no default", None),
        ("columns: [{name: l.element, description: d}]", "no-part-of-that", 46, "has no description", None),
        ("columns: [{name: l.element, first: true}]", "bad-position", 40, "cannot be moved", None),
        ("columns: [{name: z, after: idd}]", "unknown-column", 32, "no column `idd`", "did you mean `id`?"),
        ("columns: [{name: z, after: z}]", "bad-position", 32, "after itself", None),
        ("columns: [{name: z, after: s.x}]", "bad-position", 32, "not a sibling", None),
        ("columns: [{name: z, after: 'i`'}]", "bad-name", 32, "backtick", None),
        (
            "columns: [{name: z, first: true}, {name: m, first: true}]",
            "bad-position",
            56,
            "both be first",
            "`after: z`",
        ),
        (
            "columns: [{name: z, after: id}, {name: m, after: id}]",
            "bad-position",
            54,
            "directly after `id`",
            "after: z",
        ),
        ("columns: [{name: z, after: m}, {name: m, after: z}]", "bad-position", 32, "`z` → `m` → `z`", None),
        ("columns: [{name: z}, {name: '`z`'}]", "duplicate-column", 33, "declared twice", None),
        ("renames: {z: y}\ncolumns: [{name: z, required: true}]", "type-missing", 22, "`z`", "write `y`"),
    ],
)
def test_mistakes(text: str, code: str, column_at: int, message: str, hint: str | None) -> None:
    found = mistake(entry(text), BEFORE)
    assert found.code == code, found
    assert message in found.message
    assert found.hint is None if hint is None else hint in (found.hint or "")
    assert found.place is not None
    assert found.place.column == column_at
