"""Every point at which a process can die that writes rows: before they are published and behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.iceberg.ref_names import is_icemigrate_branch
from tests.crash.client import Blow, Gateway
from tests.crash.stage import Stage, append
from tests.crash.test_bad_worlds import session_of
from tests.crash.walking import walk_over
from tests.crash.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = """
tables:
  - name: shop.trades
    columns: [{name: id, type: long}, {name: venue, type: string}, {name: price, type: double}]
"""
# A value that was there is overwritten, a new column is filled, and one is swapped for another.
CHANGE = """
allow: [destructive]
tables:
  - name: shop.trades
    columns: [{name: note, type: string}]
    retype: {price: {to: string, using: cast(price as string)}}
    backfill: [{set: {venue: "concat(venue, '!')", note: "'seen'"}}]
    checks: [{after: "select count(*) from {table} where venue like '%!!'", gives: 0}]
"""


@pytest.fixture(scope="module")
def rows(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A table with rows, and a migration of them."""
    world = World(tmp_path_factory.mktemp("rows") / "project", gateway)
    world.write("0001_make", MAKE)
    world.done("apply")
    reader = world.reader()
    append(reader, "trades", id=[1, 2], venue=["A", None], price=[1.5, 2.5])
    reader.close()
    world.write("0002_change", CHANGE)
    pending, before = world.rows(), world.facts()
    world.done("apply")
    return Stage(world, pending, world.rows(), before, world.facts())


def _rest(world: World) -> None:
    """Wait for the end of what the JVM was doing for the one who died: it lives on here, and writes rows for
    longer than a lock gives signs of life."""
    while True:
        rows = world.rows()
        time.sleep(1.5)
        if world.rows() == rows:
            return


def _died(world: World, command: str, number: int) -> bool:
    """Kill a command at one of its changes, and wait until all of it is at rest; whether it came so far."""
    end = world.hit(command, blow=Blow(number))
    if end.code == 0:
        return False
    assert end.code == -signal.SIGKILL, end
    _rest(world)
    return True


def test_rows_are_written_once_and_go_back_wherever_it_died(rows: Stage, tmp_path: Path) -> None:
    def at(stage: Stage, number: int) -> bool:
        if number < 3:
            return True  # the lock, the intent: as with every migration
        world = stage.world
        world.restore(stage.pending)
        if not _died(world, "apply", number):
            return False
        standing = world.standings().get("0002")
        world.planned()
        if number % 2 or standing is None:
            world.done("apply")
            stage.is_done()
        else:
            world.done("rollback")
            stage.is_undone()
        assert not any(is_icemigrate_branch(name) for t in world.tables().values() for name in t.refs)
        return True

    # Lock, intent, metadata, branch, two writes, publication with the swap, record.
    assert walk_over([rows.copied(tmp_path / f"world{n}", "atomic") for n in range(5)], at) >= 7


def test_rows_that_are_taken_back_go_wherever_it_died(rows: Stage, tmp_path: Path) -> None:
    def at(stage: Stage, number: int) -> bool:
        if number < 2:
            return True
        world = stage.world
        world.restore(stage.applied)
        if not _died(world, "rollback", number):
            return False
        standing = world.standings()["0002"]
        world.planned(standing)
        if standing != "held":
            world.done("rollback", "--only", "0002")
        stage.is_undone()
        return True

    # Intent, one commit for columns and rows, record.
    assert walk_over([rows.copied(tmp_path / f"world{n}", "atomic") for n in range(2)], at) >= 3


def test_ctrl_c_while_rows_are_written_leaves_nothing_behind(rows: Stage, tmp_path: Path) -> None:
    def at(stage: Stage, number: int) -> bool:
        world, sent = stage.world, (signal.SIGINT, signal.SIGTERM)[number // 2 % 2]
        if number < 3 or number % 2:
            return True
        world.restore(stage.pending)
        end = world.hit("apply", blow=Blow(number, sent))
        assert stage.is_at_rest, end
        assert not any(is_icemigrate_branch(name) for t in world.tables().values() for name in t.refs), end
        if end.code == 0:
            stage.is_done()
            return False
        assert end.code == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent], end
        assert end.is_one_message, end
        assert world.facts() == stage.before, end
        assert world.standings() == {"0001": "applied"}
        return True

    assert walk_over([rows.copied(tmp_path / f"world{n}", "direct") for n in range(2)], at) >= 8


KEPT = """
tables:
  - name: shop.trades
    identifier: [id]
    columns:
      - {name: id, type: long, required: true}
      - {name: venue, type: string}
      - {name: price, type: double}
"""


def test_a_refill_that_dies_is_gone_on_with(
    gateway: Gateway, crash_jvm: SparkSession, tmp_path: Path
) -> None:
    world = World(tmp_path / "project", gateway)
    world.write("0001_make", KEPT)
    world.done("apply")
    session = session_of(world, crash_jvm)
    table = f"{world.catalog}.shop.trades"
    session.sql(f"INSERT INTO {table} VALUES (1, 'A', 1.5), (2, 'B', 2.5)")
    pending, before = world.rows(), world.facts()
    world.write("0002_drop", "{allow: [destructive], tables: [{name: shop.trades, drop_columns: [price]}]}")
    world.done("apply")
    session.sql(f"UPDATE {table} SET venue = concat(venue, '')")
    first = Stage(world, pending, world.rows(), before, world.facts())

    def at(stage: Stage, number: int) -> bool:
        if number < 3 or number % 2 == 0:
            return True
        world = stage.world
        world.restore(stage.applied)
        end = world.hit("rollback", "--refill", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        _rest(world)
        standing = world.standings()["0002"]
        world.planned(standing)
        if standing == "applied":
            world.done("rollback", "--refill")
        elif standing != "held":
            world.done("rollback", "--only", "0002")
        stage.is_undone()
        assert not any("refill" in name for t in world.tables().values() for name in t.refs)
        return True

    assert walk_over([first.copied(tmp_path / f"world{n}", "atomic") for n in range(3)], at) >= 6
