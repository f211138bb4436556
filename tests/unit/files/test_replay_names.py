"""Renames, drops and restores: at once, by path, and every mistake with the right word."""

from __future__ import annotations

import pytest

from icemigrate.files.replay.replay_names import FieldPurge
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Primitive
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
)

BEFORE = state(
    """
    tables:
      - name: db.t
        columns:
          - {name: a, type: int}
          - {name: b, type: string}
          - {name: c, type: long}
          - name: s
            type: "struct<x: int, y: struct<z: int>>"
          - {name: l, type: "list<struct<p: int, q: int>>"}
    """
)


IDS = field_ids(BEFORE.tables[T])


def test_a_swap_works() -> None:
    t = table(entry("renames: {a: b, b: a}"), BEFORE)
    assert names(t) == ["b", "a", "c", "s", "l"]
    assert (column(t, "b").id, column(t, "a").id) == (IDS["a"], IDS["b"])


def test_a_rotation_works() -> None:
    t = table(entry("renames: {a: b, b: c, c: a}"), BEFORE)
    assert [column(t, n).id for n in "bca"] == [IDS[n] for n in "abc"]


def test_a_struct_and_a_field_inside_it_by_leaf_or_by_full_new_path() -> None:
    for right in ("w", "r.w"):
        t = table(entry(f"renames: {{s: r, s.x: {right}, s.y.z: v}}"), BEFORE)
        assert names(t, "r") == ["w", "y"]
        assert column(t, "r.w").id == IDS["s.x"]
        assert column(t, "r.y.v").id == IDS["s.y.z"]


def test_inside_a_list() -> None:
    t = table(entry("renames: {l.element.p: q, l.element.q: p}"), BEFORE)
    assert column(t, "l.element.q").id == IDS["l.element.p"]


def test_a_literal_dot_stands_in_backticks() -> None:
    t = table(entry("renames: {a: '`x.y`'}"), BEFORE)
    assert names(t)[0] == "x.y"


def test_onto_the_name_of_a_dropped_column() -> None:
    t = table(entry("renames: {a: b}\ndrop_columns: [b]"), BEFORE)
    assert names(t) == ["b", "c", "s", "l"]
    assert column(t, "b").id == IDS["a"]
    assert [(d.path, d.field.id, d.after) for d in t.dropped] == [(("b",), IDS["b"], IDS["a"])]


def test_names_outside_renames_are_new_ones() -> None:
    t = table(entry("renames: {s: r}\ndrop_columns: [r.x]\ncolumns: [{name: r.y, description: d}]"), BEFORE)
    assert names(t, "r") == ["y"]
    assert column(t, "r.y").doc == "d"
    assert dropped_paths(t) == [("r", "x")]


@pytest.mark.parametrize(
    ("text", "code", "line", "message", "hint"),
    [
        ("renames: {aa: z}", "unknown-column", 3, "no column `aa`", "did you mean `a`?"),
        ("renames: {s.xx: z}", "unknown-column", 3, "no column `s.xx`", "did you mean `s.x`?"),
        ("renames: {z: v}", "unknown-column", 3, "no column `z`", "did you mean `s.y.z`?"),
        (
            "renames: {old: a}",
            "unknown-column",
            3,
            "no column `old`",
            "first: `renames: {a: old}`; or was it",
        ),
        ("renames: {s.old: x}", "unknown-column", 3, "no column `s.old`", "first: `renames: {s.x: old}`; or"),
        ("renames: {a: b}", "name-in-use", 3, "that column already exists", "rename that column too"),
        ("renames: {a: a}", "rename-to-itself", 3, "its own name", None),
        ("renames: {a: z, b: '`z`'}", "duplicate-column", 3, "cannot both become `z`", None),
        ("renames: {a: z, '`a`': y}", "duplicate-column", 3, "renamed twice", None),
        ("renames: {l.element: e}", "rename-part", 3, "the format defines the names", None),
        ("renames: {s.x: c.x}", "rename-other-parent", 3, "cannot leave its struct", "write `x`"),
        ("renames: {a: s.a}", "rename-other-parent", 3, "cannot leave its struct", "`s.a`"),
        ("renames: {s: r, s.x: s.w}", "rename-other-parent", 3, "itself renamed to `r`", None),
        ("renames: {a..b: c}", "bad-name", 3, "empty name", None),
        ("drop_columns: [qual]", "unknown-column", 3, "no column `qual`", None),
        ("drop_columns: [s.xx]", "unknown-column", 3, "no column `s.xx`", "did you mean `s.x`?"),
        ("drop_columns: [l.element]", "drop-part", 3, "part of a list", "drop the whole column"),
        ("drop_columns: [s, s.x]", "dropped-twice", 3, "is part of `s`", "remove `s.x`"),
        ("drop_columns: [a, '`a`']", "duplicate-column", 3, "dropped twice", None),
        ("renames: {a: z}\ndrop_columns: [z]", "renamed-and-dropped", 4, "renamed from `a`", "drop `a`"),
        (
            "renames: {s.x: flat}\ncolumns: [{name: flat, type: int}]\ndrop_columns: [s]",
            "renamed-and-dropped",
            3,
            "`s.x` is renamed, but `s`, which contains it, is dropped",
            "`backfill: [{set: {flat: s.x}}]`",
        ),
        (
            "renames: {s: r, s.y.z: w}\ndrop_columns: [r.y]",
            "renamed-and-dropped",
            3,
            "`s.y.z` is renamed, but `s.y`, which contains it, is dropped",
            "declare a column `w`",
        ),
        (
            "renames: {l.element.p: r}\ndrop_columns: [l]",
            "renamed-and-dropped",
            3,
            "`l.element.p` is renamed, but `l`, which contains it, is dropped",
            "remove the rename of `l.element.p`",
        ),
        ("renames: {s: r, s.x: w}\ndrop_columns: [r.w]", "renamed-and-dropped", 4, "`s.x`", "drop `r.x`"),
        ("renames: {a: z}\ndrop_columns: [a]", "unknown-column", 4, "no column `a`", "write `z`"),
        ("restore_columns: [a]", "never-dropped", 3, "`a` is not dropped", "remove it"),
        ("restore_columns: [z]", "never-dropped", 3, "no migration dropped", "nothing was dropped"),
        ("restore_columns: ['a`']", "bad-name", 3, "backtick", None),
    ],
)
def test_mistakes(text: str, code: str, line: int, message: str, hint: str | None) -> None:
    found = mistake(entry(text), BEFORE)
    assert found.code == code, found
    assert message in found.message
    assert found.hint is None if hint is None else hint in (found.hint or "")
    assert found.place is not None
    assert found.place.line == line


DOTTED = state(
    """
    tables:
      - name: db.t
        columns:
          - {name: a, type: int}
          - {name: '`a.b`', type: int}
          - {name: s, type: "struct<`x.y`: int>"}
    """
)


@pytest.mark.parametrize(
    "text",
    [
        "renames: {a.b: c}",
        "drop_columns: [a.b]",
        "identifier: [a.b]",
        "partition_by: [a.b]",
        "sort_by: [a.b desc]",
        "columns: [{name: a.b, description: x}]",
        "columns: [{name: a, after: a.b}]",
        "retype: {a.b: {to: string, using: x}}",
        "backfill: [{set: {a.b: '1'}}]",
    ],
)
def test_a_name_with_a_dot_is_told_to_stand_in_backticks(text: str) -> None:
    assert (mistake(entry(text), DOTTED).hint or "").endswith("in backticks: `a.b`")


def test_a_field_with_a_dot_in_its_name_is_told_with_the_whole_path() -> None:
    assert (mistake(entry("drop_columns: [s.x.y]"), DOTTED).hint or "").endswith("backticks: s.`x.y`")


def test_all_mistakes_are_told_at_once() -> None:
    folded = replay_text(entry("renames: {aa: z, bb: y}\ndrop_columns: [cc]\nidentifier: [dd]"), BEFORE)
    assert [d.message.split("`")[1] for d in folded.diagnostics] == ["aa", "bb", "cc", "dd"]


CREATE = entry("columns: [{name: a, type: int}, {name: b, type: int}, {name: c, type: int}]")
NESTED = entry("""columns: [{name: s, type: "struct<x: int, y: struct<z: int>>"}, {name: e, type: int}]""")


def restored(text: str, *before: str) -> Table:
    return table(entry(text), state(*before))


def test_a_dropped_column_comes_back_where_it_was_and_as_it_was() -> None:
    t = restored("restore_columns: [b]", CREATE, entry("drop_columns: [b]"))
    assert t.schema == state(CREATE).tables[T].schema
    assert t.dropped == ()


def test_neighbours_come_back_in_their_old_order_one_by_one_or_together() -> None:
    drop = entry("drop_columns: [b, c]")
    assert names(restored("restore_columns: [c, b]", CREATE, drop)) == ["a", "b", "c"]
    assert names(restored("restore_columns: [b]", CREATE, drop, entry("restore_columns: [c]"))) == [
        "a",
        "b",
        "c",
    ]


def test_the_first_column_comes_back_first() -> None:
    assert names(restored("restore_columns: [a]", CREATE, entry("drop_columns: [a]"))) == ["a", "b", "c"]


def test_a_column_whose_neighbour_is_gone_for_good_comes_back_last() -> None:
    purged = state(CREATE, entry("drop_columns: [b]"))
    t = purged.tables[T]
    orphan = replace(t, dropped=(replace(t.dropped[0], after=99),))
    assert names(table(entry("restore_columns: [b]"), DeclaredState({T: orphan}))) == ["a", "c", "b"]


def test_the_last_drop_of_a_name_is_the_one_that_comes_back() -> None:
    again = entry("columns: [{name: b, type: string}]")
    t = restored(
        "restore_columns: [b]", CREATE, entry("drop_columns: [b]"), again, entry("drop_columns: [b]")
    )
    assert column(t, "b").type == Primitive("string")
    assert dropped_paths(t) == [("b",)]


def test_the_one_before_comes_back_when_the_one_that_is_there_is_dropped() -> None:
    again = entry("columns: [{name: b, type: string}]")
    t = restored("drop_columns: [b]\nrestore_columns: [b]", CREATE, entry("drop_columns: [b]"), again)
    assert column(t, "b").type == Primitive("int")
    assert [d.field.type for d in t.dropped] == [Primitive("string")]


def test_a_nested_field_comes_back_below_a_parent_that_was_renamed_since() -> None:
    before = (
        NESTED,
        entry("drop_columns: [s.y.z]\ncolumns: [{name: s.y.v, type: int}]"),
        entry("renames: {s: r}"),
    )
    assert names(restored("restore_columns: [r.y.z]", *before), "r.y") == ["z", "v"]


def test_a_struct_comes_back_with_what_was_dropped_from_it_before() -> None:
    before = (NESTED, entry("drop_columns: [s.x]"), entry("drop_columns: [s]"))
    t = restored("restore_columns: [s.x, s]", *before)
    assert names(t, "s") == ["x", "y"]
    assert t.schema == state(NESTED).tables[T].schema


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("restore_columns: [s.x]", "unknown-column", "`s` does not exist", "restore that first"),
        ("restore_columns: [t]", "never-dropped", "no migration dropped", "dropped are: `s`, `s.x`"),
        ("restore_columns: [s, '`s`']", "never-dropped", "`s` is not dropped", "{name: s, refill: true}"),
        (
            "renames: {e: s}\nrestore_columns: [s]",
            "name-in-use",
            "another column has that name",
            "rename or drop",
        ),
    ],
)
def test_what_cannot_come_back(text: str, code: str, message: str, hint: str | None) -> None:
    before = state(NESTED, entry("drop_columns: [s.x]"), entry("drop_columns: [s]"))
    found = mistake(entry(text), before)
    assert found.code == code, found
    assert message in found.message
    assert found.hint is None if hint is None else hint in (found.hint or "")


def test_a_purge_is_carried_with_the_id_of_what_is_to_be_erased() -> None:
    folded = replay_text(entry("drop_columns: [a, {name: s.x, purge: true}]"), BEFORE)
    assert folded.purges == {T: (FieldPurge(IDS["s.x"], ("s", "x")),)}
