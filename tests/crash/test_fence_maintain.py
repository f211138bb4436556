"""A ``maintain`` that was paused and replaced changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.crash.client import Gateway
from tests.crash.maintained import Then, drops_again, keeps_more, makes_anew, replaced_at, set_up

POINTS: dict[int, Then] = {2: drops_again, 5: keeps_more, 11: keeps_more, 12: makes_anew}
"""Looks at the lock: before a table gets the name under which it is dropped, before the commit that expires
snapshots, before the deletion of rows is published and before orphan files are looked for again."""


def test_a_maintain_that_was_replaced_changes_nothing(gateway: Gateway, tmp_path: Path) -> None:
    def at(look: int) -> bool:
        return replaced_at(set_up(gateway, tmp_path / f"world{look}"), look, POINTS[look])

    with ThreadPoolExecutor(len(POINTS)) as pool:
        assert all(pool.map(at, POINTS)), "it takes fewer looks"
