"""Every point at which a process can die: the next command finds a world that it can go on with.

The client is killed right after the first, the second, … change of the catalog, until it comes through.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.crash.client import Blow
from tests.crash.stage import Stage
from tests.crash.walking import At


def test_an_apply_that_dies_is_finished_or_undone(walk: Callable[[At], int]) -> None:
    def at(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.pending)
        end = world.hit("apply", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        died, standing = world.rows(), world.standings().get("0002")
        world.planned()
        if number % 2 or standing != "interrupted":
            world.done("apply")
            stage.is_done()
            # Where all was recorded but the end of the lock, nothing was left to do that would take it over.
            assert standing == "applied" or stage.is_at_rest
            world.restore(died)
        if number % 2 == 0 or standing == "applied":
            world.done("rollback") if standing else world.done("apply")
            stage.is_undone() if standing else stage.is_done()
            assert stage.is_at_rest
        return True

    assert walk(at) >= 8


def test_a_rollback_that_dies_is_finished(walk: Callable[[At], int]) -> None:
    def at(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.applied)
        end = world.hit("rollback", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        standing = world.standings()["0002"]
        world.planned(standing)
        if standing != "held":
            world.done("rollback", "--only", "0002")
        stage.is_undone()
        if number % 2:
            world.done("apply", "--redo", "0002")
            stage.is_done()
        assert stage.is_at_rest or standing == "held"
        return True

    assert walk(at) >= 5
