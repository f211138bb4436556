"""Over every point of a command, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import TypeAlias

from tests.crash.stage import Stage

At: TypeAlias = Callable[[Stage, int], bool]
"""What is done at a point; whether there was such a point."""


def walk_over(stages: Sequence[Stage], at: At) -> int:
    """Walk over every point in several worlds at once, since most of it is waiting for leases to end.

    :returns: how many points there are.
    """
    numbers, over = count(1), Event()

    def work(stage: Stage) -> int:
        survived = 0
        while not over.is_set():
            if not at(stage, next(numbers)):
                over.set()
                break
            survived += 1
        return survived

    with ThreadPoolExecutor(len(stages)) as pool:
        return sum(pool.map(work, stages))
