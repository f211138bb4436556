"""Every point at which a process can die that changes three tables in one transaction, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.client import Gateway
from tests.crash.stage import Stage, append
from tests.crash.walking import kills_and_resumptions, walk_over
from tests.crash.world import World

MAKE = """
tables:
  - {name: shop.trades, columns: [{name: id, type: long}, {name: bid, type: int}]}
  - {name: shop.quotes, columns: [{name: id, type: long}, {name: size, type: int}]}
  - {name: shop.ticks, columns: [{name: id, type: long}]}
"""
CHANGE = """
allow: [destructive]
tables:
  - {name: shop.trades, renames: {bid: price}, columns: [{name: venue, type: string}]}
  - {name: shop.quotes, drop_columns: [size], properties: {owner.team: markets}}
  - {name: shop.ticks, columns: [{name: place, type: string}]}
"""


@pytest.fixture
def together(tmp_path: Path) -> Stage:
    """Three tables with a row each, and a migration of their metadata that is pending."""
    world = World(tmp_path / "project", Gateway(0, ""), apply_with="metadata")
    world.write("0001_make", MAKE)
    world.done("apply")
    reader = world.reader()
    append(reader, "trades", id=[1], bid=[10])
    append(reader, "quotes", id=[1], size=[7])
    append(reader, "ticks", id=[1])
    reader.close()
    world.write("0002_change", CHANGE)
    pending, before = world.rows(), world.facts()
    world.done("apply")
    return Stage(world, pending, world.rows(), before, world.facts())


def test_a_transaction_that_dies_is_made_or_not(together: Stage, tmp_path: Path) -> None:
    """After each end, all tables are as before or as after; ``apply`` and ``rollback`` both continue."""
    stages = [together.copied(tmp_path / f"world{number}", "atomic") for number in range(2)]
    seen = list[bool]()

    def note_facts(stage: Stage) -> None:
        facts = stage.world.facts()
        assert facts in (stage.before, stage.after)
        seen.append(facts == stage.after)

    for at in kills_and_resumptions(note_facts):
        seen.clear()
        assert walk_over(stages, at) >= 3
        assert set(seen) == {True, False}
