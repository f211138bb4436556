"""The graph of a table's snapshots as SVG."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.render import display
from icemigrate.render.snapshot_graph import GraphRow, graph_rows
from icemigrate.render.svg_document import (
    BACKGROUND,
    DIM,
    GREEN,
    LANE_COLOURS,
    MONOSPACE,
    ORANGE,
    svg_document,
    svg_text,
)
from icemigrate.render.table_cells import short_text
from icemigrate.results.table_results import SnapshotInfo, SnapshotsResult

_ROW, _LANE, _MARGIN, _TOP, _DOT, _CHARACTER = 28, 18, 24, 64, 5, 7.9
_NAMED = 5


def snapshots_svg(result: SnapshotsResult) -> str:
    """The snapshots of a table with their branches and tags, the newest first."""
    rows = list(graph_rows(result.snapshots))
    lanes = max((max((row.lane, *row.through, *row.joining)) + 1 for row in rows), default=1)
    left = _MARGIN + lanes * _LANE
    labels = ["".join(text for text, _ in _spans(row.entry)) for row in rows]
    title = f"Snapshots of table {short_text(result.table)}"
    longest = max(map(len, [*labels, title]))
    width = round(left + _MARGIN + longest * _CHARACTER)
    body = svg_text(_MARGIN, 34, title, ' font-size="16" font-weight="bold"')
    if not rows:
        body += svg_text(_MARGIN, _TOP, "The table has no snapshots.")
    body += "".join(_lines(rows))
    for at, row in enumerate(rows):
        body += _snapshot(row, at, left)
    left_out = result.total - len(rows)
    height = _TOP + max(len(rows), 1) * _ROW + _MARGIN
    if left_out > 0:
        body += svg_text(left, height - 12, f"{left_out:,} older snapshots are not shown.", f' fill="{DIM}"')
    return svg_document(width, height, title, ". ".join(labels) or "No snapshots", body)


def _spans(entry: SnapshotInfo) -> Iterator[tuple[str, str]]:
    """The parts of a label, each with its colour."""
    yield f"{entry.snapshot_id}  ", ""
    names = [(name, GREEN) for name in entry.branches] + [(f"tag: {name}", ORANGE) for name in entry.tags]
    for name, colour in names[:_NAMED]:
        yield f"[{short_text(name)}]  ", colour
    if len(names) > _NAMED:
        yield f"and {len(names) - _NAMED:,} more  ", DIM
    rows = "" if entry.rows is None else f", {entry.rows:,} rows"
    operation = short_text(entry.operation or "no operation")
    yield f"{display.timestamp_text(entry.at)}, {operation}{rows}", DIM


def _snapshot(row: GraphRow, at: int, left: int) -> str:
    x, y, colour = _x(row.lane), _y(at), _colour(row.lane)
    fill = colour if row.entry.is_current else BACKGROUND
    dot = f'<circle cx="{x}" cy="{y}" r="{_DOT}" fill="{fill}" stroke="{colour}" stroke-width="2"/>\n'
    spans, x = "", left
    for text, colour in _spans(row.entry):
        look = f' fill="{colour}"' if colour else ""
        spans += svg_text(x, y + 4, text.rstrip(), f' font-family="{MONOSPACE}"{look}')
        x += round(len(text) * _CHARACTER)
    return dot + spans


def _lines(rows: list[GraphRow]) -> Iterator[str]:
    """The lines between snapshots, below their dots."""
    for at, row in enumerate(rows):
        for lane in row.through | ({row.lane} if row.has_parent else set()):
            if at + 1 < len(rows):
                # The next row has this lane, or the lane joins that row's own one.
                below = rows[at + 1]
                end = below.lane if lane in below.joining else lane
                yield _line(lane, at, end, at + 1)


def _line(lane: int, at: int, end: int, below: int) -> str:
    x, y, x2, y2 = _x(lane), _y(at), _x(end), _y(below)
    middle = (y + y2) // 2
    path = f"M{x},{y} V{y2}" if x == x2 else f"M{x},{y} C{x},{middle} {x2},{middle} {x2},{y2}"
    return f'<path d="{path}" fill="none" stroke="{_colour(max(lane, end))}" stroke-width="2"/>\n'


def _x(lane: int) -> int:
    return _MARGIN + lane * _LANE


def _y(at: int) -> int:
    return _TOP + at * _ROW


def _colour(lane: int) -> str:
    return LANE_COLOURS[lane % len(LANE_COLOURS)]
