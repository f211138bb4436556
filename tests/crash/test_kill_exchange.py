"""Every point at which a process can die that exchanges the names of two tables."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.crash.client import Blow, Gateway
from tests.crash.stage import Stage, append
from tests.crash.walking import At, walk_over
from tests.crash.world import World

MAKE = """
tables:
  - {name: shop.left, columns: [{name: id, type: long}]}
  - {name: shop.right, columns: [{name: id, type: long}, {name: note, type: string}]}
"""
EXCHANGE = """
tables:
  - {name: shop.left, renamed_from: shop.right, columns: [{name: place, type: string}]}
  - {name: shop.right, renamed_from: shop.left}
"""


@pytest.fixture
def exchange(gateway: Gateway, tmp_path: Path) -> Stage:
    """Two tables with a row each, and a migration that exchanges their names."""
    world = World(tmp_path / "project", gateway)
    world.write("0001_make", MAKE)
    world.done("apply")
    reader = world.reader()
    append(reader, "left", id=[1])
    append(reader, "right", id=[2], note=["right"])
    reader.close()
    world.write("0002_exchange", EXCHANGE)
    pending, before = world.rows(), world.facts()
    world.done("apply")
    stage = Stage(world, pending, world.rows(), before, world.facts())
    assert "{'id': 1}" in stage.after["shop.right"]["rows"]
    assert "right" in stage.after["shop.left"]["rows"][0]
    return stage


def test_an_exchange_of_names_that_dies_is_finished_or_undone(exchange: Stage, tmp_path: Path) -> None:
    """The apply dies at odd points, the rollback at even ones; ``apply`` and ``rollback`` both continue."""
    stages = [exchange.copied(tmp_path / f"world{n}", "atomic") for n in range(3)]

    def of_apply(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.pending)
        end = world.hit("apply", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        standing = world.standings().get("0002")
        if number % 2 or standing is None:
            world.done("apply")
            stage.is_done()
        else:
            world.done("rollback")
            stage.is_undone()
        return True

    def of_rollback(stage: Stage, number: int) -> bool:
        world = stage.world
        world.restore(stage.applied)
        end = world.hit("rollback", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        if world.standings()["0002"] != "held":
            world.done("rollback", "--only", "0002")
        stage.is_undone()
        return True

    walks: tuple[At, At] = (of_apply, of_rollback)
    assert [walk_over(stages, at) >= 5 for at in walks] == [True, True]
