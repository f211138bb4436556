"""Three sides made into one: what is done, what was done already, what conflicts."""

from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import FieldPosition
from icemigrate.iceberg.names import passing_name
from icemigrate.iceberg.table import Ref, Table
from icemigrate.planning.merge import done_notes, merge_tables
from tests.support.small_tables import field_at, ids, spec_of, table, with_columns

ALL_COLUMNS = "id: required long, name: string, price: int, at: timestamp, s: struct<a: int, b: string>"
BASE = table(ALL_COLUMNS)


def names(t: Table) -> list[str]:
    return [f.name for f in t.schema.fields]


def test_nothing_wanted_leaves_hand_changes_alone() -> None:
    actual = with_columns(BASE, "id: required long, nom: string, extra: int", {"nom": "name"})
    merged = merge_tables(BASE, BASE, actual)
    assert merged.target == actual
    assert (merged.conflicts, merged.open, merged.done) == ((), (), ())


def test_a_new_column_goes_behind_columns_that_others_added() -> None:
    wanted = with_columns(
        BASE,
        "id: required long, name: string, price: int, at: timestamp, "
        "s: struct<a: int, b: string>, note: string",
    )
    actual = with_columns(
        BASE,
        "id: required long, name: string, price: int, at: timestamp, "
        "s: struct<a: int, b: string>, theirs: int",
        by_hand=True,
    )
    merged = merge_tables(BASE, wanted, actual)
    assert names(merged.target)[-2:] == ["theirs", "note"]
    assert merged.open == ("db.t:columns.note",)


def test_a_column_added_by_hand_as_wanted_is_done_already_and_keeps_its_id() -> None:
    wanted = with_columns(
        BASE,
        "id: required long, name: string, price: int, at: timestamp, "
        "s: struct<a: int, b: string>, note: string",
    )
    actual = table("id: required long, name: string, price: int, at: timestamp, s: struct<a: int, b: string>")
    note = replace(field_at(wanted.schema, "note"), id=42)
    actual = replace(actual, schema=replace(actual.schema, fields=(*actual.schema.fields, note)))
    merged = merge_tables(BASE, wanted, actual)
    assert merged.target == actual
    assert not merged.conflicts
    assert "db.t:columns.note.type" in map(str, merged.done)


def test_a_column_added_by_hand_with_another_type_conflicts() -> None:
    columns = (
        "id: required long, name: string, price: int, at: timestamp, s: struct<a: int, b: string>, note: "
    )
    wanted = with_columns(BASE, columns + "string")
    actual = table(columns + "long")
    actual = replace(
        actual,
        schema=replace(
            actual.schema,
            fields=(*BASE.schema.fields, replace(actual.schema.fields[-1], id=42)),
        ),
    )
    (conflict,) = merge_tables(BASE, wanted, actual).conflicts
    assert (conflict.fact, conflict.base, conflict.wanted, conflict.actual) == (
        "db.t:columns.note.type",
        "(absent)",
        "string",
        "long",
    )


RENAMED = "id: required long, title: string, price: int, at: timestamp, s: struct<a: int, b: string>"


@pytest.mark.parametrize(
    ("hand", "done", "conflicts"),
    [
        ("name", [], []),
        ("title", ["db.t:columns.title.name"], []),
        (passing_name(2), [], []),
        ("label", [], ["db.t:columns.title.name"]),
    ],
)
def test_a_rename_meets_each_state_of_the_table(hand: str, done: list[str], conflicts: list[str]) -> None:
    wanted = with_columns(BASE, RENAMED, {"title": "name"})
    actual = with_columns(BASE, RENAMED.replace("title", hand), {hand: "name"})
    merged = merge_tables(BASE, wanted, actual)
    assert list(map(str, merged.done)) == done
    assert [c.fact for c in merged.conflicts] == conflicts
    if not conflicts:
        assert names(merged.target) == names(wanted)


def test_overwriting_a_fact_sets_it_whatever_it_is() -> None:
    wanted = with_columns(BASE, RENAMED, {"title": "name"})
    actual = with_columns(BASE, RENAMED.replace("title", "label"), {"label": "name"})
    merged = merge_tables(BASE, wanted, actual, overwrite=frozenset({"db.t:columns.title.name"}))
    assert not merged.conflicts
    assert names(merged.target) == names(wanted)


def test_a_dropped_column_that_is_gone_already_is_done() -> None:
    without = with_columns(BASE, "id: required long, price: int, at: timestamp, s: struct<a: int, b: string>")
    assert list(map(str, merge_tables(BASE, without, without).done)) == ["db.t:columns.name"]
    assert merge_tables(BASE, without, BASE).target == without


def test_dropping_a_struct_with_somebody_elses_field_in_it_conflicts() -> None:
    without = with_columns(BASE, "id: required long, name: string, price: int, at: timestamp")
    actual = with_columns(
        BASE,
        "id: required long, name: string, price: int, at: timestamp, s: struct<a: int, b: string, c: int>",
    )
    (conflict,) = merge_tables(BASE, without, actual).conflicts
    assert conflict.actual == "with fields that no file declared: c"
    assert not merge_tables(BASE, without, actual, overwrite=frozenset({conflict.fact})).conflicts


def test_changing_a_column_that_somebody_dropped_conflicts() -> None:
    wanted = with_columns(BASE, RENAMED, {"title": "name"})
    actual = with_columns(BASE, "id: required long, price: int, at: timestamp, s: struct<a: int, b: string>")
    (conflict,) = merge_tables(BASE, wanted, actual).conflicts
    assert conflict.fact == "db.t:columns.name"
    assert conflict.actual == "(absent)"


def test_a_restored_column_comes_back_under_its_own_id() -> None:
    base = with_columns(BASE, "id: required long, price: int, at: timestamp, s: struct<a: int, b: string>")
    merged = merge_tables(base, BASE, base)
    assert merged.target.schema.find(("name",)) == BASE.schema.find(("name",))


def test_a_new_field_goes_into_a_struct_and_brings_what_is_below_it() -> None:
    wanted = with_columns(
        BASE,
        "id: required long, name: string, price: int, at: timestamp, "
        "s: struct<a: int, b: string, c: struct<d: int>>",
    )
    merged = merge_tables(BASE, wanted, BASE)
    assert merged.open == ("db.t:columns.s.c",)
    assert merged.target.schema.find(("s", "c", "d")) is not None


def test_only_asserted_positions_are_set() -> None:
    wanted = with_columns(
        BASE, "id: required long, name: string, at: timestamp, s: struct<a: int, b: string>, price: int"
    )
    (at,) = ids(BASE.schema, "at")
    unasserted = merge_tables(BASE, wanted, BASE)
    assert names(unasserted.target) == names(BASE)
    (price,) = ids(BASE.schema, "price")
    asserted = merge_tables(BASE, wanted, BASE, [FieldPosition(price, at)])
    assert names(asserted.target) == ["id", "name", "at", "price", "s"]
    first = merge_tables(BASE, wanted, BASE, [FieldPosition(price, None)])
    assert names(first.target)[0] == "price"


@pytest.mark.parametrize("gone", ["at", "price"])
def test_a_position_of_or_behind_a_column_that_somebody_dropped_conflicts(gone: str) -> None:
    left = [f for f in BASE.schema.fields if f.name != gone]
    actual = replace(BASE, schema=replace(BASE.schema, fields=tuple(left)))
    ((price,), (at,), (s,)) = (ids(BASE.schema, name) for name in ("price", "at", "s"))
    merged = merge_tables(BASE, BASE, actual, [FieldPosition(price, s), FieldPosition(price, at)])
    conflict = merged.conflicts[-1]
    assert conflict.fact == "db.t:columns.price.after"
    assert (conflict.base, conflict.wanted) == ("after name", "after at")
    assert conflict.actual == f"there is no {gone}"


def test_a_new_column_behind_one_that_somebody_dropped_conflicts() -> None:
    wanted = with_columns(BASE, f"{ALL_COLUMNS}, note: string")
    actual = with_columns(BASE, "id: required long, price: int, at: timestamp, s: struct<a: int, b: string>")
    ((note,), (name,)) = (ids(wanted.schema, "note"), ids(BASE.schema, "name"))
    (conflict,) = merge_tables(BASE, wanted, actual, [FieldPosition(note, name)]).conflicts
    assert (conflict.base, conflict.wanted) == ("(absent)", "after name")


def test_a_position_that_a_dropped_column_had_all_along_is_no_conflict() -> None:
    actual = with_columns(BASE, "id: required long, name: string, price: int, s: struct<a: int, b: string>")
    ((at,), (s,)) = (ids(BASE.schema, name) for name in ("at", "s"))
    merged = merge_tables(BASE, BASE, actual, [FieldPosition(s, at)])
    assert (merged.target, merged.conflicts) == (actual, ())


def test_a_spec_replaced_keeps_common_fields_in_place() -> None:
    base = replace(BASE, spec=spec_of(BASE.schema, "day(at), name"))
    wanted = replace(base, spec=spec_of(BASE.schema, "month(at), name", -2))
    merged = merge_tables(base, wanted, base)
    assert [f.name for f in merged.target.spec.fields] == ["name", "at_month"]


def test_a_spec_changed_by_hand_conflicts_in_names() -> None:
    base = replace(BASE, spec=spec_of(BASE.schema, "day(at)"))
    wanted = replace(base, spec=spec_of(BASE.schema, "hour(at)", -1))
    actual = replace(base, spec=spec_of(BASE.schema, "month(at)"))
    (conflict,) = merge_tables(base, wanted, actual).conflicts
    assert conflict.base == "day(at) as at_day"
    assert conflict.wanted == "hour(at) as at_hour"
    assert conflict.actual == "month(at) as at_month"


def test_order_identifier_format_and_properties_are_facts_of_their_own() -> None:
    wanted = table(
        "id: required long, name: string, price: int, at: timestamp, s: struct<a: int, b: string>",
        sort="at",
        identifier="id",
        properties={"write.format.default": "parquet"},
        format_version=3,
    )
    merged = merge_tables(BASE, wanted, replace(BASE, properties={"theirs": "1"}))
    assert merged.target.sort_order.fields == wanted.sort_order.fields
    assert merged.target.schema.identifier_ids == wanted.schema.identifier_ids
    assert merged.target.format_version == 3
    assert merged.target.properties == {"theirs": "1", "write.format.default": "parquet"}
    assert set(merged.open) == {
        "db.t:sort_by",
        "db.t:identifier",
        "db.t:format_version",
        "db.t:properties.write.format.default",
    }


def test_an_unset_property_goes_and_one_set_by_hand_conflicts() -> None:
    base = replace(BASE, properties={"a": "1", "b": "1"})
    wanted = replace(BASE, properties={"b": "2"})
    assert merge_tables(base, wanted, base).target.properties == {"b": "2"}
    (conflict,) = merge_tables(base, wanted, replace(base, properties={"a": "1", "b": "3"})).conflicts
    assert (conflict.fact, conflict.base, conflict.wanted, conflict.actual) == (
        "db.t:properties.b",
        "1",
        "2",
        "3",
    )


def test_a_number_of_milliseconds_in_a_conflict_is_told_in_days_too() -> None:
    key = "history.expire.max-snapshot-age-ms"
    base, wanted, there = (replace(BASE, properties={key: str(n * 86_400_000)}) for n in (5, 30, 7))
    (conflict,) = merge_tables(base, wanted, there).conflicts
    assert (conflict.wanted, conflict.actual) == ("2592000000 (30d)", "604800000 (7d)")


def test_a_reference_is_compared_by_its_retention_not_by_where_it_points() -> None:
    tag, moved = Ref("tag", -1, 1000), Ref("tag", 77, 1000)
    wanted = replace(BASE, refs={"eod": tag})
    assert merge_tables(BASE, wanted, BASE).target.refs == {"eod": tag}
    merged = merge_tables(BASE, wanted, replace(BASE, refs={"eod": moved}))
    assert list(map(str, merged.done)) == ["db.t:tags.eod"]
    longer = replace(BASE, refs={"eod": replace(tag, max_ref_age_ms=5)})
    target = merge_tables(wanted, longer, replace(BASE, refs={"eod": moved})).target
    assert target.refs == {"eod": Ref("tag", 77, 5)}
    assert merge_tables(wanted, BASE, replace(BASE, refs={"eod": moved})).target.refs == {}


def test_a_change_of_kind_takes_the_new_type_whole() -> None:
    wanted = with_columns(
        BASE, "id: required long, name: list<string>, price: int, at: timestamp, s: struct<a: int, b: string>"
    )
    merged = merge_tables(BASE, wanted, BASE)
    assert merged.open == ("db.t:columns.name.type",)
    assert merged.target.schema.find(("name", "element")) is not None


def test_without_a_base_everything_that_differs_conflicts_or_is_open() -> None:
    actual = table("id: required long, name: string", partition="name")
    fresh = table("id: required long, name: string")
    assert [c.fact for c in merge_tables(None, fresh, fresh).conflicts] == []
    assert [c.fact for c in merge_tables(None, fresh, actual).conflicts] == ["db.t:partition_by"]


METRICS = "write.metadata.metrics.column."


def test_undeclared_properties_go_with_a_column_that_is_renamed_or_dropped() -> None:
    actual = replace(BASE, properties={METRICS + "name": "full", METRICS + "price": "none"})
    wanted = with_columns(
        BASE,
        "id: required long, title: string, at: timestamp, s: struct<a: int, b: string>",
        {"title": "name"},
    )
    merged = merge_tables(BASE, wanted, actual)
    assert merged.target.properties == {METRICS + "title": "full"}


def test_declared_properties_of_a_renamed_column_are_no_difference() -> None:
    base = replace(BASE, properties={METRICS + "name": "full"})
    wanted = replace(with_columns(base, RENAMED, {"title": "name"}), properties={METRICS + "title": "full"})
    merged = merge_tables(base, wanted, base)
    assert merged.open == ("db.t:columns.title.name",)
    assert merged.done == ()


def test_what_is_done_of_a_column_is_one_note() -> None:
    column = "db.t:columns.s.c3"
    facts = [f"{column}.required", "db.t:properties.a.name", f"{column}.description", "db.t:columns.v.type"]
    assert done_notes([*facts, "db.t:columns.name", "db.t:columns.type", f"{column}.default"]) == (
        f"done already: {column} (required, description, default)",
        "done already: db.t:properties.a.name",
        "done already: db.t:columns.v.type",
        "done already: db.t:columns.name",
        "done already: db.t:columns.type",
    )


def test_a_new_column_that_is_there_is_one_note() -> None:
    wanted = with_columns(BASE, "id: required long, name: string, price: int, at: timestamp, n: required int")
    merged = merge_tables(BASE, wanted, wanted)
    note = "done already: db.t:columns.n (name, type, required, description, initial_default, default)"
    assert note in done_notes(merged.done)
