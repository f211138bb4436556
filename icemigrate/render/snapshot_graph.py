"""The lines from snapshots to their parents, as ``git log --graph`` lays commits out: newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.frozen import Frozen
from icemigrate.iceberg.table import MAIN_BRANCH
from icemigrate.results.table_results import SnapshotInfo


class GraphRow(Frozen):
    """A snapshot in the graph.

    :param lane: its column, from 0; that of main's head is 0.
    :param through: lanes that pass the row from newer snapshots to older ones.
    :param joining: lanes that end above the row, in the lane of this snapshot.
    :param has_child: whether a line comes from above.
    :param has_parent: whether a line goes on to the parent.
    :param is_cut: whether the parent is not shown: it expired, or a limit left it out.
    """

    entry: SnapshotInfo
    lane: int
    through: frozenset[int]
    joining: tuple[int, ...] = ()
    has_child: bool = False
    has_parent: bool = False
    is_cut: bool = False


def graph_rows(entries: Sequence[SnapshotInfo]) -> Iterator[GraphRow]:
    """The rows of a graph.

    :param entries: the oldest first.
    """
    shown = {entry.snapshot_id for entry in entries}
    head = next((entry.snapshot_id for entry in entries if MAIN_BRANCH in entry.branches), None)
    # What each lane waits for; the first one is for main, and is empty until its head comes.
    lanes: list[int | None] = [head]
    is_drawn = [False]
    for entry in _children_first(entries):
        mine = [at for at, wanted in enumerate(lanes) if wanted == entry.snapshot_id]
        lane = mine[0] if mine else _free_lane(lanes, is_drawn, 0 if head is None else 1)
        has_child = bool(mine) and is_drawn[lane]
        joining = tuple(mine[1:])
        for at in joining:
            lanes[at] = None
        parent = entry.parent_id if entry.parent_id in shown else None
        lanes[lane], is_drawn[lane] = parent, parent is not None
        through = frozenset(
            at for at, wanted in enumerate(lanes) if wanted is not None and is_drawn[at] and at != lane
        )
        yield GraphRow(
            entry,
            lane,
            through,
            joining,
            has_child,
            parent is not None,
            entry.parent_id is not None and parent is None,
        )


def _children_first(entries: Sequence[SnapshotInfo]) -> Iterator[SnapshotInfo]:
    """The newest first, and no snapshot before one that was made from it."""
    waiting: dict[int, int] = {}
    by_id = {entry.snapshot_id: entry for entry in entries}
    position = {entry.snapshot_id: at for at, entry in enumerate(entries)}
    for entry in entries:
        if entry.parent_id in by_id:
            assert entry.parent_id is not None
            waiting[entry.parent_id] = waiting.get(entry.parent_id, 0) + 1
    done = set[int]()
    for first in reversed(entries):
        ready = [first] if not waiting.get(first.snapshot_id) else []
        while ready:
            entry = ready.pop()
            if entry.snapshot_id in done:
                continue
            done.add(entry.snapshot_id)
            yield entry
            parent = by_id.get(entry.parent_id or 0)
            if parent is None:
                continue
            waiting[parent.snapshot_id] -= 1
            # One that was passed because of this child follows it at once.
            if not waiting[parent.snapshot_id] and position[parent.snapshot_id] > position[first.snapshot_id]:
                ready.append(parent)


def _free_lane(lanes: list[int | None], is_drawn: list[bool], first: int) -> int:
    """The lowest lane that waits for nothing.

    :param first: the lowest lane that is not reserved for main.
    """
    for at, wanted in enumerate(lanes):
        if wanted is None and at >= first:
            return at
    lanes.append(None)
    is_drawn.append(False)
    return len(lanes) - 1
