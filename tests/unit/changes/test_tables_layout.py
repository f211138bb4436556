"""Partitioning, order, distribution and identifier: what is found, said and foretold."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.add_partition_field import AddPartitionField
from icemigrate.changes.change import Change, Reversibility, SqlStatement, TablePair
from icemigrate.frozen import replace
from icemigrate.iceberg.partition_evolution import drop_partition_field
from icemigrate.iceberg.partitioning import (
    DESC,
    NULLS_FIRST,
    NULLS_LAST,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    SortTerm,
    Transform,
)
from icemigrate.iceberg.table import DISTRIBUTION_PROPERTY, Table
from icemigrate.planning.table_difference import Difference, find_difference, remaining_differences
from tests.support.small_tables import field_at, ids, table, with_columns

COLUMNS = "id: required long, ts: timestamp, kind: string, d: date"


def parts(base: Table, *terms: tuple[str, str, str]) -> Table:
    """The table under a declared spec of (transform, source, name)."""
    fields = tuple(
        PartitionField((field_at(base.schema, source).id,), Transform.parse(transform), name, -1 - i)
        for i, (transform, source, name) in enumerate(terms)
    )
    return replace(base, spec=PartitionSpec(fields))


def ordered(base: Table, paths: str, mode: str | None = None, **rest: Any) -> Table:
    fields = tuple(SortField((i,), **rest) for i in ids(base.schema, paths))
    properties = {k: v for k, v in base.properties.items() if k != DISTRIBUTION_PROPERTY}
    properties |= {} if mode is None else {DISTRIBUTION_PROPERTY: mode}
    return replace(base, sort_order=SortOrder(fields, 1 if fields else 0), properties=properties)


def identified(base: Table, paths: str) -> Table:
    return replace(base, schema=replace(base.schema, identifier_ids=frozenset(ids(base.schema, paths))))


def proved(before: Table, after: Table) -> Difference:
    found = find_difference(before, after, CHANGE_KINDS)
    assert remaining_differences(found, CHANGE_KINDS) == ()
    return found


def said(before: Table, after: Table) -> list[str]:
    """The statements that lead from one state to the other, without `ALTER TABLE lake.db.t`."""
    out = []
    for f in proved(before, after).found:
        for statement in f.change.statements(f.before, "lake"):
            assert isinstance(statement, SqlStatement)
            out.append(statement.text.removeprefix("ALTER TABLE lake.db.t "))
    return out


def changes(before: Table, after: Table) -> list[Change]:
    return [f.change for f in proved(before, after).found]


# Partitioning


def test_fields_are_added_and_dropped() -> None:
    t = table(COLUMNS, partition="kind, day(d)")
    target = parts(t, ("bucket[4]", "id", "b"), ("day", "d", "d_day"))
    assert said(t, target) == ["DROP PARTITION FIELD kind", "ADD PARTITION FIELD bucket(4, id) AS b"]
    drop, add = changes(t, target)
    assert (drop.describe(), add.describe()) == (
        "stop partitioning by kind",
        "partition by bucket(4, id) as b",
    )
    assert {c.reversal(t).answer for c in (drop, add)} == {Reversibility.YES}
    assert {c.subject for c in (drop, add)} == {("partition_by",)}
    assert [f.name for f in proved(t, target).after.spec.fields] == ["d_day", "b"]


def test_order_alone_is_no_difference() -> None:
    t = table(COLUMNS, partition="kind, day(d)")
    assert changes(t, parts(t, ("day", "d", "d_day"), ("identity", "kind", "kind"))) == []


def test_a_field_replaces_another_one_of_its_source() -> None:
    t = table(COLUMNS, partition="day(ts)")
    target = parts(t, ("hour", "ts", "ts_hour"), ("identity", "kind", "kind"))
    assert said(t, target) == [
        "REPLACE PARTITION FIELD ts_day WITH hours(ts) AS ts_hour",
        "ADD PARTITION FIELD kind AS kind",
    ]
    assert changes(t, target)[0].describe() == "partition by hour(ts) as ts_hour instead of ts_day"


def test_a_replaced_field_does_not_wait_for_another_type_or_name() -> None:
    t = table(COLUMNS, partition="day(d), day(ts)", format_version=3)
    widened = with_columns(t, "id: required long, ts: timestamp, kind: string, d: timestamp")
    target = parts(widened, ("hour", "d", "d_hour"), ("day", "ts", "ts_day"))
    found = [type(c).__name__ for c in changes(t, target)]
    assert found == ["DropPartitionField", "WidenType", "AddPartitionField"]
    # The name of the one is wanted for the other, which only changes its name.
    target = parts(t, ("month", "d", "d_month"), ("day", "ts", "d_day"))
    assert said(t, target) == [
        "DROP PARTITION FIELD d_day",
        "REPLACE PARTITION FIELD ts_day WITH days(ts) AS d_day",
        "ADD PARTITION FIELD months(d) AS d_month",
    ]


def test_names_are_swapped_over_a_third_one() -> None:
    t = parts(table(COLUMNS), ("day", "d", "a"), ("day", "ts", "b"), ("identity", "kind", "a_"))
    t = replace(t, spec=PartitionSpec(tuple(replace(f, id=999 - f.id) for f in t.spec.fields)))
    target = parts(t, ("day", "d", "b"), ("day", "ts", "a"), ("identity", "kind", "kind"))
    assert said(t, target) == [
        "REPLACE PARTITION FIELD a_ WITH kind AS kind",
        "REPLACE PARTITION FIELD a WITH days(d) AS a__",
        "REPLACE PARTITION FIELD b WITH days(ts) AS a",
        "REPLACE PARTITION FIELD a__ WITH days(d) AS b",
    ]
    assert changes(t, target)[0].describe() == "rename partition field a_ to kind"
    assert [f.id for f in proved(t, target).after.spec.fields] == [f.id for f in t.spec.fields]


def test_a_column_hides_a_partition_field_of_its_name() -> None:
    t = parts(table("id: long, kind: string"), ("truncate[2]", "kind", "kind"))
    assert said(t, parts(t)) == ["DROP PARTITION FIELD truncate(2, kind)"]


def test_a_source_goes_and_another_comes() -> None:
    t = table("id: long, kind: string", partition="kind")
    target = with_columns(t, "id: long, at: timestamp")
    target = parts(target, ("day", "at", "at_day"))
    assert said(t, target) == [
        "DROP PARTITION FIELD kind",
        "DROP COLUMN kind",
        "ADD COLUMNS (at TIMESTAMP_NTZ)",
        "ADD PARTITION FIELD days(at) AS at_day",
    ]
    assert proved(t, target).after.spec.fields[0].source_ids == (3,)


def test_void_fields_are_no_fields() -> None:
    t = drop_partition_field(table(COLUMNS, partition="kind", format_version=1), "kind")
    assert changes(t, parts(t)) == []
    assert said(t, parts(t, ("identity", "kind", "kind"))) == ["ADD PARTITION FIELD kind AS kind"]


def test_a_partition_on_what_is_not_there_is_left_to_the_rules() -> None:
    t = table(COLUMNS)
    lost = PartitionField((99,), Transform("day"), "p", -1)
    assert list(AddPartitionField.detect(TablePair(t, replace(t, spec=PartitionSpec((lost,)))))) == []


# Order and distribution

ORDER = "ORDERED BY id"


@pytest.mark.parametrize(
    ("before", "after", "statements"),
    [
        (None, None, [f"WRITE LOCALLY {ORDER}"]),
        ("hash", "hash", [f"WRITE LOCALLY {ORDER}"]),
        (None, "range", [f"WRITE {ORDER}"]),
        ("none", "hash", [f"WRITE DISTRIBUTED BY PARTITION LOCALLY {ORDER}"]),
        (
            "hash",
            "none",
            [f"WRITE LOCALLY {ORDER}", f"SET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}' = 'none')"],
        ),
        ("hash", None, [f"WRITE LOCALLY {ORDER}", f"UNSET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}')"]),
    ],
)
def test_an_order_is_set(before: str | None, after: str | None, statements: list[str]) -> None:
    t = table(COLUMNS)
    assert said(ordered(t, "", before), ordered(t, "id", after)) == statements


@pytest.mark.parametrize(
    ("before", "after", "statements"),
    [
        ("none", "none", ["WRITE UNORDERED"]),
        ("range", "hash", ["WRITE DISTRIBUTED BY PARTITION"]),
        (None, None, ["WRITE UNORDERED", f"UNSET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}')"]),
        ("range", "range", ["WRITE UNORDERED", f"SET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}' = 'range')"]),
    ],
)
def test_an_order_is_taken_away(before: str | None, after: str | None, statements: list[str]) -> None:
    t = table(COLUMNS)
    assert said(ordered(t, "id", before), ordered(t, "", after)) == statements


@pytest.mark.parametrize(
    ("before", "after", "statement"),
    [
        (None, "hash", f"SET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}' = 'hash')"),
        ("hash", None, f"UNSET TBLPROPERTIES ('{DISTRIBUTION_PROPERTY}')"),
    ],
)
def test_a_distribution_alone(before: str | None, after: str | None, statement: str) -> None:
    t = table(COLUMNS)
    assert said(ordered(t, "id", before), ordered(t, "id", after)) == [statement]
    (change,) = changes(ordered(t, "id", before), ordered(t, "id", after))
    assert (change.subject, change.reversal(t).answer) == (("write_distribution",), Reversibility.YES)
    assert "distribution" in change.describe()


def test_orders_have_ids() -> None:
    t = table(COLUMNS)
    first = proved(t, ordered(t, "id")).after
    second = proved(first, ordered(first, "id", null_order=NULLS_LAST)).after
    assert (first.sort_order.id, second.sort_order.id) == (1, 2)
    assert proved(second, ordered(second, "id")).after.sort_order.id == 1
    unsorted = proved(second, ordered(second, "")).after
    assert (unsorted.sort_order.id, [o.id for o in unsorted.older_orders]) == (0, [1, 2])


def test_an_order_is_described() -> None:
    t = table(COLUMNS)
    (change,) = changes(t, ordered(t, "id, ts", direction=DESC))
    assert change.describe() == "sort by id desc nulls first, ts desc nulls first"
    assert change.reversal(t).answer is Reversibility.YES
    assert change.subject == ("sort_by",)
    assert str(SortTerm(("a", "b c"), Transform("bucket", 4), DESC, NULLS_LAST)) == "bucket(4, a.`b c`) desc"
    assert str(SortTerm(("a",), null_order=NULLS_FIRST)) == "a"
    (stop,) = changes(ordered(t, "id"), t)
    assert stop.describe() == "stop sorting"


def test_an_order_makes_way_for_a_drop_in_one_statement() -> None:
    t = ordered(table("id: long, at: timestamp"), "at, id")
    target = with_columns(t, "id: long")
    assert said(t, ordered(target, "id")) == ["WRITE LOCALLY ORDERED BY id", "DROP COLUMN at"]
    assert said(t, ordered(target, "", "none")) == ["WRITE UNORDERED", "DROP COLUMN at"]


def test_an_order_makes_way_in_two_where_the_new_one_needs_what_is_not_there() -> None:
    t = ordered(table("id: long, at: timestamp"), "at", "none")
    target = with_columns(t, "id: long, day: date")
    assert said(t, ordered(target, "day", "none")) == [
        "WRITE UNORDERED",
        "DROP COLUMN at",
        "ADD COLUMNS (day DATE)",
        "WRITE LOCALLY ORDERED BY day",
    ]


def test_an_order_that_still_uses_a_dropped_column_is_left_to_the_rules() -> None:
    t = ordered(table("id: long, at: timestamp"), "at")
    found = find_difference(t, with_columns(t, "id: long"), CHANGE_KINDS)
    assert [f.change.kind for f in found.found] == ["drop_column"]


# Identifier


def test_an_identifier_is_set_and_taken_away() -> None:
    t = table("id: required long, k: required string")
    assert said(t, identified(t, "id, k")) == ["SET IDENTIFIER FIELDS id, k"]
    assert said(identified(t, "id"), identified(t, "k")) == ["SET IDENTIFIER FIELDS k"]
    assert said(identified(t, "id, k"), t) == ["DROP IDENTIFIER FIELDS id, k"]
    (change,) = changes(t, identified(t, "id, k"))
    assert (change.describe(), change.subject) == ("identify rows by id, k", ("identifier",))
    assert change.reversal(t).answer is Reversibility.YES
    assert changes(identified(t, "id"), t)[0].describe() == "remove the identifier"


def test_identifier_fields_make_way() -> None:
    t = identified(
        table("id: required long, k: required string, s: required struct<x: required int>"), "id, k, s.x"
    )
    dropped = with_columns(t, "id: required long, s: required struct<x: required int>")
    assert said(t, identified(dropped, "id, s.x")) == ["DROP IDENTIFIER FIELDS k", "DROP COLUMN k"]
    loose = with_columns(t, "id: long, k: required string, s: struct<x: required int>")
    assert said(t, identified(loose, "k"))[:1] == ["DROP IDENTIFIER FIELDS id, s.x"]
    renamed = with_columns(
        t,
        "uid: required long, k: required string, u: required struct<x: required int>",
        {"uid": "id", "u": "s"},
    )
    texts = said(t, identified(renamed, "uid, k, u.x"))
    assert (texts[0], texts[-1]) == ("DROP IDENTIFIER FIELDS s.x", "SET IDENTIFIER FIELDS uid, k, u.x")


def test_paths_are_said_as_they_are_then() -> None:
    t = table("`odd id`: required long, k: required int")
    assert said(t, identified(t, "`odd id`")) == ["SET IDENTIFIER FIELDS `odd id`"]
