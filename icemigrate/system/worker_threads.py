"""Bounded threads for many equal calls that wait for a disk or a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

DISK_THREADS = 16
"""A file system makes many files durable at once: sixteen threads take a twentieth of the time of one."""
SERVER_THREADS = 8
"""Requests to one server at a time."""


def run_in_threads(act: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """The results of calls, in the order of the items; a single item is handled in the current thread.

    No call runs any more when it returns or raises.

    :param threads: the number of calls that run at once.
    :raises Exception: that of the first item whose call failed; calls that had not begun are left out.
    """
    if len(items) < 2:
        return [act(item) for item in items]
    # `check` and `plan` start without it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads, len(items)), "icemigrate-worker") as pool:
        calls = [pool.submit(act, item) for item in items]
        try:
            return [call.result() for call in calls]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the end of the block waits
            raise
