"""The growth of a table as SVG: rows, data files and size over time."""

from __future__ import annotations

from icemigrate.render.growth_plot import GrowthSeries, growth_series, time_labels
from icemigrate.render.svg_document import BLUE, DIM, LANE_COLOURS, LINE, svg_document, svg_text
from icemigrate.render.table_cells import short_text
from icemigrate.results.describe_results import DescribeResult

_WIDTH, _CHART, _GAP, _TOP, _LEFT, _RIGHT = 760, 120, 46, 78, 96, 24
_MOST_POINTS = 2_000


def growth_svg(result: DescribeResult) -> str:
    """Three charts, one below the other, with a common time axis."""
    title = f"Growth of table {short_text(result.table)}"
    series = growth_series(result.growth)
    body = svg_text(24, 34, title, ' font-size="16" font-weight="bold"')
    if not series:
        body += svg_text(24, _TOP, "No snapshot of main has numbers to plot.")
        return svg_document(_WIDTH, _TOP + 40, title, "No numbers to plot", body)
    for at, one in enumerate(series):
        body += _chart(one, _TOP + at * (_CHART + _GAP), LANE_COLOURS[at % len(LANE_COLOURS)])
    bottom = _TOP + len(series) * (_CHART + _GAP) - _GAP + 22
    first, last = time_labels(result.growth)
    body += svg_text(_LEFT, bottom, f"{first} UTC", f' fill="{DIM}" font-size="12"')
    end = f' fill="{DIM}" font-size="12" text-anchor="end"'
    body += svg_text(_WIDTH - _RIGHT, bottom, f"{last} UTC", end)
    words = [f"{one.title} from {one.text(one.values[0])} to {one.text(one.values[-1])}" for one in series]
    return svg_document(_WIDTH, bottom + 20, title, "; ".join(words), body)


def _chart(series: GrowthSeries, top: int, colour: str = BLUE) -> str:
    most = max(series.values) or 1
    first, last = series.times[0], series.times[-1]
    right = _WIDTH - _RIGHT
    scale = (right - _LEFT) / ((last - first) or 1)
    step = max(1, len(series.values) // _MOST_POINTS)
    pairs = list(zip(series.times, series.values, strict=True))
    shown = [*pairs[::step], pairs[-1]]
    path = f"M{_LEFT},{_y(series.values[0], most, top):.1f}"
    for moment, value in shown:
        path += f" H{_LEFT + (moment - first) * scale:.1f} V{_y(value, most, top):.1f}"
    path += f" H{right}"
    end = f' fill="{DIM}" font-size="12" text-anchor="end"'
    frame = f"M{_LEFT},{top} H{right} M{_LEFT},{top + _CHART} H{right}"
    return (
        svg_text(_LEFT, top - 8, f"{series.title}: {series.text(series.values[-1])}", ' font-weight="bold"')
        + f'<path d="{frame}" stroke="{LINE}" fill="none"/>\n'
        + svg_text(_LEFT - 8, top + 5, series.text(max(series.values)), end)
        + svg_text(_LEFT - 8, top + _CHART + 4, series.text(0), end)
        + f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>\n'
    )


def _y(value: int, most: int, top: int) -> float:
    return top + _CHART - value / most * _CHART
