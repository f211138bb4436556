"""Every point at which a process can die that writes rows: before they are published and behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.crash.client import Blow, Gateway
from tests.crash.stage import Stage, append
from tests.crash.walking import walk_over
from tests.crash.world import World

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


def test_rows_are_written_once_and_go_back_wherever_it_died(rows: Stage, tmp_path: Path) -> None:
    def at(stage: Stage, number: int) -> bool:
        if number < 3:
            return True  # the lock, the intent: as with every migration
        world = stage.world
        world.restore(stage.pending)
        end = world.change("apply", blow=Blow(number))
        if end.code == 0:
            return False
        assert end.code == -signal.SIGKILL, end
        _rest(world)
        standing = world.standings().get("0002")
        world.planned()
        if number % 2 or standing is None:
            world.done("apply")
            stage.is_done()
        else:
            world.done("rollback")
            stage.is_undone()
        assert not any(name.endswith("-data") for t in world.tables().values() for name in t.refs)
        return True

    # Lock, intent, metadata, branch, two writes, publication, branch gone, swap, record.
    assert walk_over([rows.copied(tmp_path / f"world{n}", "atomic") for n in range(5)], at) >= 9
