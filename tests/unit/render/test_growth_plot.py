"""Plots of a table's growth for the terminal and as SVG."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from icemigrate.render.growth_plot import HEIGHT, WIDTH, growth_series, plot_lines, sampled
from icemigrate.render.table_cells import short_text
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle
from icemigrate.results.describe_results import GrowthPoint

_START = datetime(2026, 11, 1, tzinfo=timezone.utc)


def _points(*rows: int | None, hours: int = 1) -> list[GrowthPoint]:
    return [GrowthPoint(n, _START + timedelta(hours=n * hours), value) for n, value in enumerate(rows)]


def test_the_height_is_that_of_the_largest_value() -> None:
    lines = list(plot_lines(_points(0, 8, 4), PLAIN_STYLE))
    top, bottom = lines[2], lines[1 + HEIGHT]
    assert "█" in top
    assert top.index("█") > bottom.index("█") - 1
    assert lines[1] == "rows: 4"
    assert all(len(line) <= WIDTH + 14 for line in lines)


def test_times_within_a_minute_have_seconds() -> None:
    points = [GrowthPoint(n, _START + timedelta(seconds=n * 17), n) for n in range(2)]
    assert list(plot_lines(points, PLAIN_STYLE))[-1].split() == [
        *("2026-11-01", "00:00:00"),
        *("2026-11-01", "00:00:17"),
    ]
    last = list(plot_lines(_points(1, 2), PLAIN_STYLE))[-1]
    assert last.split() == ["2026-11-01", "00:00", "2026-11-01", "01:00"]
    assert len(last) == WIDTH + 12


def test_ascii_where_the_stream_has_no_blocks() -> None:
    assert all(line.isascii() for line in plot_lines(_points(1, 2, 3), TerminalStyle(is_ascii=True)))


@pytest.mark.parametrize(
    ("rows", "first", "last"),
    [((5,), 5, 5), ((1, 9), 1, 9), ((0, 0), 0, 0), (tuple(range(10_000)), 0, 9_999), ((None, 3, None), 3, 3)],
)
def test_a_sample_begins_and_ends_with_the_values(
    rows: tuple[int | None, ...], first: int, last: int
) -> None:
    (series,) = growth_series(_points(*rows))
    values = sampled(series, WIDTH)
    assert (len(values), values[-1]) == (WIDTH, last)
    assert values[0] == (first if len(series.values) > 1 else last)


def test_snapshots_of_one_moment_show_the_newest() -> None:
    (series,) = growth_series(_points(1, 2, 3, hours=0))
    assert set(sampled(series, WIDTH)) == {3}


def test_long_text_keeps_its_ends() -> None:
    assert short_text("a" * 10_000_000 + "end", 30).endswith("aend")
    assert len(short_text("x\x1b" * 1_000_000, 30)) <= 30
    assert short_text("short") == "short"
