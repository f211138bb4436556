"""The project's lock: the head of the history, taken and renewed by compare-and-swap.

No clock is compared with another one.  A waiter watches the head; when it has not moved for the holder's
lease *on the waiter's own clock*, the holder is gone.  A holder of the same machine that is known to have
ended is gone at once.  The holder counts its lease from before its last write, a waiter from when it saw
that write.  So the holder stops before a waiter takes over.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, RLock, Thread
from typing import Any, Protocol

from icemigrate.errors import EngineError, HeadMoved, IcemigrateError, LockHeld, LockLost
from icemigrate.frozen import replace
from icemigrate.history.head_snapshot import HistoryHead, LockInfo
from icemigrate.system.activity import activity
from icemigrate.system.deadline import duration_text
from icemigrate.system.process import is_debugging
from icemigrate.system.waits import announce_wait

LOCK_LEASE_S = 60.0
"""Time after which another process may take over from a silent holder."""
POLL_S = 1.0
"""Interval at which a waiting process reads the head."""
MIN_WRITE_INTERVAL_S = 1.0
"""A step that begins sooner after the last commit is written by the heartbeat, a little later."""
_BEATS_PER_LEASE = 4
_PATIENCE = 1.1
"""A waiter waits a tenth longer than the lease, for clocks that run at slightly different speeds."""


def boot_clock() -> float:
    """Monotonic seconds, which include sleep where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class HeadPort(Protocol):
    """The head of the history; see :class:`icemigrate.history.history_io.HistoryWriter`."""

    def head(self) -> HistoryHead:
        """The head as it is now."""
        ...

    def swap(
        self,
        expected: int | None,
        event: str,
        lock: LockInfo | None,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
    ) -> int:
        """Move the head.

        :param expected: the head that was read.
        :param lock: the holder in the new head.
        :returns: the new head.
        :raises HeadMoved: the head is not ``expected``; nothing was written.
        """
        ...


@dataclass(slots=True)
class Lock:
    """The lock of one project, for one run of icemigrate; thread-safe.

    :param holder: describes this process.
    :param clock: monotonic seconds.
    :param wait: waits some seconds; may raise :class:`~icemigrate.errors.Stopped`.
    """

    port: HeadPort
    holder: LockInfo
    clock: Callable[[], float] = boot_clock
    wait: Callable[[float], None] = time.sleep
    _head: int | None = None
    _held: bool = False
    _renewed: float = 0.0
    _step: str = ""
    _lost: LockLost | None = None
    _mutex: RLock = field(default_factory=RLock, repr=False)

    def acquire(
        self, timeout_s: float, on_wait: Callable[[LockInfo], None] = lambda lock: None
    ) -> LockInfo | None:
        """Take the lock.

        :param timeout_s: how long to wait for another holder; 0 for not at all.
        :param on_wait: called with each new holder.
        :returns: the previous holder, if the lock was taken over.
        :raises LockHeld: another process held it until the timeout.
        """
        words = ["Taking the lock"]
        with activity(lambda: words[0], is_announced=True):
            return self._acquire(timeout_s, on_wait, words)

    def _acquire(
        self, timeout_s: float, on_wait: Callable[[LockInfo], None], words: list[str]
    ) -> LockInfo | None:
        """See :meth:`acquire`; writes into ``words`` what is waited for."""
        began = self.clock()
        seen, since, announced_run = None, began, ""
        while True:
            head = self.port.head()
            if seen is None or head.id != seen.id:
                seen, since = head, self.clock()
            other = head.lock
            is_silent = other is None or self.clock() - since >= max(other.lease_s, 0.0) * _PATIENCE
            if other is None or is_silent or other.has_ended:
                # Its commits may still come, whatever becomes of this process.
                self.announce(() if other is None else other.tables)
                try:
                    self._move(head.id, "taken-over" if other else "locked")
                except HeadMoved:
                    continue  # another process was faster; look again
                if other is not None and not other.is_taken_away:
                    announce_wait(_takeover_text(other))
                return other
            if self.clock() - began >= timeout_s:
                raise LockHeld(
                    f"the lock is held by {other.words()}",
                    "wait longer with `--lock-timeout`; if that process is dead, the lock is free after "
                    f"{duration_text(other.lease_s)}, or at once after `icemigrate unlock`",
                )
            if other.run != announced_run:
                announced_run = other.run
                announce_wait(_wait_text(other, timeout_s))
                on_wait(other)
            words[0] = f"Waiting for the lock (held by {other.user} on {other.host})"
            self.wait(min(POLL_S, max(other.lease_s, 0.01)))

    def require(self) -> None:
        """Require that this process holds the lock.

        :raises LockLost: another process holds it, or its lease has run out.
        """
        with self._mutex:
            if self._lost is None and not self._held:
                self._lost = LockLost("the lock is not held")
            elif self._lost is None and self.clock() - self._renewed >= self.holder.lease_s:
                self._lost = LockLost(
                    f"the lock's lease of {self.holder.lease_s:g} s ran out before it was renewed",
                    "another process may have taken over; run `icemigrate status` first",
                )
            if self._lost is not None:
                raise self._lost

    def require_not_taken(self) -> None:
        """Require that no other process has taken the lock, whether the lease has run out or not.

        :raises LockLost: another process has it, or it was taken away.
        :raises EngineError: the head cannot be read.
        """
        with self._mutex:
            now = self.port.head().lock
            if now is None or now.run != self.holder.run:
                self._lost = self._taken()
                raise self._lost

    def write(
        self,
        event: str,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
        step: str | None = None,
    ) -> None:
        """Write to the history; that renews the lease too.

        :param step: the new current step; ``None`` where it stays.
        :raises LockLost: this process does not hold the lock any more; nothing was written.
        :raises EngineError: it could not be written.
        """
        with self._mutex:
            self.require()
            self._step = self._step if step is None else step
            try:
                self._move(self._head, event, rows, properties, remove)
            except HeadMoved as error:
                self._lost = self._taken()
                raise self._lost from error

    def step(self, text: str) -> None:
        """Write the current step; later, if the head moved less than a moment ago.

        :raises LockLost: this process does not hold the lock any more.
        """
        with self._mutex:
            self.require()
            self._step = text
            if self.clock() - self._renewed >= MIN_WRITE_INTERVAL_S:
                self.write("step")

    def announce(self, tables: tuple[str, ...]) -> None:
        """Add tables that may change to the lock, with its next write."""
        with self._mutex:
            self.holder = replace(self.holder, tables=tables)

    def renew_if_due(self) -> None:
        """Renew the lease when it is due, and write a step that is not written yet.

        :raises LockLost: this process does not hold the lock any more.
        :raises EngineError: it could not be written; the next call tries again.
        """
        with self._mutex:
            is_due = self.clock() - self._renewed >= self.holder.lease_s / _BEATS_PER_LEASE
            if self._held and (is_due or self._step != self.holder.step):
                self.write("step")

    def let_expire(self) -> None:
        """Let the lease run out, so that the next process takes the lock over and fences its tables."""
        with self._mutex:
            self._held = False

    def release(self) -> None:
        """Release the lock, if this process still holds it.

        :raises EngineError: the history cannot be written; the lock ends with its lease.
        """
        with self._mutex:
            if not self._held:
                return
            self._held = False
            if self._lost is None:
                with suppress(HeadMoved):  # another process took it over already
                    self.port.swap(self._head, "released", None)

    @property
    def head(self) -> int | None:
        """The head after this process moved it last."""
        return self._head

    def _move(
        self,
        expected: int | None,
        event: str,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        lock = replace(self.holder, step=self._step)
        # From before the commit: whoever watches sees it later, so our lease is over before theirs.
        now = self.clock()
        try:
            self._head = self.port.swap(expected, event, lock, rows, properties, remove)
        except HeadMoved:
            raise
        except EngineError:
            found = self.port.head()
            if found.id == expected or found.lock is None or found.lock.run != self.holder.run:
                raise
            self._head = found.id  # the write succeeded, but its answer was lost
        self.holder, self._held, self._renewed = lock, True, now

    def _taken(self) -> LockLost:
        other = self.port.head().lock
        if other is None or other.is_taken_away:
            return LockLost(
                "`icemigrate unlock` removed the lock, or another process wrote to the history",
                "run `icemigrate status` to see the state of the project",
            )
        return LockLost(
            f"the lock was taken over by {other.words()}",
            "wait until that process has finished, then run the command again",
        )


def _wait_text(holder: LockInfo, timeout_s: float) -> str:
    return (
        f"Waiting at most {duration_text(timeout_s)} for the lock, which is held by {holder.words()}. "
        f"If that process is dead, the lock is free after {duration_text(holder.lease_s)}. "
        "Ctrl-C stops waiting; nothing has changed yet."
    )


def _takeover_text(former: LockInfo) -> str:
    why = (
        "the process that held it has ended"
        if former.has_ended
        else f"the process that held it has not renewed it for {duration_text(former.lease_s)}"
    )
    return f"Took over the lock, because {why}: {former.words()}."


_PARTS = 4


class Heartbeat:
    """A thread that renews the lock until the block ends; it stops when the lock is lost."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._every_s = min(MIN_WRITE_INTERVAL_S, lock.holder.lease_s / _PARTS)
        self._done = Event()
        self._thread = Thread(target=self._run, name="icemigrate-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._every_s):
            try:
                self._lock.renew_if_due()
            except LockLost:
                return  # the next step of the holder reports it
            except IcemigrateError:
                continue  # the catalog did not answer; the lease says how long that may go on
            except Exception:  # Python would print its traceback; the lease bounds this failure too
                if is_debugging():
                    traceback.print_exc()
