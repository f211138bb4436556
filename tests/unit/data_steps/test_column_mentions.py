"""Whether an SQL expression plainly reads a column."""

from __future__ import annotations

import pytest

from icemigrate.data_steps.column_mentions import is_column_mentioned


@pytest.mark.parametrize(
    "expression",
    [
        "date",
        "`date` + 1",
        "cast(`date` as date)",
        "coalesce(day, DATE)",
        "a+date*2",
        "'date' || date",
        "concat(r'\\', date, 'x')",
    ],
)
def test_a_word_of_its_own_is_read(expression: str) -> None:
    assert is_column_mentioned(expression, ("date",))


@pytest.mark.parametrize(
    "expression",
    [
        "'date'",
        "'it\\'s a date'",
        "date '2020-01-01'",
        "date(at)",
        "cast(at as date)",
        "payload.date",
        "payload.`date`",
        "date_of_trade",
        "update",
        "at -- the date",
        "transform(all, date -> date + 1)",
        "(select max(date) from other)",
    ],
)
def test_what_may_mean_something_else_is_let_be(expression: str) -> None:
    assert not is_column_mentioned(expression, ("date",))


@pytest.mark.parametrize("column", ["end", "When", "is", "null", "current_date"])
def test_a_word_of_expressions_is_no_column_unless_it_is_quoted(column: str) -> None:
    assert not is_column_mentioned("case when a is null then current_date else b end", (column,))
    assert is_column_mentioned(f"a + `{column}`", (column,))


def test_a_field_is_read_with_all_that_it_stands_in() -> None:
    read = ["s.a", "S . `A`", "upper(`s`.a)", "1 + s.a.b", "s.`a`"]
    other = ["s.ab", "t.s.a", "s.a(1)", "'s.a'", "a", "transform(l, s -> s.a)"]
    assert [is_column_mentioned(text, ("s", "a")) for text in (*read, *other)] == [True] * 5 + [False] * 6
