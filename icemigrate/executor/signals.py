"""Ctrl-C and ``SIGTERM`` while tables are changed: heard between two statements, never in the middle of one.

An exception out of a signal handler could tear a call to the JVM apart, whose answer would then be taken for
that of the next call.  The second Ctrl-C does raise, for whom a statement takes too long.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from icemigrate.errors import Stopped, Terminated

_TICK_S = 0.1


@dataclass(slots=True)
class Stop:
    """Whether the user asked to stop.

    :param signal: the number of the signal that was heard.
    """

    signal: int | None = None

    def check(self) -> None:
        """Go on, unless somebody asked to stop.

        :raises Stopped: he did.
        """
        if self.signal == signal.SIGTERM:
            raise Terminated("it was asked to end (SIGTERM)")
        if self.signal is not None:
            raise Stopped("you asked to stop")

    def wait(self, seconds: float) -> None:
        """Wait, and stop waiting when somebody asks to.

        :raises Stopped: he did.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _TICK_S))
        self.check()


@contextmanager
def heard() -> Iterator[Stop]:
    """A block in which both signals are only noted; they arrive in the main thread alone."""
    stop = Stop()

    def note(number: int, _frame: FrameType | None) -> None:
        if stop.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.signal = number

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # A handler that was not set from Python cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
