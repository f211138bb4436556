"""One at a time per project: the history's head as a lock, taken and kept by compare-and-swap.

No clock is compared with another one.  A waiter watches the head; when it has not moved for the holder's
lease *on the waiter's own clock*, the holder is gone.  The holder measures from before it last moved the
head, so its lease ends first, and it stops before its next commit when that is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Protocol

from icemigrate.errors import EngineError, HeadMoved, LockHeld, LockLost
from icemigrate.frozen import replace
from icemigrate.history.head import Head, LockInfo

LEASE_S = 60.0
"""How long a holder may be silent before somebody else takes over."""
POLL_S = 1.0
"""How often a waiter looks."""
QUIET_S = 1.0
"""A step that begins sooner after the last commit is written by the heartbeat, a little later."""
_BEATS_PER_LEASE = 4
_PATIENCE = 1.1
"""A waiter waits a tenth longer than the lease, for clocks that run at slightly different speeds."""


def boot_clock() -> float:
    """Seconds that never jump and go on while the machine sleeps, where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class HeadPort(Protocol):
    """The head of the history; see :class:`icemigrate.history.write.HistoryWriter`."""

    def head(self) -> Head:
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
        :param lock: what the new head says of who holds the lock.
        :returns: the new head.
        :raises HeadMoved: it was another one; nothing was written.
        """
        ...


@dataclass(slots=True)
class Lock:
    """The lock of one project, held by one call of icemigrate.  Threads may share it.

    :param mine: what is said of the holder.
    :param clock: seconds that never go back.
    :param wait: waits some seconds; may raise when the user asks to stop.
    """

    port: HeadPort
    mine: LockInfo
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

        :param timeout_s: how long to wait for whoever holds it; 0 for not at all.
        :param on_wait: told who holds it, whenever that is somebody new.
        :returns: whoever held it and is gone, if it was taken over.
        :raises LockHeld: somebody held it all the while.
        """
        began = self.clock()
        seen, since, told = None, began, ""
        while True:
            head = self.port.head()
            if seen is None or head.id != seen.id:
                seen, since = head, self.clock()
            other = head.lock
            if other is None or self.clock() - since >= max(other.lease_s, 0.0) * _PATIENCE:
                # Its commits may still come, whatever becomes of this process.
                self.announce(() if other is None else other.tables)
                try:
                    self._move(head.id, "taken-over" if other else "locked")
                except HeadMoved:
                    continue  # somebody else was faster; look again
                return other
            if self.clock() - began >= timeout_s:
                raise LockHeld(
                    f"the lock is held by {other.words()}",
                    "wait with `--lock-timeout`; if that process is gone, its lock is taken over after "
                    f"{other.lease_s:g} s, or at once after `icemigrate unlock`",
                )
            if other.run != told:
                told = other.run
                on_wait(other)
            self.wait(min(POLL_S, max(other.lease_s, 0.01)))

    def require(self) -> None:
        """Go on only while the lock is ours.

        :raises LockLost: it is not, or its lease has run out.
        """
        with self._mutex:
            if self._lost is None and not self._held:
                self._lost = LockLost("the lock is not held")
            elif self._lost is None and self.clock() - self._renewed >= self.mine.lease_s:
                self._lost = LockLost(
                    f"the lock's lease of {self.mine.lease_s:g} s ran out before it could be renewed",
                    "somebody else may be at work by now: look at `icemigrate status`, then go on",
                )
            if self._lost is not None:
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

        :param step: what is being done from now on; ``None`` where that stays.
        :raises LockLost: the lock is not ours any more; nothing was written.
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
        """Say what is being done now; at once, unless the head was moved a moment ago.

        :raises LockLost: the lock is not ours any more.
        """
        with self._mutex:
            self.require()
            self._step = text
            if self.clock() - self._renewed >= QUIET_S:
                self.write("step")

    def announce(self, tables: tuple[str, ...]) -> None:
        """Have the lock say which tables may change, from its next write on."""
        with self._mutex:
            self.mine = replace(self.mine, tables=tables)

    def beat(self) -> None:
        """Renew the lease when it is time, and write a step that is not written yet.

        :raises LockLost: the lock is not ours any more.
        :raises EngineError: it could not be written; the next beat may be luckier.
        """
        with self._mutex:
            is_due = self.clock() - self._renewed >= self.mine.lease_s / _BEATS_PER_LEASE
            if self._held and (is_due or self._step != self.mine.step):
                self.write("step")

    def abandon(self) -> None:
        """Let the lease run out, so that the next process takes the lock over instead of finding it free."""
        with self._mutex:
            self._held = False

    def release(self) -> None:
        """Give the lock back, if it is still ours.

        :raises EngineError: the history cannot be written; the lease will end it.
        """
        with self._mutex:
            if not self._held:
                return
            self._held = False
            if self._lost is None:
                with suppress(HeadMoved):  # somebody took it over already
                    self.port.swap(self._head, "released", None)

    @property
    def head(self) -> int | None:
        """The head as we left it."""
        return self._head

    def _move(
        self,
        expected: int | None,
        event: str,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        lock = replace(self.mine, step=self._step)
        # From before the commit: whoever watches sees it later, so our lease is over before theirs.
        now = self.clock()
        try:
            self._head = self.port.swap(expected, event, lock, rows, properties, remove)
        except HeadMoved:
            raise
        except EngineError:
            found = self.port.head()
            if found.id == expected or found.lock is None or found.lock.run != self.mine.run:
                raise
            self._head = found.id  # it failed only in telling that it succeeded
        self.mine, self._held, self._renewed = lock, True, now

    def _taken(self) -> LockLost:
        other = self.port.head().lock
        if other is None or other.is_taken_away:
            return LockLost(
                "the lock was taken away, or the history was written by somebody else",
                "`icemigrate status` shows where the project stands",
            )
        return LockLost(
            f"the lock was taken over by {other.words()}",
            "wait until it has finished, then run the command again",
        )
