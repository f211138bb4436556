"""A rollback, a redo, a refill or a migration of rows that was paused and replaced changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.frozen import Frozen
from tests.crash.client import Blow
from tests.crash.stage import Stage, append
from tests.crash.test_bad_worlds import session_of
from tests.crash.test_fence import replaced_at
from tests.crash.test_kill_rows import CHANGE, KEPT, MAKE
from tests.crash.walking import walk_over
from tests.crash.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DROP = "{allow: [destructive], tables: [{name: shop.trades, drop_columns: [price]}]}"


class Scene(Frozen):
    """A command that is paused, and the one that takes over.

    :param looks: the looks at the lock behind which it pauses: some of them, at which it does unlike things.
    """

    stage: Stage
    command: tuple[str, ...]
    then: tuple[str, ...]
    looks: tuple[int, ...]


@pytest.fixture(params=["rollback", "redo", "rows", "refill"])
def scene(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Scene:
    undo = ("rollback", "--only", "0002")
    if request.param == "rollback":
        copy = stage.copied(tmp_path / "first", "atomic")
        copy.world.restore(stage.applied)
        return Scene(copy, ("rollback",), undo, (1, 4, 7))
    if request.param == "redo":
        copy = stage.copied(tmp_path / "first", "atomic")
        copy.world.restore(stage.applied)
        copy.world.done("rollback")
        return Scene(copy, ("apply", "--redo", "0002"), ("apply",), (1, 4, 7))
    gateway, session = stage.world.gateway, request.getfixturevalue("crash_jvm")
    # Statements that write rows take long on a busy machine, and a lease that is not renewed ends.
    world = World(tmp_path / "first", gateway, environment={"ICEMIGRATE_LOCK_LEASE": "8"})
    if request.param == "rows":
        return Scene(_rows(world), ("apply",), ("apply",), (2, 4, 6))
    return Scene(_dropped(world, session), ("rollback", "--refill"), undo, (2, 4, 6))


def _rows(world: World) -> Stage:
    """A migration of rows is pending."""
    world.write("0001_make", MAKE)
    world.done("apply")
    reader = world.reader()
    append(reader, "trades", id=[1, 2], venue=["A", None], price=[1.5, 2.5])
    reader.close()
    world.write("0002_change", CHANGE)
    return Stage(world, world.rows(), (), {}, {})


def _dropped(world: World, jvm: SparkSession) -> Stage:
    """A column was dropped, and its values were rewritten away."""
    world.write("0001_make", KEPT)
    world.done("apply")
    session = session_of(world, jvm)
    table = f"{world.catalog}.shop.trades"
    session.sql(f"INSERT INTO {table} VALUES (1, 'A', 1.5), (2, 'B', 2.5)")
    world.write("0002_drop", DROP)
    world.done("apply")
    session.sql(f"UPDATE {table} SET venue = concat(venue, '')")
    return Stage(world, world.rows(), (), {}, {})


def test_a_command_that_was_replaced_changes_nothing(scene: Scene, tmp_path: Path) -> None:
    begin = scene.stage.world.rows()

    def at(stage: Stage, number: int) -> bool:
        if number > len(scene.looks):
            return False
        stage.world.restore(begin)
        blow = Blow(scene.looks[number - 1], signal.SIGSTOP, at_lease=True)
        assert replaced_at(stage, scene.command, blow, scene.then), "it has fewer looks"
        assert stage.is_at_rest
        assert not any("-data" in n or "-refill" in n for t in stage.world.tables().values() for n in t.refs)
        return True

    worlds = [scene.stage.copied(tmp_path / f"world{n}", "atomic") for n in scene.looks]
    assert walk_over(worlds, at) == len(scene.looks)
