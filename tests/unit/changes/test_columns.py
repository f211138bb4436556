"""Kinds of change of a column, each for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import pytest

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.base import Change, HazardKind, MetadataCommit, Pair, Reversible, Statement
from icemigrate.changes.describe_column import DescribeColumn
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.widen_type import WidenType
from icemigrate.model.schema import Schema
from icemigrate.model.table import Snapshot, Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, JsonValue, Primitive, Struct, map_fields
from tests.build import field_at, table, with_columns
from tests.columns import COLUMN_KINDS

K = TypeVar("K", bound=Change)
METRICS = "write.metadata.metrics.column."


def detected(kind: type[K], before: Table, after: Table) -> list[K]:
    """What a kind finds between two states."""
    found = list(kind.detect(Pair(before, after)))
    assert all(isinstance(change, kind) for change in found)
    return [change for change in found if isinstance(change, kind)]


def one(kind: type[K], before: Table, after: Table) -> K:
    """The one change of a kind."""
    (change,) = detected(kind, before, after)
    return change


def texts(statements: tuple[Statement, ...] | None) -> list[str]:
    """Statements as text, a metadata commit as its summary in brackets."""
    assert statements is not None
    return [f"[{s.summary}]" if isinstance(s, MetadataCommit) else s.text for s in statements]


def combined(changes: list[K], before: Table) -> list[str]:
    """The statements of neighbours."""
    return texts(type(changes[0]).combine(changes, before, "lake"))


def edited(base: Table, path: str, **values: object) -> Table:
    """The table with attributes of one field set."""
    target = field_at(base.schema, path).id

    def change(f: Field) -> Field:
        return replace(f, **values) if f.id == target else f  # type: ignore[arg-type]

    root = map_fields(base.schema.root, change)
    assert isinstance(root, Struct)
    return replace(base, schema=replace(base.schema, fields=root.fields))


def with_rows(base: Table) -> Table:
    """The table after a write."""
    return replace(base, snapshot=Snapshot(7, 0, 3))


def layout(schema: Schema) -> str:
    """Names, ids and types in order."""
    return " ".join(f"{'.'.join(path)}:{f.id}" for path, f in schema.walk())


def rules(change: Change, before: Table) -> list[str]:
    """Rules that forbid a change."""
    return [p.rule for p in change.problems(before)]


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_no_kind_finds_itself_where_nothing_changed_or_a_table_is_missing(kind: type[Change]) -> None:
    base = table("id: required long 'doc', s: struct<a: int, b: list<int>>")
    assert list(kind.detect(Pair(base, base))) == []
    assert list(kind.detect(Pair(None, base))) == []
    assert list(kind.detect(Pair(base, None))) == []


# --- add ------------------------------------------------------------------------------------------


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
    wanted = with_columns(base, "id: int, t: timestamp_ns, n: int")
    changes = detected(AddColumn, base, wanted)
    assert texts(changes[0].statements(base, "lake")) == ["[add t timestamp_ns]"]
    assert AddColumn.combine(changes, base, "lake") is None


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
    assert change.reversal(base).answer is Reversible.YES
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


# --- drop -----------------------------------------------------------------------------------------


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
    assert change.reversal(base).answer is Reversible.WHILE
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


# --- restore --------------------------------------------------------------------------------------


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
        "[bring back s struct<a: int, b: int>, under its own field id 2, after id]"
    ]
    assert change.reversal(base).answer is Reversible.YES
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


# --- rename ---------------------------------------------------------------------------------------


def renames(base: Table, columns: str, renamed: Mapping[str, str]) -> list[RenameColumn]:
    """The renames that lead to other columns; ``renamed`` is new: old."""
    return detected(RenameColumn, base, with_columns(base, columns, renamed))


def test_rename_by_itself() -> None:
    base = table("id: int, volume: int", properties={METRICS + "volume": "full"})
    (change,) = renames(base, "id: int, `the quantity`: int", {"`the quantity`": "volume"})
    assert change.describe() == "volume → `the quantity`"
    assert change.subject == ("renames", "volume")
    after = change.apply(base)
    assert layout(after.schema) == "id:1 the quantity:2"
    assert after.properties == {METRICS + "the quantity": "full"}
    assert texts(change.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t RENAME COLUMN volume TO `the quantity`"
    ]
    assert change.reversal(with_rows(base)).answer is Reversible.YES
    assert rules(change, base) == []


def test_renames_run_from_the_deepest_up() -> None:
    base = table("s: struct<a: int>, l: list<struct<x: int>>")
    changes = renames(
        base,
        "t: struct<b: int>, k: list<struct<y: int>>",
        {"t": "s", "t.b": "s.a", "k": "l", "k.element.y": "l.element.x"},
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN l.element.x TO y",
        "ALTER TABLE lake.db.t RENAME COLUMN s.a TO b",
        "ALTER TABLE lake.db.t RENAME COLUMN s TO t",
        "ALTER TABLE lake.db.t RENAME COLUMN l TO k",
    ]


def test_a_change_of_case_goes_over_a_third_name() -> None:
    base = table("id: int, note: int")
    (change,) = renames(base, "id: int, Note: int", {"Note": "note"})
    assert texts(change.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t RENAME COLUMN note TO __icemigrate_2",
        "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_2 TO Note",
    ]
    assert layout(change.apply(base).schema) == "id:1 Note:2"


def test_a_chain_is_ordered() -> None:
    base = table("a: int, b: int")
    changes = renames(base, "B: int, c: int", {"B": "a", "c": "b"})
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN b TO c",
        "ALTER TABLE lake.db.t RENAME COLUMN a TO B",
    ]


def test_a_swap_and_a_rotation() -> None:
    base = table("s: struct<a: int, b: int>, x: int, y: int, z: int")
    changes = renames(
        base,
        "s: struct<b: int, a: int>, y: int, z: int, x: int",
        {"s.b": "s.a", "s.a": "s.b", "y": "x", "z": "y", "x": "z"},
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN s.a TO __icemigrate_5",
        "ALTER TABLE lake.db.t RENAME COLUMN s.b TO a",
        "ALTER TABLE lake.db.t RENAME COLUMN s.__icemigrate_5 TO b",
        "ALTER TABLE lake.db.t RENAME COLUMN x TO __icemigrate_2",
        "ALTER TABLE lake.db.t RENAME COLUMN z TO x",
        "ALTER TABLE lake.db.t RENAME COLUMN y TO z",
        "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_2 TO y",
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {"a": "1", "b": "2", "c": "3"},
        {"a": "1"},
        {"b": "2"},
        {"c": "3"},
        {"a": "1", "c": "3"},
        {"b": "2", "c": "3"},
    ],
)
def test_properties_follow_through_a_rotation(properties: Mapping[str, str]) -> None:
    base = table("a: int, b: int, c: int", properties={METRICS + k: v for k, v in properties.items()})
    after = base
    for change in renames(base, "b: int, c: int, a: int", {"b": "a", "c": "b", "a": "c"}):
        after = change.apply(after)
    assert layout(after.schema) == "b:1 c:2 a:3"
    new = {"a": "b", "b": "c", "c": "a"}
    assert after.properties == {METRICS + new[k]: v for k, v in properties.items()}


def test_identifiers_in_structs_step_aside() -> None:
    base = table(
        "id: required long, place: required struct<lat: required long, lng: required long>",
        identifier="id, place.lat",
    )
    inner = renames(
        base,
        "id: required long, place: required struct<latitude: required long, lng: required long>",
        {"place.latitude": "place.lat"},
    )
    assert combined(inner, base) == [
        "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS place.lat",
        "ALTER TABLE lake.db.t RENAME COLUMN place.lat TO latitude",
        "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id, place.latitude",
    ]
    outer = renames(
        base,
        "key: required long, spot: required struct<lat: required long, lng: required long>",
        {"spot": "place", "key": "id"},
    )
    assert combined(outer, base) == [
        "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS place.lat",
        "ALTER TABLE lake.db.t RENAME COLUMN id TO key",
        "ALTER TABLE lake.db.t RENAME COLUMN place TO spot",
        "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS key, spot.lat",
    ]
    assert inner[0].apply(base).schema.identifier_ids == base.schema.identifier_ids


def test_other_renames_leave_identifiers_alone() -> None:
    base = table("id: required long, s: required struct<a: required int, b: int>", identifier="id, s.a")
    changes = renames(
        base, "key: required long, s: required struct<a: required int, c: int>", {"key": "id", "s.c": "s.b"}
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN s.b TO c",
        "ALTER TABLE lake.db.t RENAME COLUMN id TO key",
    ]


def test_a_rename_onto_a_name_in_use_ends() -> None:
    """The rules about the resulting table refuse it; here it must only come to an end."""
    base = table("a: int, b: int")
    after = edited(base, "a", name="b")
    (change,) = detected(RenameColumn, base, after)
    assert (
        texts(change.statements(base, "lake"))[-1]
        == "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_1 TO b"
    )


def test_rename_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: struct<b: int>>, int>")
    (change,) = renames(base, "m: map<struct<a: struct<c: int>>, int>", {"m.key.a.c": "m.key.a.b"})
    assert rules(change, base) == ["map-key"]


# --- move -----------------------------------------------------------------------------------------


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
    assert change.reversal(base).answer is Reversible.YES


def test_move_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: int, b: int>, int>")
    change = one(MoveColumn, base, with_columns(base, "m: map<struct<b: int, a: int>, int>"))
    assert rules(change, base) == ["map-key"]


# --- widen ----------------------------------------------------------------------------------------


def retyped(before: str, after: str, version: int = 2, partition: str = "") -> tuple[WidenType, Table]:
    base = table(f"id: long, c: {before}", format_version=version, partition=partition)
    wanted = with_columns(base, f"id: long, c: {after}")
    change = one(WidenType, base, wanted)
    for kind in COLUMN_KINDS:
        if kind is not WidenType:
            assert list(kind.detect(Pair(base, wanted))) == []
    assert change.apply(base).schema.fields == wanted.schema.fields
    return change, base


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("int", "long", "BIGINT"),
        ("float", "double", "DOUBLE"),
        ("decimal(9,2)", "decimal(18,2)", "DECIMAL(18, 2)"),
    ],
)
def test_promotions_that_spark_can_say(before: str, after: str, text: str) -> None:
    change, base = retyped(before, after, 1, "truncate[4](c)" if before != "float" else "")
    assert texts(change.statements(base, "lake")) == [f"ALTER TABLE lake.db.t ALTER COLUMN c TYPE {text}"]
    assert rules(change, base) == []
    assert change.hazards(base) == ()
    reversal = change.reversal(with_rows(base))
    assert reversal.answer is Reversible.WHILE
    assert ("value" in reversal.reason) is before.startswith("decimal")


def test_widen_says_itself() -> None:
    change, _ = retyped("int", "long")
    assert change.describe() == "c int → long"
    assert change.subject == ("columns", "c", "type")
    assert change.scope() == "db.t.c"


@pytest.mark.parametrize(
    ("before", "after"),
    [("date", "timestamp"), ("date", "timestamp_ns"), ("unknown", "string"), ("unknown", "int")],
)
def test_promotions_of_version_3_are_metadata_commits(before: str, after: str) -> None:
    change, base = retyped(before, after, 3)
    assert texts(change.statements(base, "lake")) == [f"[widen c {before} → {after}]"]
    assert rules(change, base) == []


def test_date_to_timestamp_needs_version_3() -> None:
    change, base = retyped("date", "timestamp", 2)
    (problem,) = change.problems(base)
    assert problem.rule == "promotion-needs-v3"
    assert problem.hint is not None
    assert "format_version: 3" in problem.hint


@pytest.mark.parametrize(
    ("transform", "refused"),
    [("year", False), ("month", False), ("day", False), ("bucket[4]", True), ("identity", True)],
)
def test_date_to_timestamp_under_a_partition(transform: str, refused: bool) -> None:
    change, base = retyped("date", "timestamp", 3, f"{transform}(c)")
    assert rules(change, base) == (["promotion-changes-partitions"] if refused else [])


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("long", "int", "drop_columns"),
        ("int", "string", "`int` may only become `long`"),
        ("decimal(9,2)", "decimal(12,3)", "same scale (2)"),
        ("decimal(18,6)", "decimal(12,6)", "same scale (6)"),
        ("date", "timestamptz", "`timestamp` or `timestamp_ns`"),
        ("string", "binary", "drop_columns"),
        ("int", "struct<a: int>", "drop_columns"),
        ("struct<a: int>", "int", "drop_columns"),
        ("list<int>", "map<string, int>", "drop_columns"),
        ("struct<a: int>", "list<struct<a: int>>", "drop_columns"),
        ("list<struct<a: int>>", "struct<a: int>", "drop_columns"),
    ],
)
def test_what_is_no_promotion(before: str, after: str, hint: str) -> None:
    change, base = retyped(before, after, 3)
    (problem,) = change.problems(base)
    assert problem.rule == "no-promotion"
    assert problem.hint is not None
    assert hint in problem.hint
    assert change.statements(base, "lake")


def test_types_below_structs_lists_and_maps() -> None:
    base = table("s: struct<x: float>, l: list<int>, m: map<int, float>")
    wanted = with_columns(base, "s: struct<x: double>, l: list<long>, m: map<int, double>")
    changes = detected(WidenType, base, wanted)
    assert [texts(c.statements(base, "lake"))[0].removeprefix("ALTER TABLE lake.db.t ") for c in changes] == [
        "ALTER COLUMN s.x TYPE DOUBLE",
        "ALTER COLUMN l.element TYPE BIGINT",
        "ALTER COLUMN m.value TYPE DOUBLE",
    ]
    after = base
    for change in changes:
        after = change.apply(after)
    assert after == wanted


def test_map_keys_do_not_widen() -> None:
    base = table("m: map<int, double>")
    assert rules(one(WidenType, base, with_columns(base, "m: map<long, double>")), base) == ["map-key"]


# --- nullability, description, default ------------------------------------------------------------


def test_make_optional() -> None:
    base = table("id: required int, l: list<required int>")
    wanted = with_columns(base, "id: int, l: list<int>")
    column, element = detected(MakeOptional, base, wanted)
    assert texts(column.statements(base, "lake")) == ["ALTER TABLE lake.db.t ALTER COLUMN id DROP NOT NULL"]
    assert texts(element.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t ALTER COLUMN l.element DROP NOT NULL"
    ]
    assert element.apply(column.apply(base)) == wanted
    assert column.describe() == "id required → optional"
    assert column.subject == ("columns", "id", "required")
    assert column.hazards(base) == ()
    assert rules(column, base) == []
    assert column.reversal(with_rows(base)).answer is Reversible.WHILE


def test_make_required() -> None:
    base = table("id: int")
    wanted = with_columns(base, "id: required int")
    change = one(MakeRequired, base, wanted)
    assert texts(change.statements(base, "lake")) == ["[make id required]"]
    assert change.apply(base) == wanted
    assert change.describe() == "id optional → required"
    assert change.subject == ("columns", "id", "required")
    (hazard,) = change.hazards(base)
    assert (hazard.kind, hazard.scope) == (HazardKind.INCOMPATIBLE, "db.t.id")
    assert change.reversal(base).answer is Reversible.YES
    assert rules(change, base) == []


def test_nullability_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: required int>, int>")
    wanted = with_columns(base, "m: map<struct<a: int>, int>")
    assert rules(one(MakeOptional, base, wanted), base) == ["map-key"]
    assert rules(one(MakeRequired, wanted, base), wanted) == ["map-key"]


def test_describe() -> None:
    base = table("id: int 'old', s: struct<a: int>")
    wanted = edited(edited(base, "id", doc=None), "s.a", doc="it's\nnew")
    cleared, said = detected(DescribeColumn, base, wanted)
    assert texts(cleared.statements(base, "lake")) == ["[take away the description of id]"]
    assert cleared.describe() == "id without description"
    assert texts(said.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t ALTER COLUMN s.a COMMENT 'it\\'s\\nnew'"
    ]
    assert said.describe() == 's.a described as "it\'s new"'
    assert said.subject == ("columns", "s.a", "description")
    assert said.apply(cleared.apply(base)) == wanted
    assert said.reversal(base).answer is Reversible.YES
    assert rules(said, base) == []


def test_a_long_description_is_cut_in_the_plan_only() -> None:
    base = table("id: int")
    change = one(DescribeColumn, base, edited(base, "id", doc="word " * 40))
    assert len(change.describe()) < 90
    assert change.describe().endswith('…"')
    assert change.apply(base).schema.fields[0].doc == "word " * 40


@pytest.mark.parametrize("path", ["l.element", "m.key", "m.value"])
def test_parts_of_lists_and_maps_have_no_description(path: str) -> None:
    base = table("l: list<int>, m: map<string, int>")
    change = one(DescribeColumn, base, edited(base, path, doc="x"))
    (problem,) = change.problems(base)
    assert problem.rule == "nowhere-to-describe"
    assert path.split(".")[1] in problem.message


def test_describing_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: int>, int>")
    assert rules(one(DescribeColumn, base, edited(base, "m.key.a", doc="x")), base) == ["map-key"]


@pytest.mark.parametrize(("value", "text"), [(8, "8"), ("x", '"x"'), (None, "none"), (True, "true")])
def test_set_default(value: JsonValue, text: str) -> None:
    base = edited(table("a: int", format_version=3), "a", initial_default=7, write_default=7)
    wanted = edited(base, "a", write_default=value)
    change = one(SetDefault, base, wanted)
    assert change.describe() == f"a default {text}"
    assert change.subject == ("columns", "a", "default")
    assert texts(change.statements(base, "lake")) == [f"[set a default {text}]"]
    assert change.apply(base) == wanted
    assert change.reversal(base).answer is Reversible.YES
    assert rules(change, base) == []


def test_an_initial_default_never_changes() -> None:
    base = edited(table("a: int", format_version=3), "a", initial_default=7, write_default=7)
    change = one(SetDefault, base, edited(base, "a", initial_default=1))
    (problem,) = change.problems(base)
    assert problem.rule == "initial-default-is-final"
    assert "7" in problem.message


def test_types_of_the_tables_in_this_file_read_as_written() -> None:
    """The builder's text form is what the assertions above compare with."""
    assert format_type(table("a: list<required int>").schema.fields[0].type) == "list<required int>"
