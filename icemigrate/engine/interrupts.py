"""Ctrl-C and ``SIGTERM`` while Spark's session is made: never in the middle of a call to the JVM.

An exception out of a signal handler tears the call apart that Python waits in.  Its answer is taken for that
of the next call, which PySpark makes at once, to stop what it was making; and Spark's context is left half
made, so that there can be no other.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeAlias

_Handler: TypeAlias = "Callable[[int, FrameType | None], Any]"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Held:
    """Signals that are only noted for now.

    :param end: lets the call that is waited for fail soon: whoever asked to stop shall not wait for it.
    :param handlers: of the signals that are held back, as they were before.
    :param heard: the signal that came, if one did.
    """

    end: Callable[[], object]
    handlers: dict[int, _Handler] = field(default_factory=dict)
    heard: int | None = None

    def hold(self) -> None:
        """From here on; once more after something has set a handler of its own."""
        for number in self.handlers:
            signal.signal(number, self._note)

    def let_go(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def deliver(self) -> None:
        """Let the handler have what was heard, which raises, as a rule."""
        if self.heard is not None:
            self.handlers[self.heard](self.heard, None)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.heard = number
        self.end()


@contextmanager
def held_back(end: Callable[[], object]) -> Iterator[Held]:
    """A block in which signals are held back; what came meanwhile is delivered behind it, however it ended.

    The handlers from before are in place again then, and not the one that PySpark sets for Ctrl-C, which
    calls the JVM in the middle of another call.  Signals that nobody handles in Python, or that are ignored,
    stay as they are; they arrive in the main thread alone.

    :param end: see :class:`Held`.
    """
    held = Held(end)
    if threading.current_thread() is threading.main_thread():
        found = ((number, signal.getsignal(number)) for number in _SIGNALS)
        held.handlers = {number: handler for number, handler in found if callable(handler)}
    held.hold()
    try:
        yield held
    finally:
        held.let_go()
        held.deliver()
