"""What a command is waiting for: activities that code announces, and the display that shows the innermost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Describe: TypeAlias = Callable[[], str]


@dataclass(slots=True, eq=False)
class Activity:
    """Something that can take a while.

    :param describe: what is done, now: ``Reading 12 of 40 tables``.  Called from another thread.
    :param is_announced: whether a line already says what is done, so that only a spinner is of use.
    :param began: on the monotonic clock.
    """

    describe: Describe
    is_announced: bool = False
    began: float = field(default_factory=time.monotonic)


class ActivityDisplay(Protocol):
    """Shows activities to a user; thread-safe."""

    def begin(self, activity: Activity) -> None:
        """Show an activity, if it lasts."""
        ...

    def end(self, activity: Activity) -> None:
        """Show it no more."""
        ...

    def hidden(self, column: int, end_line: Callable[[], None] | None) -> AbstractContextManager[None]:
        """A block that writes to the terminal, during which the display shows nothing.

        :param column: how many characters are in the line that the block leaves unfinished.
        :param end_line: ends that line.
        """
        ...


_displays: list[ActivityDisplay] = []


@contextmanager
def show_activities(display: ActivityDisplay) -> Iterator[None]:
    """A block whose activities are shown."""
    _displays.append(display)
    try:
        yield
    finally:
        _displays.remove(display)


@contextmanager
def activity(what: str | Describe, *, is_announced: bool = False) -> Iterator[None]:
    """A block that may take a while; only those of the main thread are what the user waits for.

    :param what: a text, or a function that gives the text of the moment.
    :param is_announced: see :class:`Activity`.
    """
    if not _displays or threading.current_thread() is not threading.main_thread():
        yield
        return
    display = _displays[-1]
    begun = Activity(what if callable(what) else lambda: what, is_announced)
    display.begin(begun)
    try:
        yield
    finally:
        display.end(begun)


@contextmanager
def counted_activity(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A block of many equal parts, which calls the function that it gets after each of them.

    :param what: the text, with ``{}`` for ``12 of 40``.
    """
    done = 0

    def count_one() -> None:
        nonlocal done
        done += 1

    with activity(lambda: what.format(f"{done} of {total}" if total > 1 else str(total))):
        yield count_one


def reading_tables(total: int) -> AbstractContextManager[Callable[[], None]]:
    """A block that reads tables from a catalog."""
    return counted_activity(f"Reading {{}} table{'' if total == 1 else 's'}", total)


def hidden_activity(
    column: int = 0, end_line: Callable[[], None] | None = None
) -> AbstractContextManager[None]:
    """A block that writes to the terminal; see :meth:`ActivityDisplay.hidden`."""
    return _displays[-1].hidden(column, end_line) if _displays else nullcontext()
