"""Expressions of DuckDB's SQL that Spark gets, and those that are refused because Spark may differ."""

from __future__ import annotations

import pytest

from icemigrate.errors import UsageError
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field
from icemigrate.table_data.spark_expressions import spark_condition, spark_value

TYPES = {
    "id": "long",
    "number": "int",
    "city": "string",
    "amount": "decimal(10,2)",
    "share": "double",
    "ratio": "float",
    "moment": "timestamptz",
    "local": "timestamp",
    "day": "date",
    "ok": "boolean",
    "s": "struct<Inner: struct<x: long>>",
    "tags": "list<string>",
}
COLUMNS = [Field(number, name, parse_type(text)) for number, (name, text) in enumerate(TYPES.items(), 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID = 7 -- all", "(id = (7))"),
        ("city = 'it''s \\'", r"(city = 'it\'s \\')"),
        ("city IN ('a', NULL)", "(((city = 'a') OR (city = NULL)))"),
        ("id NOT BETWEEN -1 AND 5", None),
        ("NOT ok AND id < 5 OR tags IS NULL", "(((NOT ok) AND (id < (5))) OR (tags IS NULL))"),
        ("amount > -1.05", "(amount > (-1.05BD))"),
        ("share <= 1e5", "(share <= (100000.0D))"),
        ("s.inner.x IS DISTINCT FROM 1", "(NOT (s.`Inner`.x <=> (1)))"),
        ("day >= DATE '2024-01-31'", "(day >= DATE '2024-01-31')"),
        (
            "moment < TIMESTAMPTZ '2024-01-31 10:00:00+02'",
            "(moment < TIMESTAMP_LTZ '2024-01-31 10:00:00+02:00')",
        ),
        ("local < TIMESTAMP '2024-01-31 10:00:00'", "(local < TIMESTAMP_NTZ '2024-01-31 10:00:00')"),
        ("city LIKE 'a_%'", "(city LIKE 'a_%')"),
        ("abs(id * 2 - number) = coalesce(id, 0)", None),
        ("true", "true"),
    ],
)
def test_spark_gets_what_both_engines_read_alike(text: str, expected: str | None) -> None:
    found = spark_condition(text, COLUMNS, "--where")
    assert found if expected is None else found == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("city ~ 'a'", "the function `regexp_full_match`"),
        ("id = 1.5::int", "the cast to INTEGER"),
        ("log(100.0) = 2", "the function `log`"),
        ("dayofweek(day) = 1", "the function `dayofweek`"),
        ("regexp_replace(city, 'a', 'b') = 'b'", "the function `regexp_replace`"),
        ("hash(id) > 5", "the function `hash`"),
        ("id / 2 = 1", "the operator `/`"),
        ("id // 2 = 1", "the operator `//`"),
        ("city || 'a' = 'b'", "the operator `||`"),
        ("lower(city) = 'a'", "the function `lower`"),
        ("city LIKE 'a\\_'", "`LIKE` with a backslash"),
        ("city LIKE 'a!_' ESCAPE '!'", "the function `like_escape`"),
        ("city = 5", "`=` between number and string"),
        ("ratio = 0.1", "`=` between float and number"),
        ("moment > TIMESTAMP '2024-01-31 10:00:00'", "`>` between timestamp and timestamptz"),
        ("moment > TIMESTAMPTZ '2024-01-31 10:00:00'", "the cast to TIMESTAMP WITH TIME ZONE"),
        ("day + 1 = day", "`+` of other values than numbers"),
        ("moment > now()", "the function `now`"),
        ("CASE WHEN ok THEN true END", "the operator `CASE`"),
        ("tags[1] = 'a'", "the operator `ARRAY_EXTRACT`"),
        ("ok = (id IS NULL) AND try(ok)", "the operator `TRY`"),
        ("city", "a value of kind string"),
    ],
)
def test_a_part_that_spark_may_read_differently_is_refused(text: str, part: str) -> None:
    with pytest.raises(UsageError) as error:
        spark_condition(text, COLUMNS, "--where")
    assert error.value.message.startswith(f"--where: {part}")
    assert "Spark, which changes this table" in error.value.message


@pytest.mark.parametrize(
    ("column", "text", "is_permitted"),
    [
        ("amount", "amount * 2", True),
        ("amount", "amount * 1.5", False),
        ("id", "number + 1", True),
        ("id", "1.5", False),
        ("share", "1.5", True),
        ("city", "5", False),
        ("city", "NULL", True),
        ("tags", "tags", True),
    ],
)
def test_a_new_value_has_the_type_of_its_column(column: str, text: str, is_permitted: bool) -> None:
    (field,) = (each for each in COLUMNS if each.name == column)
    if is_permitted:
        assert spark_value(text, COLUMNS, field)
        return
    with pytest.raises(UsageError, match=f"--set {column}: "):
        spark_value(text, COLUMNS, field)
