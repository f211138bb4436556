"""The newest snapshot of the history table, which is the project's lock.

The head moves by compare-and-swap only, so moving it takes, renews and releases the lock. The lock's data is
part of the snapshot and cannot be edited afterwards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen
from icemigrate.history.recorded_versions import EPOCH, check_time
from icemigrate.iceberg.json_text import read_values
from icemigrate.iceberg.table import Snapshot
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.system.process_identity import has_ended

EVENT_KEY = "event"
_FORMAT_KEY, _FORMAT = "head-format", 1
_LAST_PID = 2**31 - 1
_SHOWN = 40
_UNKNOWN = "unknown"


class LockInfo(Frozen, rename="kebab"):
    """The holder of the lock.

    :param run: a random id of this acquisition of the lock.
    :param user: by the operating system.
    :param since: when it was acquired, by the holder's clock; for display, not for computations.
    :param lease_s: seconds after which a head that did not move shows that the holder is gone.
    :param action: the command: ``apply`` or ``rollback``.
    :param step: the current step, in a few words.
    :param tables: names in the catalog of tables that may change without an intent of a version.
    :param process: identifies the process beyond its number; see :mod:`icemigrate.system.process_identity`.
    :param seen_at: when the head was moved last, by the writer's clock; for display only.
    :param damage: why entries of the head cannot be read; then only ``run``, ``user``, ``host`` and, where
        they can be read, ``tables`` have a meaning.
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
    process: str = ""
    seen_at: datetime | None = None
    damage: str = ""

    @property
    def is_taken_away(self) -> bool:
        """Whether `unlock` removed it: the rest only names tables to fence."""
        return self.lease_s <= 0

    @property
    def has_ended(self) -> bool:
        """Whether the holder is known to have ended: it ran on this machine, and runs no longer."""
        return has_ended(self.pid, self.process)

    def words(self) -> str:
        """User, host and time of the lock, as one phrase."""
        if self.damage:
            tables = "" if self.tables else "; the tables that it changes are unknown"
            return f"{self.user} on {self.host} (its entries cannot be read: {self.damage}{tables})"
        since = self.since.astimezone(timezone.utc).isoformat(sep=" ", timespec="seconds")
        who = f"{self.user} on {self.host} (process {self.pid}) since {since.replace('+00:00', ' UTC')}"
        return f"{who}, at: {self.step}" if self.step else who


class HistoryHead(Frozen):
    """The newest snapshot of the history.

    :param id: ``None`` without a snapshot.
    :param lock: ``None`` while no process holds it.
    """

    id: int | None
    lock: LockInfo | None = None


def head_summary(event: str, lock: LockInfo | None) -> dict[str, str]:
    """The summary of a snapshot of the history, keys with icemigrate's prefix.

    :param event: why the head moved: ``locked``, ``step``, ``started``, ``applied``, ``released``, …
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
            "process": lock.process,
        }
    return {SUMMARY_PREFIX + key: value for key, value in notes.items() if value}


def parse_head(snapshot: Snapshot | None) -> HistoryHead:
    """Read the head from the current snapshot of the history table.

    A snapshot that only rewrites files (compaction) keeps the content of the table; it ends every lock,
    because the holder finds that the head moved.  A lock with entries that cannot be read has a ``damage``.

    :raises HistoryError: another client wrote rows, or a newer release wrote it.
    """
    if snapshot is None:
        return HistoryHead(None)
    notes = snapshot.notes
    if EVENT_KEY not in notes:
        if snapshot.operation == "replace":
            return HistoryHead(snapshot.id)
        raise HistoryError(
            "its rows were altered by hand: its newest snapshot is not icemigrate's",
            "only icemigrate may change them: roll the table back to its newest snapshot whose summary has "
            f"`{SUMMARY_PREFIX}{EVENT_KEY}`",
        )
    if notes.get(_FORMAT_KEY) != str(_FORMAT):
        raise HistoryError(
            f"its head was written by a newer icemigrate (format {notes.get(_FORMAT_KEY, '')[:_SHOWN]}, "
            f"known is {_FORMAT})",
            "pip install --upgrade icemigrate",
        )
    if "run" not in notes:
        return HistoryHead(snapshot.id)
    tables: tuple[str, ...] = ()
    try:
        tables = _tables(notes)
        lock = _lock(notes, tables, snapshot.timestamp_ms)
    except ValueError as error:
        lock = _damaged_lock(notes, tables, str(error))
    return HistoryHead(snapshot.id, lock)


def _tables(notes: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return read_values(json.loads(notes.get("tables", "[]")), tuple[str, ...])
    except RecursionError as error:
        raise ValueError("tables: it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"tables: {error}") from error


def _lock(notes: Mapping[str, str], tables: tuple[str, ...], moved_ms: int) -> LockInfo:
    read = {**notes, "tables": tables, "seen-at": _seen_at(moved_ms), "damage": ""}
    lock = read_values(read, LockInfo, is_strict=False)
    if not 0 <= lock.pid <= _LAST_PID:
        raise ValueError(f"pid: `{notes['pid'][:_SHOWN]}` is no number of a process")
    if not (math.isfinite(lock.lease_s) and lock.lease_s >= 0):
        raise ValueError(f"lease-s: `{notes['lease-s'][:_SHOWN]}` is no number of seconds")
    check_time("since", lock.since)
    return lock


def _seen_at(moved_ms: int) -> datetime | None:
    try:
        return EPOCH + timedelta(milliseconds=moved_ms)
    except OverflowError:
        return None


def _damaged_lock(notes: Mapping[str, str], tables: tuple[str, ...], damage: str) -> LockInfo:
    user, host = notes.get("user", _UNKNOWN), notes.get("host", _UNKNOWN)
    return LockInfo(notes["run"], user, host, 0, EPOCH, 1.0, tables=tables, damage=damage)
