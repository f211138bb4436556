"""Texts of a CSV file as values: the fast casts of plain texts give what DuckDB's own casts give."""

from __future__ import annotations

import duckdb
import pytest

from icemigrate.iceberg.types import Primitive
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
