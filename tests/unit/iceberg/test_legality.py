"""What a table may be: each rule, the way out it names, and that a good table breaks none."""

from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import (
    add_partition_field,
    drop_partition_field,
    rename_partition_field,
)
from icemigrate.iceberg.partitioning import (
    VOID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
)
from icemigrate.iceberg.retention import ROW_COLUMN
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Decimal, Field, Fixed, JsonValue, Primitive, Struct
from icemigrate.iceberg.validation import VALIDATION_RULES, Violation, find_violations
from icemigrate.iceberg.validation.column_rules import is_valid_default
from tests.support.small_tables import field_at, ids, table, with_columns


def broken(after: Table, before: Table | None = None) -> list[Violation]:
    return list(find_violations(after, before))


def rules(after: Table, before: Table | None = None) -> list[str]:
    return [b.rule for b in broken(after, before)]


def one(after: Table, before: Table | None = None) -> Violation:
    (breach,) = broken(after, before)
    return breach


def with_fields(base: Table, *fields: Field) -> Table:
    return replace(base, schema=replace(base.schema, fields=(*base.schema.fields, *fields)))


def by(base: Table, source: str, transform: str = "identity", name: str = "p", id_: int = 1000) -> Table:
    """The table with one more partition field."""
    field = PartitionField((field_at(base.schema, source).id,), Transform.parse(transform), name, id_)
    return replace(base, spec=PartitionSpec((*base.spec.fields, field)))


def ordered(base: Table, source_id: int, transform: str = "identity") -> Table:
    return replace(base, sort_order=SortOrder((SortField((source_id,), Transform.parse(transform)),), 1))


GOOD = table(
    "id: required long, ts: timestamptz, s: required struct<k: required string, l: list<struct<x: int>>>,"
    " m: map<string, decimal(38,38)>, b: fixed[1], `odd name`: double",
    partition="day(ts), bucket[16](id), s.k",
    sort="id, s.k",
    identifier="id, s.k",
    properties={
        "write.metadata.metrics.column.s.l.element.x": "full",
        "write.distribution-mode": "hash",
        ROW_COLUMN: "ts",
    },
)


def test_a_good_table() -> None:
    assert broken(GOOD) == []
    assert broken(GOOD, GOOD) == []


def test_rules_are_promises() -> None:
    assert len(set(VALIDATION_RULES)) == len(VALIDATION_RULES)
    assert all(rule.__doc__ for rule in VALIDATION_RULES)


# Names


@pytest.mark.parametrize(
    ("columns", "rule", "subject"),
    [
        ("a: int, A: int", "names-differ-by-case", ("columns", "A")),
        ("s: struct<Key: int, key: int>", "names-differ-by-case", ("columns", "s.key")),
        ("a: int, _pos: int", "metadata-column-name", ("columns", "_pos")),
        ("a: int, _Row_ID: int", "metadata-column-name", ("columns", "_Row_ID")),
        ("a: int, `b\u202e`: int", "unprintable-name", ("columns", "`b\u202e`")),
        ("s: struct<`x\x7f`: int>", "unprintable-name", ("columns", "s.`x\x7f`")),
        ("a: int, ` b`: int", "blank-edged-name", ("columns", "` b`")),
        ("s: struct<` `: int>", "blank-edged-name", ("columns", "s.` `")),
        ("`\u00e9`: int, `e\u0301`: int", "names-look-the-same", ("columns", "`e\u0301`")),
        ("`a.b`: int, a: struct<b: int>", "ambiguous-path", ("columns", "a.b")),
    ],
)
def test_names(columns: str, rule: str, subject: tuple[str, ...]) -> None:
    breach = one(table(columns))
    assert (breach.rule, breach.subject, breach.is_warning) == (rule, subject, False)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (TableName(("db",), "t" * 256), "name-too-long"),
        (TableName(("é" * 128,), "t"), "name-too-long"),
        (TableName(("d\nb",), "t"), "unprintable-name"),
        (TableName(("db",), " "), "blank-edged-name"),
        (TableName(("db",), ".."), "name-is-a-path"),
        (TableName(("a/b",), "t"), "name-is-a-path"),
    ],
)
def test_names_of_tables(name: TableName, rule: str) -> None:
    breach = one(replace(table("a: int"), name=name))
    assert (breach.rule, breach.subject) == (rule, ("name",))


def test_long_names_of_tables_that_fit() -> None:
    assert broken(replace(table("a: int"), name=TableName(("d" * 255,), "é" * 127))) == []


def test_metadata_names_are_free_inside_structs() -> None:
    assert broken(table("s: struct<_pos: int, _file: string>")) == []


def test_duplicate_names() -> None:
    twice = with_fields(table("a: int, s: struct<b: int>"), Field(9, "a", Primitive("long")))
    assert rules(twice) == ["duplicate-name"]


def test_structs_and_tables_have_fields() -> None:
    empty = with_fields(table("a: int"), Field(2, "s", Struct(())))
    assert one(empty).rule == "empty-struct"
    assert "drop `s`" in one(empty).hint
    assert rules(replace(empty, schema=replace(empty.schema, fields=()))) == ["no-columns"]


# Types and defaults


@pytest.mark.parametrize("type_", ["timestamp_ns", "variant", "unknown", "geometry"])
def test_types_of_version_3(type_: str) -> None:
    columns = f"a: int, l: list<struct<x: {type_}, n: int>>"
    breach = one(table(columns))
    assert (breach.rule, breach.subject) == ("type-needs-newer-format", ("columns", "l.element.x", "type"))
    assert "format_version: 3" in breach.hint
    assert broken(table(columns, format_version=3)) == []


@pytest.mark.parametrize(
    ("files", "rows", "found"), [("orc", True, 1), ("ORC", True, 1), ("orc", False, 0), ("parquet", True, 0)]
)
def test_a_default_that_orc_cannot_fill_in(files: str, rows: bool, found: int) -> None:
    before = table("id: int", format_version=3, properties={"write.format.default": files})
    before = replace(before, snapshot=Snapshot(7, 0, 3 if rows else 0))
    new = Field(-1, "n", Primitive("int"), initial_default=7, write_default=7)
    told = list(find_violations(with_fields(before, new), before))
    assert [(b.rule, b.is_warning) for b in told] == [("default-not-read-from-orc", True)] * found


def test_unknown_is_optional() -> None:
    assert rules(table("a: int, u: required unknown", format_version=3)) == ["unknown-is-required"]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("id: int, l: list<unknown>", 1),
        ("id: int, m: map<string, unknown>", 1),
        ("id: int, s: struct<a: unknown, b: unknown>", 1),
        ("id: int, l: list<struct<a: unknown>>", 1),
        ("id: int, l: list<struct<a: unknown, b: int>>, u: unknown", 0),
        ("a: unknown, b: unknown", 1),
    ],
)
def test_unknown_alone_has_no_place_in_a_file(columns: str, found: int) -> None:
    told = list(find_violations(table(columns, format_version=3), None))
    assert [(b.rule, b.is_warning) for b in told] == [("unknown-not-written", True)] * found


@pytest.mark.parametrize("type_", [Decimal(39, 2), Decimal(0, 0), Decimal(5, 6), Fixed(0), Fixed(2**31)])
def test_sizes(type_: Decimal | Fixed) -> None:
    assert rules(with_fields(table("a: int"), Field(2, "d", type_))) == ["size-out-of-range"]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("boolean", [True], [1, "true"]),
        ("int", [0, -(2**31)], [2**31, True, 1.0, "1"]),
        ("long", [2**31, -(2**63)], [2**63]),
        ("double", [1, 1.5], ["1.5", True]),
        ("decimal(4,2)", ["14.20", "-0.05", "99.99"], ["14.2", "100.00", 14.2, "x"]),
        ("decimal(3,0)", ["999"], ["1000", "1.0"]),
        ("date", ["2024-02-29"], ["2023-02-29", 5]),
        ("time", ["22:31:08.123456"], ["25:00:00", "22:31:08.1234567"]),
        ("timestamp", ["2024-02-29T22:31:08.123456"], ["2024-02-29T22:31:08+00:00", "2024-02-29"]),
        ("timestamptz", ["2024-02-29T22:31:08+00:00"], ["2024-02-29T22:31:08"]),
        ("timestamptz_ns", ["2024-02-29T22:31:08.123456789+00:00"], ["2024-02-30T22:31:08+00:00"]),
        ("string", ["", "x"], [1]),
        ("uuid", ["f79c3e09-677c-4bbd-a479-3f349cb785e7"], ["f79c"]),
        ("fixed[2]", ["00fF"], ["00", "00xx"]),
        ("binary", ["", "00ff"], ["0", "zz"]),
        ("list<int>", [[]], [[1], {}]),
        ("map<string, int>", [{}, {"keys": [], "values": []}], [{"keys": ["a"], "values": [1]}]),
        ("struct<a: int>", [{}], [{"1": 1}]),
        ("variant", [None], [1]),
        ("unknown", [None], [1]),
        ("geometry", [None], ["POINT (1 1)"]),
    ],
)
def test_defaults_are_of_the_type(type_: str, good: list[JsonValue], bad: list[JsonValue]) -> None:
    parsed = parse_type(type_)
    assert [v for v in good if not is_valid_default(v, parsed)] == []
    assert [v for v in bad if is_valid_default(v, parsed)] == []


def test_defaults() -> None:
    field = Field(2, "d", Primitive("int"), initial_default=1, write_default=2)
    assert one(with_fields(table("a: int"), field)).rule == "default-needs-newer-format"
    version_3 = table("a: int", format_version=3)
    assert broken(with_fields(version_3, field)) == []
    breach = one(with_fields(version_3, replace(field, write_default="x")))
    assert (breach.rule, breach.subject) == ("default-of-another-type", ("columns", "d", "default"))
    nested = replace(field, type=parse_type("list<int>"), initial_default=None, write_default=[1])
    assert "`[]` or null" in one(with_fields(version_3, nested)).hint


# Identifier fields


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("note", "identifier-optional"),
        ("x", "identifier-type"),
        ("s", "identifier-type"),
        ("l.element.k", "identifier-in-list-or-map"),
        ("o.k", "identifier-in-optional-struct"),
    ],
)
def test_identifiers(path: str, rule: str) -> None:
    t = table(
        "id: required long, note: string, x: required double, s: required struct<k: int>,"
        " l: required list<required struct<k: required long>>, o: struct<k: required long>",
        identifier=path,
    )
    breach = one(t)
    assert (breach.rule, breach.subject) == (rule, ("identifier", path))


def test_an_identifier_that_is_dropped() -> None:
    t = table("id: required long, k: required int", identifier="k")
    breach = one(with_columns(t, "id: required long"), t)
    assert breach.rule == "identifier-missing"
    assert "`k`" in breach.message


# Partitioning


def test_a_source_that_is_dropped() -> None:
    t = table("id: long, d: date", partition="day(d)")
    breach = one(with_columns(t, "id: long"), t)
    assert (breach.rule, breach.subject) == ("partition-source-missing", ("partition_by",))
    assert "`d`" in breach.message
    earlier = one(with_columns(drop_partition_field(t, "d_day"), "id: long"), t)
    assert (earlier.rule, earlier.subject) == ("earlier-partition-source-missing", ("drop_columns", "d"))
    assert earlier.is_warning


def test_void_fields_want_their_source() -> None:
    t = table("id: long, k: string, d: date", partition="k, d", format_version=1)
    half = drop_partition_field(t, "k")
    beside = one(with_columns(half, "id: long, d: date"), half)
    assert (beside.is_warning, "cannot write" in beside.message) == (True, True)
    none = drop_partition_field(half, "d")
    alone = one(with_columns(none, "id: long, d: date"), none)
    assert (alone.is_warning, "write no row" in alone.message) == (True, False)


@pytest.mark.parametrize(
    ("source", "transform", "rule"),
    [
        ("x", "bucket[4]", "partition-transform"),
        ("k", "hour", "partition-transform"),
        ("d", "hour", "partition-transform"),
        ("k", "zorder", "partition-transform"),
        ("s", "identity", "partition-transform"),
        ("k", "bucket[0]", "partition-width"),
        ("l.element", "identity", "partition-source-in-list-or-map"),
        ("m.key", "identity", "partition-source-in-list-or-map"),
    ],
)
def test_transforms(source: str, transform: str, rule: str) -> None:
    t = table("x: double, k: string, d: date, s: struct<a: int>, l: list<int>, m: map<string, int>")
    assert rules(by(t, source, transform)) == [rule]


def test_several_sources() -> None:
    t = table("a: int, b: int", format_version=3)
    field = PartitionField((1, 2), Transform("bucket", 4), "p", 1000)
    assert rules(replace(t, spec=PartitionSpec((field,)))) == ["partition-of-several-fields"]


def test_double_partition_fields() -> None:
    t = table("a: int, b: int")
    assert rules(by(by(t, "a", name="p"), "b", name="p")) == ["duplicate-partition-name"]
    assert rules(by(by(t, "a", name="p"), "a", name="q")) == ["duplicate-partition-field"]


def test_redundant_times() -> None:
    t = table("ts: timestamp, d: date")
    both = by(by(t, "ts", "day", "ts_day"), "ts", "hour", "ts_hour")
    assert one(both).rule == "redundant-partitions"
    assert rules(both, t) == ["redundant-partitions"]
    assert "hour(ts)" in one(both).hint
    assert rules(both, by(t, "ts", "day", "ts_day")) == []
    assert rules(by(by(t, "ts", "day", "a"), "d", "month", "b")) == []


def test_a_new_column_named_like_a_partition_field() -> None:
    t = table("id: long, ts: timestamp", partition="day(ts)")
    breach = one(with_columns(t, "id: long, ts: timestamp, ts_day: date"), t)
    assert (breach.rule, breach.subject) == ("partition-name-is-a-column", ("columns", "ts_day"))
    assert "day(ts)" in breach.message


def test_an_old_name_used_again() -> None:
    t = table("id: long, kind: string", partition="kind")
    renamed = with_columns(t, "id: long, category: string", {"category": "kind"})
    assert broken(renamed, t) == []
    reused = with_fields(renamed, Field(-1, "kind", Primitive("int")))
    breach = one(reused, t)
    assert (breach.rule, breach.subject) == ("partition-name-is-a-column", ("columns", "kind"))
    assert "`kind`" in breach.message
    # Renaming the partition field does not help: the earlier spec keeps the name.
    assert rules(rename_partition_field(reused, "kind", "category"), t) == ["partition-name-is-a-column"]
    # The source's end does.
    gone = with_columns(drop_partition_field(t, "kind"), "id: long")
    again = with_fields(gone, Field(-1, "kind", Primitive("int")))
    assert rules(again, t) == ["earlier-partition-source-missing"]


def test_a_new_partition_field_named_like_a_column() -> None:
    t = table("id: long, ts: timestamp")
    other = one(by(t, "ts", "day", "id"), t)
    assert (other.rule, other.subject) == ("partition-name-is-a-column", ("partition_by",))
    assert "`day(ts) as ts_day`" in other.hint
    assert "rename" in other.hint
    assert rules(by(t, "ts", "day", "ts"), t) == ["partition-name-is-a-column"]
    assert rules(by(t, "ts", "identity", "ts"), t) == []
    taken = with_columns(t, "id: long, ts: timestamp, ts_day: int, ts_day_part: int")
    assert "ts_day_part_part" in one(by(taken, "ts", "day", "id"), t).hint
    assert "bucket(4, id)" in one(by(t, "id", "bucket[4]", "ts"), t).hint


def test_void_fields_keep_their_names() -> None:
    t = drop_partition_field(table("id: long, k: string", partition="k", format_version=1), "k")
    assert t.spec.fields[0].transform == VOID
    assert broken(t) == []
    reused = with_fields(
        with_columns(t, "id: long, kk: string", {"kk": "k"}), Field(-1, "k", Primitive("int"))
    )
    assert rules(reused, t) == ["partition-name-is-a-column"]


def test_names_that_are_not_portable() -> None:
    t = table("id: long, `😎 mood`: string, s: struct<ts: timestamp>")
    breach = one(by(t, "`😎 mood`", name="😎 mood"))
    assert (breach.rule, breach.is_warning) == ("partition-name-not-portable", True)
    assert broken(by(t, "`😎 mood`", name="mood")) == []
    assert broken(by(t, "s.ts", "day", "s.ts_day")) == []


# Order


def test_an_order_by_a_dropped_column() -> None:
    t = table("k: required string, at: timestamp", sort="at")
    breach = one(with_columns(t, "k: required string"), t)
    assert (breach.rule, breach.subject) == ("sort-source-missing", ("sort_by",))
    assert "`at`" in breach.message
    assert "sort_by: []" in breach.hint


@pytest.mark.parametrize(
    ("path", "transform"),
    [("s", "identity"), ("l.element", "identity"), ("k", "day"), ("v", "identity")],
)
def test_orders(path: str, transform: str) -> None:
    t = table("k: string, s: struct<a: int>, l: list<int>, v: variant", format_version=3)
    assert rules(ordered(t, ids(t.schema, path)[0], transform)) == ["sort-source"]


# Properties


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("sort-order", "sort_by"),
        ("Format-Version", "format_version"),
        ("location", "location"),
        ("provider", "remove the property"),
        ("current-snapshot-id", "Iceberg maintains it"),
    ],
)
def test_reserved_properties(key: str, word: str) -> None:
    breach = one(table("a: int", properties={key: "1"}))
    assert (breach.rule, breach.subject) == ("reserved-property", ("properties", key))
    assert word in breach.hint


def test_a_property_that_the_catalog_gave_is_no_mistake() -> None:
    t = table("a: int", properties={"owner": "etl"})
    assert broken(replace(t, properties={"owner": "etl", "x": "1"}), t) == []
    assert rules(replace(t, properties={"owner": "me"}), t) == ["reserved-property"]


def test_properties_of_columns() -> None:
    t = table("price: int", properties={"write.metadata.metrics.column.prize": "full"})
    assert (one(t).rule, one(t).hint) == ("property-without-column", "did you mean `price`?")
    t = table("a: int, b: int", properties={"write.parquet.bloom-filter-enabled.column.b": "true"})
    left = one(with_columns(t, "a: int"), t)
    assert (left.rule, left.is_warning) == ("property-without-column", True)
    assert "`null`" in left.hint


def test_write_distribution() -> None:
    breach = one(table("a: int", properties={"write.distribution-mode": "hsah"}))
    assert (breach.rule, breach.hint) == ("write-distribution", "did you mean `hash`?")


def test_row_retention() -> None:
    assert rules(table("a: date", properties={ROW_COLUMN: "b"})) == ["retention-column-missing"]
    assert rules(table("a: int", properties={ROW_COLUMN: "a"})) == ["retention-column-type"]
    assert rules(table("a: date", properties={ROW_COLUMN: "a"})) == []


# The state before


def test_old_guilt_is_not_held_against_a_migration() -> None:
    bad = table("a: int, A: int")
    assert broken(with_columns(bad, "a: int, A: int, b: int"), bad) == []
    assert rules(with_columns(bad, "a: int, A: int, b: int, B: int"), bad) == ["names-differ-by-case"]


def test_an_added_field_of_an_unpartitioned_table() -> None:
    t = table("id: long")
    assert broken(add_partition_field(t, 1, Transform("bucket", 4), "id_bucket_4"), t) == []
