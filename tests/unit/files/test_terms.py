"""Partition and sort terms."""

from __future__ import annotations

import pytest

from icemigrate.files.parse.term_text import (
    PartitionTerm,
    TermSyntaxError,
    format_partition,
    parse_partition,
    parse_sort,
)
from icemigrate.iceberg.partitioning import IDENTITY, SortTerm, Transform

TS, DAY = ("ts",), Transform("day")


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("ts", PartitionTerm(TS, IDENTITY)),
        (" ts as t ", PartitionTerm(TS, IDENTITY, "t")),
        ("identity(ts)", PartitionTerm(TS, IDENTITY)),
        ("day(ts)", PartitionTerm(TS, DAY)),
        ("DAYS ( ts ) AS exchange_date", PartitionTerm(TS, DAY, "exchange_date")),
        ("years(ts)", PartitionTerm(TS, Transform("year"))),
        ("months(ts)", PartitionTerm(TS, Transform("month"))),
        ("hours(ts)", PartitionTerm(TS, Transform("hour"))),
        ("bucket(16, id)", PartitionTerm(("id",), Transform("bucket", 16))),
        ("truncate(4,a.b)", PartitionTerm(("a", "b"), Transform("truncate", 4))),
        ("day(`odd, (one)`.x) as `my``name`", PartitionTerm(("odd, (one)", "x"), DAY, "my`name")),
        ("day(meta.ts) as meta.ts_day", PartitionTerm(("meta", "ts"), DAY, "meta.ts_day")),
        ("day", PartitionTerm(("day",), IDENTITY)),
        ("as as as", PartitionTerm(("as",), IDENTITY, "as")),
    ],
)
def test_partition_terms(text: str, term: PartitionTerm) -> None:
    assert parse_partition(text) == term
    assert parse_partition(format_partition(term.source, term.transform, term.name)) == term


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("ts", SortTerm(TS)),
        ("ts asc", SortTerm(TS)),
        ("ts desc", SortTerm(TS, IDENTITY, "desc", "nulls-last")),
        ("ts DESC NULLS FIRST", SortTerm(TS, IDENTITY, "desc", "nulls-first")),
        ("ts nulls last", SortTerm(TS, IDENTITY, "asc", "nulls-last")),
        ("bucket(4, x) asc nulls first", SortTerm(("x",), Transform("bucket", 4))),
        ("`a b` desc", SortTerm(("a b",), IDENTITY, "desc", "nulls-last")),
        ("asc desc", SortTerm(("asc",), IDENTITY, "desc", "nulls-last")),
    ],
)
def test_sort_terms(text: str, term: SortTerm) -> None:
    assert parse_sort(text) == term
    assert parse_sort(str(term)) == term


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "expected a column", None),
        ("day()", "expected a column", None),
        ("bucket(\u0661\u0666, a)", "needs its width", "bucket(16, "),
        ("dya(ts)", "unknown transform `dya`", "did you mean `day`?"),
        ("zorder(ts)", "unknown transform `zorder`", "there are bucket, day"),
        ("bucket(id)", "needs its width", "bucket(16, column)"),
        ("bucket(id, 16)", "needs its width", "write `bucket(16, id)`: the number first"),
        ("bucket(0, id)", "not between 1", None),
        ("bucket(99999999999, id)", "not between 1", None),
        ("day(ts", "expected `)`", "in backticks"),
        ("day(ts, x)", "expected `)`", "takes one column"),
        ("day(a b)", "expected `)`", "in backticks"),
        ("day(a..b)", "empty name", None),
        ("ts desc", "unexpected `desc`", "`sort_by`"),
        ("ts at", "unexpected `at`", "`as name`"),
        ("ts as", "unexpected `as`", "`as name`"),
    ],
)
def test_what_is_no_partition_term(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(TermSyntaxError) as caught:
        parse_partition(text)
    assert message in str(caught.value)
    assert caught.value.hint is None if hint is None else hint in (caught.value.hint or "")


def test_what_is_no_sort_term() -> None:
    with pytest.raises(TermSyntaxError, match="unexpected `as x`") as caught:
        parse_sort("ts desc as x")
    assert "nulls first" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["Adapter Name desc", "Adapter Name", "Adapter Name as x"])
def test_the_backticks_of_a_hint_are_balanced(text: str) -> None:
    for parse in (parse_sort, parse_partition):
        with pytest.raises(TermSyntaxError) as caught:
            parse(text)
        hint = caught.value.hint or ""
        assert hint.count("`") % 2 == 0
        assert "``" not in hint
