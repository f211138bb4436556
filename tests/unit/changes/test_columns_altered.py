"""Columns whose type, nullability, description or default changes."""

from __future__ import annotations

import pytest

from icemigrate.changes.change import HazardKind, Reversibility, TablePair
from icemigrate.changes.descriptions import DescribeColumn
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.widen_type import WidenType
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import Transform
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import JsonValue, Primitive
from tests.support.column_edits import (
    COLUMN_KINDS,
    detected,
    edited,
    one,
    rules,
    texts,
    with_rows,
)
from tests.support.small_tables import table, with_columns


def retyped(before: str, after: str, version: int = 2, partition: str = "") -> tuple[WidenType, Table]:
    base = table(f"id: long, c: {before}", format_version=version, partition=partition)
    wanted = with_columns(base, f"id: long, c: {after}")
    change = one(WidenType, base, wanted)
    for kind in COLUMN_KINDS:
        if kind is not WidenType:
            assert list(kind.detect(TablePair(base, wanted))) == []
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
    assert reversal.answer is Reversibility.WHILE
    assert "no file is added" in reversal.reason


def test_a_type_that_is_led_back_can_be_made_wider_again() -> None:
    narrowed, base = retyped("long", "int")
    reversal = narrowed.reversal(with_rows(base))
    assert reversal.answer is Reversibility.YES
    assert reversal.reason == "undoing makes it `long`, as which every file can be read"
    # Rows of dates are not read as timestamps, whatever the format allows.
    dates, base = retyped("timestamp", "date", 3)
    assert dates.reversal(with_rows(base)).answer is Reversibility.WHILE


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


def test_a_date_with_rows_becomes_no_timestamp_since_nobody_reads_it() -> None:
    change, base = retyped("date", "timestamp", 3)
    (problem,) = change.problems(with_rows(base))
    assert problem.rule == "promotion-not-read"
    assert problem.hint is not None
    assert "`retype: {c: {to: timestamp, using: cast(c as TIMESTAMP_NTZ)}}`" in problem.hint
    # An upgrade, which is for good, would not help.
    change, base = retyped("date", "timestamp", 2)
    (problem,) = change.problems(with_rows(base))
    assert problem.hint is not None
    assert problem.hint.startswith("write `retype:")
    # Spark has no such type, so its rows are nothing that it can fill.
    change, base = retyped("date", "timestamp_ns", 3)
    (problem,) = change.problems(with_rows(base))
    assert problem.hint is not None
    assert problem.hint.startswith("add a new column")
    other, _ = retyped("unknown", "timestamp", 3)
    assert rules(other, with_rows(base)) == []


@pytest.mark.parametrize(
    ("column", "path", "hint"),
    [
        (
            "s: struct<t: struct<d: date>>",
            "s.t.d",
            "write `retype: {s.t.d: {to: timestamp, using: cast(s.t.d as",
        ),
        ("s: struct<l: list<struct<d: date>>>", "s.l.element.d", "add a new column of type `timestamp`"),
    ],
)
def test_a_date_in_a_struct_is_retyped_and_one_in_a_list_is_not(column: str, path: str, hint: str) -> None:
    base = with_rows(table(column, format_version=3))
    names = tuple(path.split("."))
    field = base.schema.find(names)
    assert field is not None
    change = WidenType(base.name, field.id, names, Primitive("date"), Primitive("timestamp"))
    (problem,) = change.problems(base)
    assert problem.hint is not None
    assert problem.hint.startswith(hint)


def test_the_defaults_of_a_date_are_midnights_of_a_timestamp() -> None:
    base = edited(table("c: date", format_version=3), "c", initial_default="2026-01-01")
    base = edited(base, "c", write_default="2026-01-02")
    wanted = with_columns(base, "c: timestamp")
    wanted = edited(wanted, "c", initial_default="2026-01-01T00:00:00", write_default="2026-01-02T00:00:00")
    change = one(WidenType, base, wanted)
    assert change.apply(base) == wanted
    assert detected(SetDefault, base, wanted) == []
    other = edited(wanted, "c", write_default="2026-01-02T12:00:00")
    assert one(SetDefault, base, other).write_default == "2026-01-02T12:00:00"
    assert rules(one(SetDefault, base, other), change.apply(base)) == []


@pytest.mark.parametrize(
    ("transform", "rule"),
    [
        ("year", "promotion-keeps-transform"),
        ("month", "promotion-keeps-transform"),
        ("day", "promotion-keeps-transform"),
        ("bucket[4]", "promotion-changes-partitions"),
        ("identity", "promotion-changes-partitions"),
    ],
)
def test_date_to_timestamp_under_a_partition(transform: str, rule: str) -> None:
    change, base = retyped("date", "timestamp", 3, f"{transform}(c)")
    assert rules(change, base) == [rule]
    # With rows there is another way, which takes the partitions along.
    assert "promotion-keeps-transform" not in rules(change, with_rows(base))
    back, base = retyped("timestamp", "date", 3, f"{transform}(c)")
    assert ("promotion-keeps-transform" in rules(back, base)) is (rule == "promotion-keeps-transform")


def test_a_promotion_that_a_sort_order_keeps_from() -> None:
    base = table("c: date", format_version=3, sort="c")
    change = WidenType(base.name, 1, ("c",), Primitive("date"), Primitive("timestamp"))
    assert rules(change, base) == []
    (term,) = base.sort_order.fields
    order = replace(base.sort_order, fields=(replace(term, transform=Transform("day")),))
    assert rules(change, replace(base, sort_order=order)) == ["promotion-keeps-transform"]


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
    assert column.reversal(with_rows(base)).answer is Reversibility.WHILE


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
    assert change.reversal(base).answer is Reversibility.YES
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
    assert texts(cleared.statements(base, "lake")) == ["[remove the description of id]"]
    assert cleared.describe() == "id without description"
    assert texts(said.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t ALTER COLUMN s.a COMMENT 'it\\'s\\nnew'"
    ]
    assert said.describe() == 's.a described as "it\'s new"'
    assert said.subject == ("columns", "s.a", "description")
    assert said.apply(cleared.apply(base)) == wanted
    assert said.reversal(base).answer is Reversibility.YES
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
    assert change.reversal(base).answer is Reversibility.YES
    assert rules(change, base) == []


def test_an_initial_default_never_changes() -> None:
    base = edited(table("a: int", format_version=3), "a", initial_default=7, write_default=7)
    change = one(SetDefault, base, edited(base, "a", initial_default=1))
    (problem,) = change.problems(base)
    assert problem.rule == "initial-default-is-final"
    assert "7" in problem.message
