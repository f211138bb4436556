"""Waits for other processes and servers: one line each while they last, so that none looks like a hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

SLOW_S = 3.0
"""An answer that takes longer is announced."""
_listeners: list[Callable[[str], None]] = []


def announce_wait(text: str) -> bool:
    """Pass one line to every :func:`show_waits`; may be called from any thread.

    :returns: whether there is one.
    """
    for listen in tuple(_listeners):
        listen(text)
    return bool(_listeners)


@contextmanager
def show_waits(listen: Callable[[str], None]) -> Iterator[None]:
    """A block during which each wait is passed to ``listen``, and the same text only once."""
    seen: set[str] = set()

    def once(text: str) -> None:
        if text not in seen:
            seen.add(text)
            listen(text)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)


@contextmanager
def announce_if_slow(text: str) -> Iterator[None]:
    """A block that is announced if it takes longer than :data:`SLOW_S`."""
    if not _listeners:
        yield
        return
    timer = Timer(SLOW_S, announce_wait, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
