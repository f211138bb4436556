"""Every point at which ``maintain`` can die: what it has done stays done, and the next one does the rest.

It deletes files, so a world cannot be put back by its catalog alone, as elsewhere: all of it is.
"""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.crash.client import Blow, Gateway
from tests.crash.maintained import TRASHED, add_old_data
from tests.crash.world import World


def test_a_maintain_that_dies_is_finished_by_the_next(gateway: Gateway, tmp_path: Path) -> None:
    world = _maintainable(World(tmp_path / "project", gateway))
    saved = tmp_path / "saved"
    shutil.copytree(world.folder, saved)
    points = 0
    lease: str | None = None
    while True:
        end = world.change("maintain", blow=Blow(points + 1), lease=lease)
        if end.code == 0:
            break
        if end.lost_its_lease and lease is None:
            lease = "12"  # this machine is busy
            _put_back(world, saved)
            continue
        points += 1
        assert end.code == -signal.SIGKILL, end
        world.planned()
        facts = world.facts()
        # A table that is being dropped for good has the name of the run behind its own.
        assert {"shop.trades"} <= {name[: len(TRASHED)] for name in facts} <= {"shop.trades", TRASHED}
        assert {3, 4} <= _ids(facts) <= {1, 2, 3, 4}, "what is young is never touched"
        world.done("maintain")
        _is_maintained(world)
        _put_back(world, saved)
    assert points >= 6
    _is_maintained(world)


def _put_back(world: World, saved: Path) -> None:
    shutil.rmtree(world.folder)
    shutil.copytree(saved, world.folder)


def _maintainable(world: World) -> World:
    """A dropped table in the trash, and one with snapshots to expire and rows to delete."""
    add_old_data(world)
    time.sleep(1.5)
    return world


def _is_maintained(world: World) -> None:
    facts = world.facts()
    assert set(facts) == {"shop.trades"}, "the trash is empty"
    assert _ids(facts) == {3, 4}
    history = world.history()
    assert history.lock is None
    assert not history.intents
    assert world.standings() == {"0001": "applied", "0002": "applied"}


def _ids(facts: dict[str, Any]) -> set[int]:
    return {n for n in range(1, 5) for row in facts["shop.trades"]["rows"] if f"'id': {n}," in row}
