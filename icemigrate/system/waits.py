"""Waits for other processes and servers: one line each while they last, so that none looks like a hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread

SLOW_S = 3.0
"""An answer that takes longer is announced."""
_listeners: list[Callable[[str], None]] = []


def announce_wait(text: str) -> bool:
    """Pass one line to the innermost :func:`show_waits`; may be called from any thread.

    :returns: whether there is one.
    """
    for listen in _listeners[-1:]:
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
    key = _watch.begin(text)
    try:
        yield
    finally:
        _watch.end(key)


class _Watch:
    """The blocks that are not announced yet, and one thread that announces those that take long.

    A command has dozens of such blocks, nearly all of which end at once: a timer for each would start a
    thread for each.  The thread ends when it looks and finds no block.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._blocks: dict[object, tuple[float, str]] = {}
        self._looks_at = 0.0
        self._thread: Thread | None = None

    def begin(self, text: str) -> object:
        """Watch a block; returns the key that ends it."""
        key, at = object(), time.monotonic() + SLOW_S
        with self._changed:
            self._blocks[key] = at, text
            # After a fork, the parent's thread is not alive in the child.
            if self._thread is None or not self._thread.is_alive():
                self._looks_at = at
                self._thread = Thread(target=self._run, name="icemigrate-waits", daemon=True)
                self._thread.start()
            elif at < self._looks_at:
                self._looks_at = at
                self._changed.notify()
        return key

    def end(self, key: object) -> None:
        """Stop watching a block."""
        with self._changed:
            self._blocks.pop(key, None)

    def _run(self) -> None:
        is_over = False
        while not is_over:
            with self._changed:
                self._changed.wait(max(0.0, self._looks_at - time.monotonic()))
                now = time.monotonic()
                due = {key: text for key, (at, text) in self._blocks.items() if at <= now}
                for key in due:
                    del self._blocks[key]
                self._looks_at = min((at for at, _ in self._blocks.values()), default=now)
                if is_over := not self._blocks:
                    self._thread = None
            for text in due.values():
                announce_wait(text)


_watch = _Watch()
