"""Ctrl-C and ``SIGTERM`` while tables change: handled between two statements, never during one.

An exception from a signal handler could interrupt a call to the JVM, whose answer would then be read as that
of the next call.  The second Ctrl-C does raise, for statements that take too long.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from icemigrate.errors import Stopped, Terminated

_TICK_S = 0.1


@dataclass(slots=True)
class StopRequest:
    """Whether the user asked to stop.

    :param signal: the number of the signal that arrived.
    """

    signal: int | None = None

    def check(self) -> None:
        """Raise if the user asked to stop.

        :raises Stopped: the user did.
        """
        if self.signal == signal.SIGTERM:
            raise Terminated("stopped by SIGTERM")
        if self.signal is not None:
            raise Stopped("stopped by Ctrl-C")

    def wait(self, seconds: float) -> None:
        """Wait, and stop waiting when the user asks to stop.

        :raises Stopped: the user did.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _TICK_S))
        self.check()


@contextmanager
def watch_stop_signals(next_step: str = "") -> Iterator[StopRequest]:
    """A block in which both signals are only recorded; they arrive in the main thread only.

    The first one is answered at once on standard error: a statement may take minutes, and a user who sees
    nothing presses Ctrl-C again, which leaves more to clean up.

    :param next_step: what follows the current statement, such as ``undoing the migration``.
    """
    stop = StopRequest()

    def note(number: int, _frame: FrameType | None) -> None:
        if stop.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if stop.signal is None:
            _answer(number, next_step)
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


def _answer(number: int, next_step: str) -> None:
    then = f", then {next_step}" if next_step else ""
    again = "" if number == signal.SIGTERM else "; Ctrl-C again stops at once and leaves more to clean up"
    # A buffered stream must not be entered again by a signal handler.
    with suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), f"\nStopping after the current statement{then}{again}.\n".encode())
