"""The head of the history table as the project's lock: who may change tables stands in the newest snapshot.

The head is moved by compare-and-swap alone, so a lock is taken, kept alive and given back by moving it.  What
it says is part of the snapshot and cannot be edited afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone

from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen, replace
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.model.table import Snapshot

EVENT_KEY = "event"
_FORMAT_KEY, _FORMAT = "head-format", 1


class LockInfo(Frozen):
    """Who holds the lock.

    :param run: a random word for this one holding of it.
    :param user: by the operating system.
    :param since: when it was taken, by the holder's clock; to be shown, never to be reckoned with.
    :param lease_s: seconds after which a head that does not move means that the holder is gone.
    :param action: what it is held for: ``apply`` or ``rollback``.
    :param step: what is being done, in a few words.
    :param tables: names in the catalog of tables that no intent of a version names, and that may change.
    :param seen_at: when the head was moved last, by the clock of whoever wrote it; to be shown only.
    """

    run: str
    user: str
    host: str
    pid: int
    since: datetime
    lease_s: float
    action: str = "apply"
    step: str = ""
    tables: tuple[str, ...] = ()
    seen_at: datetime | None = None

    @property
    def is_taken_away(self) -> bool:
        """Whether `unlock` took it away: what is left of it only names tables to fence."""
        return self.lease_s <= 0

    def words(self) -> str:
        """Who, where and since when, in one phrase."""
        since = self.since.astimezone(timezone.utc).isoformat(sep=" ", timespec="seconds")
        who = f"{self.user} on {self.host} (process {self.pid}) since {since.replace('+00:00', ' UTC')}"
        return f"{who}, at: {self.step}" if self.step else who


class Head(Frozen):
    """The newest snapshot of the history.

    :param id: ``None`` where there is none.
    :param lock: ``None`` where nobody holds it.
    """

    id: int | None
    lock: LockInfo | None = None


def summary(event: str, lock: LockInfo | None) -> dict[str, str]:
    """What a snapshot of the history says of itself, keys with icemigrate's prefix.

    :param event: what moved the head: ``locked``, ``step``, ``started``, ``applied``, ``released``, …
    """
    notes = {_FORMAT_KEY: str(_FORMAT), EVENT_KEY: event}
    if lock is not None:
        notes |= {
            "run": lock.run,
            "user": lock.user,
            "host": lock.host,
            "pid": str(lock.pid),
            "since": lock.since.isoformat(),
            "lease-s": f"{lock.lease_s:g}",
            "action": lock.action,
            "step": lock.step,
            "tables": json.dumps(lock.tables) if lock.tables else "",
        }
    return {SUMMARY_PREFIX + key: value for key, value in notes.items() if value}


def head_of(snapshot: Snapshot | None) -> Head:
    """What the history table's current snapshot says.

    A snapshot that only rewrites files (compaction) changes nothing of what the table holds; it ends every
    lock, since its holder finds the head moved.

    :raises HistoryError: somebody else wrote rows, a newer icemigrate wrote it, or it cannot be read.
    """
    if snapshot is None:
        return Head(None)
    notes = snapshot.notes
    if EVENT_KEY not in notes:
        if snapshot.operation == "replace":
            return Head(snapshot.id)
        raise HistoryError(
            "its rows were altered by hand: its newest snapshot is not icemigrate's",
            "only icemigrate may change them: roll the table back to its newest snapshot whose summary has "
            f"`{SUMMARY_PREFIX}{EVENT_KEY}`",
        )
    if notes.get(_FORMAT_KEY) != str(_FORMAT):
        raise HistoryError(
            f"its head was written by a newer icemigrate (format {notes.get(_FORMAT_KEY)}, "
            f"known is {_FORMAT})",
            "pip install --upgrade icemigrate",
        )
    try:
        return Head(snapshot.id, _lock(notes, snapshot.timestamp_ms))
    except (KeyError, ValueError) as error:
        raise HistoryError(f"its head cannot be read: {error}", "icemigrate unlock") from error


def _lock(notes: Mapping[str, str], moved_ms: int) -> LockInfo | None:
    if "run" not in notes:
        return None
    lock = LockInfo(
        run=notes["run"],
        user=notes["user"],
        host=notes["host"],
        pid=int(notes["pid"]),
        since=datetime.fromisoformat(notes["since"]),
        lease_s=float(notes["lease-s"]),
        action=notes["action"],
        step=notes.get("step", ""),
        tables=tuple(json.loads(notes.get("tables", "[]"))),
    )
    return replace(lock, seen_at=datetime.fromtimestamp(moved_ms / 1000, timezone.utc))
