"""Snapshots that files declare for branches and tags, and the snapshots that a table has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias

from icemigrate.frozen import Frozen

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
UNKNOWN_SNAPSHOT = -2
"""Snapshot id of a pinned reference where no catalog is asked."""


PinKey: TypeAlias = Literal["snapshot", "as_of", "branch"]
"""How a file names the snapshot: the key of its entry."""
PIN_KEYS: tuple[PinKey, ...] = ("snapshot", "as_of", "branch")


class SnapshotPin(Frozen, omit_defaults=True):
    """The declared snapshot of a branch or a tag.

    :param value: a snapshot's id, a time in UTC or a branch, by ``key``.
    :param snapshot_id: the snapshot that it meant in the plan; ``None`` in a file that is not planned yet.
    """

    key: PinKey
    value: str
    snapshot_id: int | None = None

    @property
    def text(self) -> str:
        """The pin as it is written in a file."""
        return f"`{self.key}: {self.value}`"


class SnapshotLog(Frozen):
    """A table's snapshots.

    :param times: the time of each snapshot in milliseconds since 1970, by its id.
    :param entries: the snapshots of the main branch with the times since which they were current, in the
        order of the log: of two in one millisecond the last is current.
    :param is_outdated: whether an earlier migration of the plan writes rows.
    """

    times: Mapping[int, int]
    entries: tuple[tuple[int, int], ...] = ()
    is_outdated: bool = False

    def as_of(self, at: str) -> int | None:
        """The snapshot that was current at a time, as Spark's ``TIMESTAMP AS OF`` finds it."""
        at_ms = (datetime.fromisoformat(at) - _EPOCH) // timedelta(milliseconds=1)
        found = [snapshot_id for ms, snapshot_id in self.entries if ms <= at_ms]
        return found[-1] if found else None

    def time_text(self, snapshot_id: int) -> str:
        """The time of a snapshot, in UTC, in parentheses; empty where it is unknown."""
        ms = self.times.get(snapshot_id)
        return "" if ms is None else f" ({time_text(ms)})"


def time_text(ms: int) -> str:
    """A time in milliseconds since 1970 as text, in UTC."""
    try:
        return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{ms} ms after 1970"


def snapshot_log(metadata: Mapping[str, Any]) -> SnapshotLog:
    """The snapshots in the JSON of a metadata file that was read before."""
    times = {s["snapshot-id"]: s["timestamp-ms"] for s in metadata.get("snapshots") or ()}
    entries = ((e["timestamp-ms"], e["snapshot-id"]) for e in metadata.get("snapshot-log") or ())
    return SnapshotLog(times, tuple(e for e in entries if e[1] in times))
