"""Values of Python in the SQL of an update."""

from __future__ import annotations

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.api.sql_values import expressions


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e6, 1e6))
def test_a_number_keeps_all_of_its_digits(value: float) -> None:
    text = expressions({"v": value})["v"]
    ((found,),) = duckdb.execute(f"SELECT CAST({text} AS DOUBLE)").fetchall()
    assert repr(found) == repr(value)


@given(st.integers(-(10**40), 10**40))
def test_a_whole_number_is_written_in_its_digits(value: int) -> None:
    assert expressions({"v": value}) == {"v": str(value)}
