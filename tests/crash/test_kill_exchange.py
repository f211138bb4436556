"""Every point at which a process can die that exchanges the names of two tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.client import Gateway
from tests.crash.stage import Stage, append
from tests.crash.walking import kills_and_resumptions, walk_over
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

    assert [walk_over(stages, at) >= 5 for at in kills_and_resumptions()] == [True, True]
