"""Columns that come, go, come back and change places."""

from __future__ import annotations

import pytest

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.change import Change, HazardKind, Reversibility, TablePair
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.widen_type import WidenType
from icemigrate.frozen import replace
from icemigrate.iceberg.types import Field, Primitive
from tests.support.column_edits import (
    COLUMN_KINDS,
    METRICS,
    combined,
    detected,
    edited,
    layout,
    one,
    rules,
    texts,
    with_rows,
)
from tests.support.small_tables import table, with_columns


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_no_kind_finds_itself_where_nothing_changed_or_a_table_is_missing(kind: type[Change]) -> None:
    base = table("id: required long 'doc', s: struct<a: int, b: list<int>>")
    assert list(kind.detect(TablePair(base, base))) == []
    assert list(kind.detect(TablePair(None, base))) == []
    assert list(kind.detect(TablePair(base, None))) == []


def test_add_last_first_and_between() -> None:
    base = table("a: int, b: int")
    wanted = with_columns(base, "x: int, a: int, y: string, z: long, b: int, w: date")
    changes = detected(AddColumn, base, wanted)
    assert [c.describe() for c in changes] == [
        "x int, first",
        "y string, after a",
        "z long, after y",
        "w date",
    ]
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t ADD COLUMNS (x INT FIRST, y STRING AFTER a, z BIGINT AFTER y, w DATE)"
    ]
    after = base
    for change in changes:
        after = change.apply(after)
    assert layout(after.schema) == "x:3 a:1 y:4 z:5 b:2 w:6"
    assert after.last_column_id == 6


def test_add_nested_gives_ids_level_by_level() -> None:
    base = table("id: int")
    wanted = with_columns(base, "id: int, s: struct<a: struct<u: int, v: int>, m: map<string, list<int>>>")
    change = one(AddColumn, base, wanted)
    after = change.apply(base)
    assert (
        layout(after.schema)
        == "id:1 s:2 s.a:3 s.a.u:5 s.a.v:6 s.m:4 s.m.key:7 s.m.value:8 s.m.value.element:9"
    )
    assert after.last_column_id == 9
    assert texts(change.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t ADD COLUMNS (s STRUCT<a: STRUCT<u: INT, v: INT>, m: MAP<STRING, ARRAY<INT>>>)"
    ]


def test_add_below_structs_lists_and_maps() -> None:
    base = table("s: struct<a: int>, l: list<struct<a: int>>, m: map<string, struct<a: int>>")
    wanted = with_columns(
        base,
        "s: struct<`b.c`: int, a: int>, l: list<struct<a: int, b: int 'it''s'>>,"
        " m: map<string, struct<a: int, b: int>>",
    )
    changes = detected(AddColumn, base, wanted)
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t ADD COLUMNS"
        " (s.`b.c` INT FIRST, l.element.b INT COMMENT 'it\\'s', m.value.b INT)"
    ]
    assert [c.subject for c in changes] == [
        ("columns", "s.`b.c`"),
        ("columns", "l.element.b"),
        ("columns", "m.value.b"),
    ]
    after = base
    for change in changes:
        after = change.apply(after)
    assert layout(after.schema) == (
        "s:1 s.b.c:10 s.a:4 l:2 l.element:5 l.element.a:6 l.element.b:11"
        " m:3 m.key:7 m.value:8 m.value.a:9 m.value.b:12"
    )


def test_add_what_spark_cannot_say_is_a_metadata_commit() -> None:
    base = table("id: int", format_version=3)
    wanted = with_columns(base, "id: int, t: timestamp_ns, n: int, m: int, u: uuid")
    changes = detected(AddColumn, base, wanted)
    assert texts(changes[0].statements(base, "lake")) == ["[add t timestamp_ns]"]
    # Nothing is said together with it, and what stands on either side of it is.
    assert list(AddColumn.combinable(iter(changes))) == []
    assert list(AddColumn.combinable(iter(changes[1:]))) == changes[1:3]


def test_add_required_without_default_is_incompatible() -> None:
    base = table("id: int")
    wanted = with_columns(base, "tag: required string, id: int")
    change = one(AddColumn, base, wanted)
    assert texts(change.statements(base, "lake")) == ["[add tag string, required, first]"]
    (hazard,) = change.hazards(base)
    assert (hazard.kind, hazard.scope) == (HazardKind.INCOMPATIBLE, "db.t.tag")
    assert change.scope() == "db.t.tag"


def test_add_required_with_a_default_is_harmless() -> None:
    base = table("id: int", format_version=3)
    wanted = edited(
        with_columns(base, "id: int, qty: required int"), "qty", initial_default=7, write_default=7
    )
    change = one(AddColumn, base, wanted)
    assert change.hazards(base) == ()
    assert texts(change.statements(base, "lake")) == ["[add qty int, required, default 7]"]
    assert change.apply(base).schema.fields[1] == Field(2, "qty", Primitive("int"), True, None, 7, 7)


def test_add_is_reversible() -> None:
    base = with_rows(table("id: int"))
    change = one(AddColumn, base, with_columns(base, "id: int, a: int"))
    assert change.reversal(base).answer is Reversibility.YES
    assert change.hazards(base) == ()
    assert rules(change, base) == []


def test_add_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: int>, int>")
    wanted = with_columns(base, "m: map<struct<a: int, b: int>, int>")
    change = one(AddColumn, base, wanted)
    assert rules(change, base) == ["map-key"]


def test_new_fields_do_not_move_others_when_kept_ones_move() -> None:
    base = table("a: int, b: int, c: int")
    wanted = with_columns(base, "c: int, n: int, a: int, b: int")
    (add,) = detected(AddColumn, base, wanted)
    (move,) = detected(MoveColumn, base, wanted)
    after = move.apply(add.apply(base))
    assert [f.name for f in after.schema.fields] == ["c", "n", "a", "b"]
    assert move.describe() == "c, moved first"


def test_drop_takes_what_is_below_and_its_own_properties() -> None:
    base = table(
        "id: int, s: struct<a: int, b: struct<c: int>>",
        properties={METRICS + "s": "full", METRICS + "s.a": "full"},
    )
    change = one(DropColumn, base, with_columns(base, "id: int"))
    assert change.path == ("s",)
    assert change.subject == ("drop_columns", "s")
    assert change.describe() == "s struct<a: int, b: struct<c: int>>"
    after = change.apply(base)
    assert layout(after.schema) == "id:1"
    assert after.properties == {METRICS + "s.a": "full"}
    assert after.last_column_id == base.last_column_id
    assert texts(change.statements(base, "lake")) == ["ALTER TABLE lake.db.t DROP COLUMN s"]


def test_drops_share_a_statement() -> None:
    base = table(
        "id: int, `a.b`: int, l: list<struct<x: int, y: int>>, m: map<string, struct<p: int, q: int>>"
    )
    wanted = with_columns(base, "id: int, l: list<struct<x: int>>, m: map<string, struct<q: int>>")
    changes = detected(DropColumn, base, wanted)
    assert combined(changes, base) == ["ALTER TABLE lake.db.t DROP COLUMNS (`a.b`, l.element.y, m.value.p)"]
    after = base
    for change in changes:
        after = change.apply(after)
    assert after == wanted


def test_drop_is_destructive_and_reversible_while_files_hold_it() -> None:
    """Rows may be written between the drop and its undoing, so an empty table is no other case."""
    base = table("id: int, a: int")
    change = one(DropColumn, base, with_columns(base, "id: int"))
    (hazard,) = change.hazards(base)
    assert (hazard.kind, hazard.scope) == (HazardKind.DESTRUCTIVE, "db.t.a")
    assert change.reversal(base).answer is Reversibility.WHILE
    assert change.reversal(with_rows(base)) == change.reversal(base)


def test_drop_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: int, b: int>, int>")
    change = one(DropColumn, base, with_columns(base, "m: map<struct<a: int>, int>"))
    assert rules(change, base) == ["map-key"]


def test_drop_and_add_of_one_name_is_a_new_field() -> None:
    base = table("id: int, a: int, b: int")
    wanted = replace(
        base,
        schema=replace(
            base.schema,
            fields=(base.schema.fields[0], Field(-1, "a", Primitive("string")), base.schema.fields[2]),
        ),
    )
    (drop,), (add,) = detected(DropColumn, base, wanted), detected(AddColumn, base, wanted)
    assert layout(add.apply(drop.apply(base)).schema) == "id:1 a:4 b:3"
    assert detected(WidenType, base, wanted) == []


def test_restore_brings_back_the_ids() -> None:
    whole = table("id: int, s: struct<a: int, b: int>, z: int")
    base = replace(with_columns(whole, "id: int, z: int"), last_column_id=9)
    change = one(RestoreColumn, base, whole)
    assert change.subject == ("restore_columns", "s")
    assert change.describe() == "s struct<a: int, b: int>, under its own field id 2, after id"
    after = change.apply(base)
    assert after.schema == whole.schema
    assert after.last_column_id == 9
    assert change.apply(replace(base, last_column_id=1)).last_column_id == 5
    assert texts(change.statements(base, "lake")) == [
        "[restore s struct<a: int, b: int>, under its own field id 2, after id]"
    ]
    assert change.reversal(base).answer is Reversibility.YES
    assert change.hazards(base) == ()
    assert change.scope() == "db.t.s"
    assert detected(AddColumn, base, whole) == []


def test_restore_below_a_struct_first_and_beside_a_new_field() -> None:
    whole = table("s: struct<a: int, b: int, c: int>")
    base = with_columns(whole, "s: struct<b: int>")
    wanted = with_columns(whole, "s: struct<n: int, a: int, b: int, c: int>")
    first, last = detected(RestoreColumn, base, wanted)
    assert (first.path, first.first, first.after) == (("s", "a"), True, None)
    assert (last.path, last.first, last.after) == (("s", "c"), False, None)
    after = last.apply(first.apply(base))
    (add,) = detected(AddColumn, after, wanted)
    assert layout(add.apply(after).schema) == "s:1 s.n:5 s.a:2 s.b:3 s.c:4"


def test_restore_of_a_required_field_is_incompatible() -> None:
    whole = table("id: int, a: required int")
    base = with_columns(whole, "id: int")
    (hazard,) = one(RestoreColumn, base, whole).hazards(base)
    assert (hazard.kind, hazard.scope) == (HazardKind.INCOMPATIBLE, "db.t.a")


def test_restore_below_a_map_key_is_refused() -> None:
    whole = table("m: map<struct<a: int, b: int>, int>")
    base = with_columns(whole, "m: map<struct<a: int>, int>")
    assert rules(one(RestoreColumn, base, whole), base) == ["map-key"]


@pytest.mark.parametrize(
    ("after", "moves"),
    [
        ("b a c d", 1),
        ("d a b c", 1),
        ("b c d a", 1),
        ("c b d a", 2),
        ("d c b a", 3),
        ("c d a b", 2),
    ],
)
def test_as_few_moves_as_possible(after: str, moves: int) -> None:
    base = table("a: int, b: int, c: int, d: int")
    wanted = with_columns(base, ", ".join(f"{name}: int" for name in after.split()))
    changes = detected(MoveColumn, base, wanted)
    assert len(changes) == moves
    moved = base
    for change in changes:
        moved = change.apply(moved)
    assert moved == wanted


def test_move_below_a_list() -> None:
    base = table("l: list<struct<a: int, `b b`: int, c: int>>")
    wanted = with_columns(base, "l: list<struct<c: int, a: int, `b b`: int>>")
    change = one(MoveColumn, base, wanted)
    assert texts(change.statements(base, "lake")) == ["ALTER TABLE lake.db.t ALTER COLUMN l.element.c FIRST"]
    assert change.subject == ("columns", "l.element.c", "first")
    back = one(MoveColumn, wanted, base)
    assert texts(back.statements(wanted, "lake")) == [
        "ALTER TABLE lake.db.t ALTER COLUMN l.element.c AFTER `b b`"
    ]
    assert back.subject == ("columns", "l.element.c", "after")
    assert back.describe() == "l.element.c, moved after b b"
    assert back.apply(change.apply(base)) == base
    assert change.reversal(base).answer is Reversibility.YES


def test_move_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: int, b: int>, int>")
    change = one(MoveColumn, base, with_columns(base, "m: map<struct<b: int, a: int>, int>"))
    assert rules(change, base) == ["map-key"]
