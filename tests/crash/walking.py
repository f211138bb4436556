"""Over every point of a command, one after the other."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import TypeAlias

from tests.crash.client import Blow
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


def kills_and_resumptions(on_kill: Callable[[Stage], object] = lambda stage: None) -> tuple[At, At]:
    """Kill ``apply``, and ``rollback``, at a point; then continue.

    An apply that was killed is continued by ``apply`` at odd points, and undone by ``rollback`` at even ones.

    :param on_kill: called with the world that the killed process left.
    """

    def is_killed(stage: Stage, command: str, number: int) -> bool:
        end = stage.world.hit(command, blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        on_kill(stage)
        return True

    def of_apply(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.pending)
        if not is_killed(stage, "apply", number):
            return False
        if number % 2 or world.standings().get("0002") is None:
            world.done("apply")
            stage.is_done()
        else:
            world.done("rollback")
            stage.is_undone()
        return True

    def of_rollback(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.applied)
        if not is_killed(stage, "rollback", number):
            return False
        if world.standings()["0002"] != "held":
            world.done("rollback", "--only", "0002")
        stage.is_undone()
        return True

    return of_apply, of_rollback
