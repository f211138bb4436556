"""Texts of a CSV file as values: the fast casts of plain texts give what DuckDB's own casts give."""

from __future__ import annotations

import duckdb
import pytest

from icemigrate.iceberg.types import Decimal, Field, Primitive, Type
from icemigrate.table_data.row_relations import LoadRelation
from icemigrate.table_data.text_casts import text_misfits, text_value


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29 23:59:59",
        "2024-02-29T23:59:59",
        "1582-10-04 00:00:00",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "2024-01-01 10:30:5Z",
        "2024-1-1 10:30:05+01",
        "2024-01-01 10:30:05+01:30",
        "2024-01-01 10:30:05-18:00",
        "2024-01-01 10:30:05.123456",
        "2024-03-31 02:30:00",
    ],
)
def test_a_timestamp_with_a_zone_is_the_one_of_duckdbs_own_cast(text: str) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    value = text_value(Primitive("timestamptz"), "x")
    rows = f"(SELECT '{text}' AS x)"
    fits = f"NOT {text_misfits(Primitive('timestamptz'), 'x')}"
    found = connection.execute(
        f"SELECT {fits}, {value} IS NOT DISTINCT FROM CAST(x AS TIMESTAMPTZ) FROM {rows}"
    ).fetchall()
    assert found == [(True, True)]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        *(("timestamptz", f"2024-01-01 10:00:00{zone}") for zone in ("+25:00", "+19", "-0260", "+02:60")),
        *(("timestamptz", f"2024-01-01 10:00:00{zone}") for zone in ("+18:01", "-1830")),
        ("timestamp", "2024-1-1T1:00+02:00"),
        ("timestamp", "2024-1-1T10:0+02:00"),
    ],
)
def test_a_zone_that_does_not_fit(type_: str, text: str) -> None:
    found = duckdb.execute(f"SELECT {text_misfits(Primitive(type_), 'x')} FROM (SELECT '{text}' AS x)")
    assert found.fetchall() == [(True,)]
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT {text_value(Primitive(type_), 'x')} FROM (SELECT '{text}' AS x)").fetchall()


TYPES: dict[str, Type] = {name: Primitive(name) for name in ("int", "long", "float", "double")}
TYPES["decimal"] = Decimal(9, 2)
NUMBERS = [
    *(
        (text, value, "int long float double decimal")
        for text, value in [("12", 12), (" 12", 12), ("12\t", 12)]
    ),
    *((text, value, "int long float double decimal") for text, value in [("+5", 5), ("-0", 0), ("0010", 10)]),
    *((text, value, "float double decimal") for text, value in [(".5", 0.5), ("-5.", -5), ("+0.250", 0.25)]),
    *(
        (text, value, "float double")
        for text, value in [("1e3", 1000), ("1E-1", 0.1), ("0e5", 0), ("-0.0e-9", 0)]
    ),
    ("-Infinity", float("-inf"), "float double"),
    ("1e-300", 1e-300, "double"),
    ("5e-324", 5e-324, "double"),
    ("1e-45", 1e-45, "float double"),
    ("1e39", 1e39, "double"),
    *(
        (text, None, "")
        for text in ("0x1F", "0X1f", "0b11", "0o17", "1_0", "1_0.5", "1,5", "1e", "--1", "+-1")
    ),
    ("16777217", 16777217, "int long double"),
    ("9007199254740992", 2**53, "long float double"),
    ("9007199254740993", 2**53 + 1, "long"),
    (" -9007199254740992.0", -(2**53), "float double"),
    ("1" + "0" * 22, 1e22, "double"),
    *((text, 1e23, "float double") for text in ("1e23", "1" + "0" * 23 + ".5")),
    *((text, None, "") for text in ("+9007199254740993.0", "1" + "0" * 23, "1" + "0" * 300)),
    *((text, None, "") for text in ("1e-400", "-1e-400", "+1e-400", " 1e-400", "1e400", "+-0", "1__0", "1d")),
]
"""Texts, their value, and the types that accept them: as Spark and pandas do, without a change of value."""


@pytest.mark.parametrize(("text", "value", "accepting"), NUMBERS)
@pytest.mark.parametrize("name", TYPES)
def test_a_text_is_a_number_or_a_misfit(name: str, text: str, value: float | None, accepting: str) -> None:
    connection, type_ = duckdb.connect(), TYPES[name]
    rows = f"(SELECT '{text}' AS x)"
    ((misfits,),) = connection.execute(f"SELECT {text_misfits(type_, 'x')} FROM {rows}").fetchall()
    query = f"SELECT CAST({text_value(type_, 'x')} AS DOUBLE) FROM {rows}"
    assert misfits == (name not in accepting.split())
    if misfits:
        with pytest.raises(duckdb.Error):
            connection.execute(query).fetchall()
        return
    ((found,),) = connection.execute(query).fetchall()
    assert found == pytest.approx(value, rel=1e-6, abs=0 if name == "double" else 1e-45)


def test_a_number_that_a_narrower_float_has_as_zero_does_not_fit() -> None:
    relation = LoadRelation("rows", {"x": "DOUBLE"})
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT unnest([0.0, 1e-300, 1.5, NULL]) AS x")
    condition = relation.misfits(Field(1, "x", Primitive("float")))
    assert connection.execute(f"SELECT x FROM rows WHERE {condition}").fetchall() == [(1e-300,)]


@pytest.mark.parametrize(
    ("given", "exact", "inexact"),
    [
        ("BIGINT", [2**53, 2**54 + 4, -(2**63), None], [2**53 + 1, 2**63 - 1]),
        ("UBIGINT", [2**53, 2**63], [2**53 + 1, 2**64 - 1]),
        ("HUGEINT", [2**53, 2**100], [-(2**53) - 1, 2**100 + 1]),
        ("DECIMAL(38,0)", [2**53, 2**100], [2**53 + 1, 10**30 + 1]),
        ("DECIMAL(20,2)", [2**53, "0.01", "12345678901234567.25"], [2**53 + 1]),
    ],
)
def test_a_whole_number_that_a_double_lacks_does_not_fit(
    given: str, exact: list[object], inexact: list[object]
) -> None:
    relation, column = LoadRelation("rows", {"x": given}), Field(1, "x", Primitive("double"))
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE rows (position INTEGER, x {given})")
    for position, value in enumerate([*exact, *inexact]):
        text = None if value is None else str(value)
        connection.execute(f"INSERT INTO rows SELECT {position}, CAST(? AS {given})", [text])
    found = connection.execute(
        f"SELECT position FROM rows WHERE {relation.misfits(column)} ORDER BY position"
    ).fetchall()
    assert [position for (position,) in found] == list(range(len(exact), len(exact) + len(inexact)))
    with pytest.raises(duckdb.Error):
        connection.execute(f"SELECT {relation.value(column)} FROM rows").fetchall()
