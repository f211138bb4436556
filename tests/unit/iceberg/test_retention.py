"""Retention: durations, and properties there and back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg.retention import (
    PROPERTIES,
    ROW_AGE,
    ROW_COLUMN,
    SNAPSHOT_AGE,
    SNAPSHOT_COUNT,
    BadDuration,
    format_duration,
    from_properties,
    parse_duration,
    parse_seconds,
    property_text,
    row_column,
    row_column_after_rename,
    to_properties,
)

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "ms", "printed"),
    [
        ("30d", 30 * DAY, "30d"),
        ("2w", 14 * DAY, "14d"),
        ("12h", DAY // 2, "12h"),
        ("24h", DAY, "1d"),
        ("90m", 5_400_000, "90m"),
        (" 5 s ", 5_000, "5s"),
        ("1500ms", 1_500, "1500ms"),
    ],
)
def test_durations(text: str, ms: int, printed: str) -> None:
    assert parse_duration(text) == ms
    assert format_duration(ms) == printed


@pytest.mark.parametrize("text", ["", "30", "d", "1.5d", "-1d", "30 days", "1y", "1d 2h", "\u0663d"])
def test_no_durations(text: str) -> None:
    with pytest.raises(BadDuration, match="`30d`"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("0", 0), ("0.5", 0.5), ("5s", 5), ("2m", 120), ("1h", 3600), ("200ms", 0.2)],
)
def test_seconds_have_a_unit_or_none(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "5 sec", "1m30s", "9" * 400 + "w"])
def test_no_seconds(text: str) -> None:
    with pytest.raises(BadDuration, match="`5s` or `2m`"):
        parse_seconds(text)


@given(st.integers(min_value=0, max_value=2**62))
def test_every_duration_is_read_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


RETENTION: dict[str, Any] = {
    "snapshots": {"max_age": "30d", "keep_at_least": 10},
    "rows": {"column": "exchange_timestamp", "max_age": "2555d"},
}
SAID = {
    SNAPSHOT_AGE: str(30 * DAY),
    SNAPSHOT_COUNT: "10",
    ROW_COLUMN: "exchange_timestamp",
    ROW_AGE: str(2555 * DAY),
}


def test_there_and_back() -> None:
    assert to_properties(RETENTION) == SAID
    assert from_properties({**SAID, "other": "1"}) == RETENTION
    assert from_properties({"other": "1"}) == {}


def test_values_may_be_durations() -> None:
    assert to_properties({"snapshots": {"max_age": timedelta(hours=1)}}) == {SNAPSHOT_AGE: "3600000"}


@pytest.mark.parametrize(
    ("retention", "properties"),
    [
        (None, dict.fromkeys(PROPERTIES)),
        ({}, {}),
        ({"rows": None}, {ROW_COLUMN: None, ROW_AGE: None}),
        ({"snapshots": None}, {SNAPSHOT_AGE: None, SNAPSHOT_COUNT: None}),
        ({"snapshots": {"max_age": None}}, {SNAPSHOT_AGE: None}),
        ({"snapshots": {"keep_at_least": None}}, {SNAPSHOT_COUNT: None}),
    ],
)
def test_parts_are_taken_away(retention: Any, properties: dict[str, str | None]) -> None:
    assert to_properties(retention) == properties


def test_properties_set_by_hand() -> None:
    odd = {SNAPSHOT_AGE: "never", SNAPSHOT_COUNT: "5", ROW_COLUMN: "a`", ROW_AGE: "1"}
    assert from_properties(odd) == {
        "snapshots": {"keep_at_least": 5},
        "rows": {"column": "a`", "max_age": "1ms"},
    }
    assert row_column(odd) is None
    assert from_properties({ROW_AGE: "1"}) == {}


def test_the_column_is_followed() -> None:
    properties = {ROW_COLUMN: "s.`odd at`", "x": "1"}
    assert row_column_after_rename(properties, ("s", "odd at"), ("s", "at")) == {ROW_COLUMN: "s.at", "x": "1"}
    assert row_column_after_rename(properties, ("s",), ("t",)) == {ROW_COLUMN: "t.`odd at`", "x": "1"}
    assert row_column_after_rename(properties, ("x",), ("y",)) == properties
    assert row_column_after_rename({"x": "1"}, ("x",), ("y",)) == {"x": "1"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (ROW_AGE, "220752000000", "220752000000 (2555d)"),
        (SNAPSHOT_AGE, "5400000", "5400000 (90m)"),
        (SNAPSHOT_AGE, "17", "17"),
        (SNAPSHOT_AGE, "0", "0"),
        (SNAPSHOT_AGE, "soon", "soon"),
        (SNAPSHOT_COUNT, "86400000", "86400000"),
    ],
)
def test_milliseconds_are_told_in_a_larger_unit_too(key: str, value: str, text: str) -> None:
    assert property_text(key, value) == text
