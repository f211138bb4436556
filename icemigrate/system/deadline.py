"""A deadline for calls that wait for a network: for the whole call, so that a slow drip of data ends too."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from icemigrate.system.waits import announce_if_slow

DEFAULT_SECONDS = 30.0
"""How long a catalog may take for one answer, where the project file has no ``timeout``."""

_Result = TypeVar("_Result")


class DeadlineExceeded(TimeoutError):
    """There was no answer in time.

    :param seconds: the limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {duration_text(seconds)}")
        self.seconds = seconds


def call_with_deadline(seconds: float, act: Callable[[], _Result], of: str = "the catalog") -> _Result:
    """The result of a call, or the exception that it raises.

    The call runs in its own thread.  An overdue call continues there: nothing can end it, and it does not
    prevent the process from ending.

    :param of: what is waited for; shown while a slow call lasts.
    :raises DeadlineExceeded: it did not return in time.
    """
    outcome: SimpleQueue[tuple[_Result | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((act(), None))
        except BaseException as error:  # it is raised where the result is waited for
            outcome.put((None, error))

    Thread(target=run, daemon=True, name="icemigrate-deadline").start()
    try:
        with announce_if_slow(f"Waiting for an answer from {of}, at most {duration_text(seconds)} …"):
            result, error = outcome.get(timeout=seconds)
    except Empty:
        raise DeadlineExceeded(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def duration_text(seconds: float) -> str:
    """Seconds as a person writes them: ``30 s``, ``0.5 s``, ``2 min``."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:g} s"
