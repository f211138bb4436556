"""The graph of a table's snapshots, as text and as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from datetime import datetime, timezone

import pytest

from icemigrate.frozen import replace
from icemigrate.render.formats import render
from icemigrate.render.snapshot_graph import graph_rows
from icemigrate.render.snapshot_svg import snapshots_svg
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle
from icemigrate.results.table_results import SnapshotInfo, SnapshotsResult

_AT = datetime(2026, 11, 27, 20, 37, tzinfo=timezone.utc)


def _entries(*parents: tuple[int, int | None, str]) -> tuple[SnapshotInfo, ...]:
    """Snapshots of id, parent and branch, the oldest first."""
    return tuple(
        SnapshotInfo(
            number, parent, _AT, "append", branch == "main", (branch,) if branch else (), rows=number
        )
        for number, parent, branch in parents
    )


def _graph(entries: tuple[SnapshotInfo, ...], style: TerminalStyle = PLAIN_STYLE) -> list[str]:
    result = SnapshotsResult("sales.orders", "sales.orders", entries, len(entries), True)
    lines = render(result, "text", style).splitlines()
    return [line.split("  2026")[0].rstrip() for line in lines]


LINE = _entries((1, None, ""), (2, 1, ""), (3, 2, "main"))
BRANCHED = _entries((1, None, ""), (2, 1, "audit"), (3, 1, "main"), (4, 2, ""), (5, 4, "other"))


def test_a_line_of_snapshots() -> None:
    assert _graph(LINE) == ["● 3  (main)", "○ 2", "○ 1"]


def test_branches_join_at_their_parent() -> None:
    assert _graph(BRANCHED) == [
        "  ○ 5  (other)",
        "  ○ 4",
        "● │ 3  (main)",
        "│ ○ 2  (audit)",
        "├─╯",
        "○   1",
    ]


def test_three_children_of_one_snapshot_join_in_one_line() -> None:
    entries = _entries((1, None, ""), (2, 1, "a"), (3, 1, "b"), (4, 1, "main"))
    assert _graph(entries)[3:] == ["├─┴─╯", "○     1"]


def test_ascii_where_the_stream_has_no_other_characters() -> None:
    shown = _graph(BRANCHED, TerminalStyle(is_ascii=True))
    assert "|-'" in [line.replace("+-'", "|-'") for line in shown]
    assert all(line.isascii() for line in shown)


def test_a_parent_that_expired_or_is_left_out_is_named() -> None:
    entries = _entries((7, 6, "main"))
    result = SnapshotsResult("t", "t", entries, 4, True)
    shown = render(result, "text")
    assert "(its parent is not shown)" in shown
    assert "3 older snapshots are not shown: `--limit 0` shows all." in shown


def test_a_child_with_an_older_time_comes_before_its_parent() -> None:
    entries = _entries((2, 1, "main"), (1, None, ""))
    assert [row.entry.snapshot_id for row in graph_rows(entries)] == [2, 1]


def test_snapshots_in_a_circle_end() -> None:
    assert list(graph_rows(_entries((1, 2, ""), (2, 1, "main")))) == []


def test_many_branches_are_as_wide_as_a_terminal() -> None:
    entries = _entries((1, None, "main"), *((number, 1, f"b{number}") for number in range(2, 200)))
    assert max(map(len, _graph(entries))) < 60


@pytest.mark.parametrize("is_graph", [False, True])
def test_hostile_names_stay_on_their_line(is_graph: bool) -> None:
    name = "x\x1b[31m\nroot</text><script>" + "y" * 5_000
    entry = replace(LINE[-1], branches=("main", name), tags=tuple(f"t{i}" for i in range(50)))
    result = SnapshotsResult("t", "t", (*LINE[:-1], entry), 3, is_graph)
    shown = render(result, "text")
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3 + (not is_graph)
    assert max(map(len, shown.splitlines())) < 500
    assert "and 47 more" in shown


def test_a_picture_has_a_title_and_escaped_names() -> None:
    entry = replace(LINE[-1], branches=("main", '<b onload="x">\x1b'))
    root = ElementTree.fromstring(snapshots_svg(SnapshotsResult("a<b", "a", (*LINE[:-1], entry), 3)))
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "Snapshots of table a<b"
    assert "main" in (root.findtext(f"{space}desc") or "")
    texts = [element.text or "" for element in root.iter(f"{space}text")]
    assert '[<b onload="x">\\u001b]' in texts
    assert len(list(root.iter(f"{space}circle"))) == 3


def test_a_picture_of_no_snapshots() -> None:
    root = ElementTree.fromstring(snapshots_svg(SnapshotsResult("t", "t", ())))
    assert "The table has no snapshots." in "".join(root.itertext())
