"""The forms of a time on the command line."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from icemigrate.errors import UsageError
from icemigrate.table_data.table_points import TIME_FORMS, parse_timestamp

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31", NOON - timedelta(hours=12)),
        (" 2026-01-31 ", NOON - timedelta(hours=12)),
        ("2026-01-31T12:00", NOON),
        ("2026-01-31 12:00", NOON),
        ("2026-01-31t12:00:00z", NOON),
        ("2026-01-31 12:00:00 UTC", NOON),
        ("2026-01-31 12:00:00UTC", NOON),
        ("2026-01-31 12:00:00 Z", NOON),
        ("2026-01-31 13:00:00 +01:00", NOON),
        ("2026-01-31T13:00:00+0100", NOON),
        ("2026-01-31 12:00:00.5", NOON + timedelta(seconds=0.5)),
        ("2026-01-31 12:00:00.123456789Z", NOON + timedelta(microseconds=123456)),
    ],
)
def test_a_time_may_have_any_of_these_forms(text: str, time: datetime) -> None:
    assert parse_timestamp(text) == time


@pytest.mark.parametrize("text", ["", "tuesday", "31.01.2026", "2026-02-30", "2026-01-31T25:00", "UTC"])
def test_another_text_is_one_error_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_timestamp(text, "--timestamp")
    assert (error.value.message, error.value.hint) == (f"`--timestamp`: `{text}` is not a time", TIME_FORMS)


def test_the_hint_has_forms_that_are_read() -> None:
    forms = TIME_FORMS.split("`")[1::2]
    assert len(forms) == 4
    assert {parse_timestamp(form).date().isoformat() for form in forms} == {"2026-01-31"}
