"""Every point at which a process can die: the next command finds a world that it can go on with.

The client is killed right after the first, the second, … change of the catalog, until it comes through.  It
commits with Spark or in Python, and so does the next command.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.client import Blow
from tests.crash.stage import Stage
from tests.crash.walking import At, walk_over
from tests.crash.world import World


@pytest.fixture(params=["spark, atomic", "spark, direct", "metadata, atomic"])
def walk(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Callable[[At], int]:
    """Walks over every point of a command, which commits in one way and publishes in one way."""
    apply_with, publish = request.param.split(", ")
    copies = [stage.copied(tmp_path / f"world{n}", publish) for n in range(3)]
    for copy in copies:
        copy.world.apply_with = apply_with
    return lambda at: walk_over(copies, at)


def next_engine(world: World, number: int) -> str:
    """What the command after the one that died commits with."""
    if (world.apply_with, world.publish) == ("spark", "atomic"):
        return "spark"
    return ("spark", "metadata")[number // 2 % 2]


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
        engine = next_engine(world, number)
        if number % 2 or standing != "interrupted":
            world.done("apply", apply_with=engine)
            stage.is_done()
            # Where all was recorded but the end of the lock, nothing was left to do that would take it over.
            assert standing == "applied" or stage.is_at_rest
            world.restore(died)
        if number % 2 == 0 or standing == "applied":
            world.done("rollback" if standing else "apply", apply_with=engine)
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
            world.done("rollback", "--only", "0002", apply_with=next_engine(world, number))
        stage.is_undone()
        if number % 2:
            world.done("apply", "--redo", "0002", apply_with=next_engine(world, number + 2))
            stage.is_done()
        assert stage.is_at_rest or standing == "held"
        return True

    assert walk(at) >= 5
