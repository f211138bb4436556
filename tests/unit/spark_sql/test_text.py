"""Names, literals, types and terms in Spark SQL."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import IDENTITY, VOID, Transform
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)
from icemigrate.spark_sql.expressions import sort_sql, transform_sql
from icemigrate.spark_sql.identifiers import namespace_sql, path_sql, quote, table_sql
from icemigrate.spark_sql.literals import keys_sql, properties_sql, string_sql
from icemigrate.spark_sql.type_sql import comment_sql, spark_loads, spark_type
from tests.support.small_tables import table

INT, STRING = Primitive("int"), Primitive("string")


@pytest.mark.parametrize("name", ["price", "_x9", "Price", "element", "key", "value", "day", "date"])
def test_a_plain_word_stands_bare(name: str) -> None:
    assert quote(name) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zip.code", "`zip.code`"),
        ("1st", "`1st`"),
        ("a`b", "`a``b`"),
        ("größe", "`größe`"),
        ("Order", "`Order`"),
        ("array", "`array`"),
        ("retention", "`retention`"),
        ("a b\n", "`a b\n`"),
        ("price\n", "`price\n`"),
    ],
)
def test_other_names_stand_in_backticks(name: str, text: str) -> None:
    assert quote(name) == text


def test_paths_tables_and_namespaces() -> None:
    assert path_sql(("address", "zip.code", "element")) == "address.`zip.code`.element"
    assert table_sql("lake", TableName(("market data", "eu"), "trades")) == "lake.`market data`.eu.trades"
    assert namespace_sql("my-lake", ("db",)) == "`my-lake`.db"


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("plain", "'plain'"),
        ("it's", r"'it\'s'"),
        ('say "no"', "'say \"no\"'"),
        ("a\\b", r"'a\\b'"),
        ("a\nb\tc\rd", r"'a\nb\tc\rd'"),
        ("nul\0 bell\7", r"'nul\u0000 bell\u0007'"),
        ("costs $5, not ${spark.master}", r"'costs $5, not \u0024{spark.master}'"),
        ("café 🧊 --x; /*y*/", "'café 🧊 --x; /*y*/'"),
    ],
)
def test_literals(text: str, literal: str) -> None:
    assert string_sql(text) == literal


def test_lists_of_properties() -> None:
    assert properties_sql({"b": "1", "a.x": "it's"}) == r"('b' = '1', 'a.x' = 'it\'s')"
    assert keys_sql(["b", "a"]) == "('b', 'a')"


def test_a_long_list_of_properties_goes_over_several_lines() -> None:
    longer = {f"key.{i}": "v" * 40 for i in range(3)}
    first, *pairs, last = properties_sql(longer).splitlines()
    assert (first, last) == ("(", ")")
    assert [pair.strip().rstrip(",") for pair in pairs] == [f"'{k}' = '{v}'" for k, v in longer.items()]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (Primitive("long"), "BIGINT"),
        (Primitive("timestamp"), "TIMESTAMP_NTZ"),
        (Primitive("timestamptz"), "TIMESTAMP"),
        (Primitive("unknown"), "VOID"),
        (Decimal(18, 6), "DECIMAL(18, 6)"),
        (List(Field(0, "element", INT)), "ARRAY<INT>"),
        (Map(Field(0, "key", STRING, True), Field(0, "value", INT)), "MAP<STRING, INT>"),
        (
            Struct(
                (Field(0, "a b", INT, True), Field(0, "c", List(Field(0, "element", STRING)), doc="it's"))
            ),
            r"STRUCT<`a b`: INT NOT NULL, c: ARRAY<STRING> COMMENT 'it\'s'>",
        ),
    ],
)
def test_types_that_spark_can_say(type_: Type, text: str) -> None:
    assert spark_type(type_) == text


@pytest.mark.parametrize(
    "type_",
    [
        Primitive("time"),
        Primitive("uuid"),
        Primitive("timestamp_ns"),
        Primitive("timestamptz_ns"),
        Fixed(16),
        Geometry(),
        Geography(),
        List(Field(0, "element", INT, True)),
        List(Field(0, "element", Fixed(2))),
        Map(Field(0, "key", STRING, True), Field(0, "value", INT, True)),
        Map(Field(0, "key", Primitive("uuid"), True), Field(0, "value", INT)),
        Struct((Field(0, "a", INT), Field(0, "b", Primitive("time")))),
        Struct((Field(0, "a", INT, initial_default=1),)),
        Struct((Field(0, "a", INT, write_default=1),)),
    ],
)
def test_types_that_spark_cannot_say(type_: Type) -> None:
    assert spark_type(type_) is None


@pytest.mark.parametrize(
    ("columns", "loads"),
    [
        (
            "a: int, b: uuid, c: fixed[4], d: decimal(9,2), e: unknown, f: variant, g: list<binary>",
            True,
        ),
        ("a: int, t: time", False),
        ("a: int, l: list<struct<t: timestamp_ns>>", False),
        ("a: timestamptz_ns", False),
        ("a: geometry, l: list<geometry(OGC:CRS84)>, b: geometry(EPSG:3857), c: geometry(SRID:0)", True),
        ("m: map<string, geography>, b: geography(OGC:CRS84, SPHERICAL)", True),
        ("a: geometry(EPSG:4326)", False),
        ("a: geometry(epsg:3857)", False),
        ("m: map<string, geography(EPSG:4326)>", False),
        ("l: list<geography(OGC:CRS84, karney)>", False),
    ],
)
def test_schemas_that_spark_can_load(columns: str, loads: bool) -> None:
    assert spark_loads(table(columns).schema) is loads


def test_comments() -> None:
    assert comment_sql(None) == ""
    assert comment_sql("") == " COMMENT ''"
    assert comment_sql("x") == " COMMENT 'x'"


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (IDENTITY, "a.`b c`"),
        (Transform("year"), "years(a.`b c`)"),
        (Transform("month"), "months(a.`b c`)"),
        (Transform("day"), "days(a.`b c`)"),
        (Transform("hour"), "hours(a.`b c`)"),
        (Transform("bucket", 16), "bucket(16, a.`b c`)"),
        (Transform("truncate", 4), "truncate(4, a.`b c`)"),
        (Transform("zorder"), "zorder(a.`b c`)"),
    ],
)
def test_transforms(transform: Transform, text: str) -> None:
    assert transform_sql(transform, ("a", "b c")) == text


def test_nobody_asks_for_void() -> None:
    with pytest.raises(AssertionError, match="void"):
        transform_sql(VOID, ("a",))


@pytest.mark.parametrize(
    ("direction", "nulls", "text"),
    [
        ("asc", "nulls-first", "id"),
        ("asc", "nulls-last", "id NULLS LAST"),
        ("desc", "nulls-last", "id DESC"),
        ("desc", "nulls-first", "id DESC NULLS FIRST"),
    ],
)
def test_sort_terms(direction: str, nulls: str, text: str) -> None:
    assert sort_sql(IDENTITY, ("id",), direction, nulls) == text
