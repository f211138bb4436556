"""A deadline for what waits for a network: for the whole call, not for each read, so that a drip ends too."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

DEFAULT_SECONDS = 30.0
"""How long a catalog may take for one answer, where the project file has no ``timeout``."""

_Result = TypeVar("_Result")


class Overdue(TimeoutError):
    """There was no answer in time.

    :param seconds: how long it was waited for.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {duration_text(seconds)}")
        self.seconds = seconds


def within(seconds: float, act: Callable[[], _Result]) -> _Result:
    """The result of a call, or the exception that it raises.

    The call runs in a thread of its own.  One that is overdue is left alone there: nothing can end it, and it
    does not keep the process from ending.

    :raises Overdue: it did not return in time.
    """
    outcome: SimpleQueue[tuple[_Result | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((act(), None))
        except BaseException as error:  # it is raised where the result is waited for
            outcome.put((None, error))

    Thread(target=run, daemon=True, name="icemigrate-deadline").start()
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        raise Overdue(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def duration_text(seconds: float) -> str:
    """Seconds as a person writes them: ``30 s``, ``0.5 s``, ``2 min``."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:g} s"
