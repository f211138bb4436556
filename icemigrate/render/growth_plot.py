"""The growth of a table as a plot for the terminal: rows, files and size over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from icemigrate.frozen import Frozen
from icemigrate.render.table_cells import number_text, size_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.describe_results import GrowthPoint

WIDTH, HEIGHT = 64, 6
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII = "    .:::#"
"""Characters for eighths of a line."""


class GrowthSeries(Frozen):
    """One number of a table over time.

    :param title: what it counts.
    :param times: in seconds since 1970, ascending.
    :param values: one for each time.
    :param text: writes a value.
    """

    title: str
    times: tuple[float, ...]
    values: tuple[int, ...]
    text: Callable[[int], str]


def growth_series(points: Sequence[GrowthPoint]) -> tuple[GrowthSeries, ...]:
    """Rows, data files and size over time; a series without a number is left out."""
    found = (
        _series("rows", points, [point.rows for point in points], number_text),
        _series("data files", points, [point.data_files for point in points], number_text),
        _series("size", points, [point.size_bytes for point in points], size_text),
    )
    return tuple(series for series in found if series.values)


def _series(
    title: str, points: Sequence[GrowthPoint], values: Sequence[int | None], text: Callable[[int], str]
) -> GrowthSeries:
    known = [(p.at.timestamp(), value) for p, value in zip(points, values, strict=True) if value is not None]
    known.sort(key=lambda pair: pair[0])
    return GrowthSeries(title, tuple(t for t, _ in known), tuple(v for _, v in known), text)


def sampled(series: GrowthSeries, columns: int) -> list[int]:
    """The value at each of so many equal steps of time: that of the last snapshot before it."""
    first, last = series.times[0], series.times[-1]
    found, at = list[int](), 0
    for column in range(columns):
        moment = first + (last - first) * column / max(1, columns - 1)
        # The last column has the newest value in spite of rounding.
        while at + 1 < len(series.times) and (
            series.times[at + 1] <= moment or column == columns - 1 or last == first
        ):
            at += 1
        found.append(series.values[at])
    return found


def plot_lines(points: Sequence[GrowthPoint], style: TerminalStyle) -> Iterator[str]:
    """The plots, one below the other."""
    series = growth_series(points)
    if not series:
        yield "No snapshot of main has numbers to plot."
        return
    for one in series:
        yield ""
        yield from _plot(one, style)
    first, last = time_labels(points)
    yield f"{'':>10}  {first}{last:>{WIDTH - len(first)}}"


def time_labels(points: Sequence[GrowthPoint]) -> tuple[str, str]:
    """The times of both ends of the axis in UTC; with seconds where they are in one minute."""
    first, last = points[0].at, points[-1].at
    form = "%Y-%m-%d %H:%M"
    if first.strftime(form) == last.strftime(form) and first != last:
        form += ":%S"
    return first.strftime(form), last.strftime(form)


def _plot(series: GrowthSeries, style: TerminalStyle) -> Iterator[str]:
    most = max(series.values)
    shades, edge, corner, base = (_ASCII, "|", "+", "-") if style.is_ascii else (_EIGHTHS, "│", "└", "─")
    heights = [round(value / most * HEIGHT * 8) if most else 0 for value in sampled(series, WIDTH)]
    yield style.bold(f"{series.title}: {series.text(series.values[-1])}")
    for line in reversed(range(HEIGHT)):
        label = series.text(most) if line == HEIGHT - 1 else ""
        cells = "".join(shades[max(0, min(8, height - line * 8))] for height in heights)
        yield f"{label:>10} {edge}{cells}".rstrip()
    yield f"{series.text(0):>10} {corner}{base * WIDTH}"
