"""Times with a zone, as every supported version of Python has to read them."""

from __future__ import annotations

import pytest

from icemigrate.files.read.node_values import utc_time


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31 01:00:00+01:00", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T00:00:00.5Z", "2026-01-31T00:00:00.500000+00:00"),
        ("2026-01-31T00:00:00.1234-02:00", "2026-01-31T02:00:00.123400+00:00"),
        ("2026-01-31T00:00:00.123456Z", "2026-01-31T00:00:00.123456+00:00"),
        ("2026-01-32T00:00:00Z", None),
    ],
)
def test_a_time_is_read_with_any_zone_and_fraction(text: str, utc: str | None) -> None:
    assert utc_time(text) == utc
