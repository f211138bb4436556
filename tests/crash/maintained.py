"""A ``maintain`` that is paused and replaced, at any of its steps: on waking it changes nothing.

No row, snapshot, file or table may go that the other process has decided to keep.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeAlias

from icemigrate.errors import ExitCode
from tests.crash.client import Blow, Gateway
from tests.crash.stage import append
from tests.crash.test_fence import is_paused
from tests.crash.world import World, ended

MAKE = """
description: Make them
tables:
  - name: shop.trades
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    partition_by: [day(at)]
    retention: {snapshots: {max_age: 1s, keep_at_least: 1}, rows: {column: at, max_age: 30d}}
  - {name: shop.old, columns: [{name: id, type: long}]}
"""
DROP = """
description: Drop one
allow: [destructive]
tables:
  - {name: shop.old, drop: true}
"""
KEEP = """
description: Keep all rows and snapshots
tables:
  - name: shop.trades
    retention: {snapshots: {max_age: 3650d, keep_at_least: 1}, rows: {column: at, max_age: 3650d}}
"""
TRASHED = "icemigrate_trash.shop__old__shop__0002"
Then: TypeAlias = Callable[[World], None]
"""What the process does that takes over."""


def add_old_data(world: World) -> datetime:
    """Put a table in the trash, and old snapshots and rows in another one; return the time now."""
    world.write("0001_make", MAKE)
    world.done("apply")
    reader, now = world.reader(), datetime.now(timezone.utc)
    append(reader, "old", id=[1])
    for first, at in ((1, now - timedelta(days=60)), (3, now)):
        append(reader, "trades", id=[first, first + 1], at=[at, at])
    reader.close()
    world.write("0002_drop", DROP)
    world.done("apply")
    with (world.folder / "icemigrate.yaml").open("a", encoding="utf-8") as settings:
        settings.write("trash: {max_age: 1s}\n")
    return now


def set_up(gateway: Gateway, folder: Path) -> World:
    """A dropped table in the trash, and a table with old snapshots, old rows and an old orphan file."""
    world = World(folder / "project", gateway, environment={})
    now = add_old_data(world)
    (left_over := world.warehouse / "shop" / "trades" / "data" / "left-over.parquet").write_bytes(b"x")
    old = (now - timedelta(days=9)).timestamp()
    os.utime(left_over, (old, old))
    for file in left_over.parent.parent.rglob("*"):  # old enough to be orphans where no table knows them
        os.utime(file, (old, old))
    time.sleep(1.5)
    return world


def keeps_more(world: World) -> None:
    """Restore the dropped table, unless it was purged before, and keep all rows and snapshots."""
    if TRASHED in everything(world):
        world.done("rollback", "--only", "0002")
    world.write("0003_keep", KEEP)
    world.done("apply")


def drops_again(world: World) -> None:
    """Restore the dropped table, write to it and drop it again, unless it was purged before."""
    if TRASHED in everything(world):
        world.done("rollback", "--only", "0002")
        reader = world.reader()
        append(reader, "old", id=[2])
        reader.close()
        world.done("apply", "--redo", "0002")
    keeps_more_rows(world)


def makes_anew(world: World) -> None:
    """Drop the table that is maintained, and make another one under its name, in the same folder."""
    world.write("0003_drop", "{allow: [destructive], tables: [{name: shop.trades, drop: true}]}")
    world.write("0004_make", "tables: [{name: shop.trades, columns: [{name: id, type: long}]}]")
    world.done("apply")


def keeps_more_rows(world: World) -> None:
    """Keep all rows and snapshots."""
    world.write("0003_keep", KEEP)
    world.done("apply")


def everything(world: World) -> dict[str, Any]:
    """Tables by name: rows, snapshots, metadata.  All snapshots are read, so no file of them is missing."""
    reader = world.reader()
    try:
        found: dict[str, Any] = {}
        for name in world.tables():
            table = reader.load_table((*name.namespace, name.name))
            rows = sorted(row["id"] for row in table.scan().to_arrow().to_pylist())
            snapshots = [s.snapshot_id for s in table.snapshots()]
            for snapshot in snapshots:
                table.scan(snapshot_id=snapshot).to_arrow()
            found[str(name)] = (rows, snapshots, table.metadata_location)
        return found
    finally:
        reader.close()


def replaced_at(world: World, look: int, then: Then) -> bool:
    """Pause behind a look at the lock, replace, wake up; whether it came so far.

    Orphan files may still go then: no command needs them.
    """
    blow = Blow(look, signal.SIGSTOP, at_lease=True)
    parts = ("--trash", "--snapshots", "--rows", "--orphans")
    world.environment = {"ICEMIGRATE_LOCK_LEASE": "5"}
    process, order = world.start("maintain", "--auto-approve", *parts, blow=blow)
    world.environment = {}
    if not is_paused(process):
        end = ended(process, order)
        assert end.code == ExitCode.OK, end
        return False
    assert process.pid is not None
    try:
        then(world)
        before = everything(world)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    end = ended(process, order)
    assert end.code == ExitCode.LOCKED, (look, end)
    assert "Traceback" not in end.err + end.out, end
    after = everything(world)
    if TRASHED not in before:  # it had been taken out of the trash before the pause, to be dropped
        before, after = (
            {n: found for n, found in all_.items() if not n.startswith(TRASHED)} for all_ in (before, after)
        )
    assert after == before, (look, end)
    history = world.history()
    assert (history.lock, history.intents) == (None, ())
    assert not any("maintain" in ref for table in world.tables().values() for ref in table.refs)
    return True
