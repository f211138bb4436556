"""Pause every command behind every look at its lock, on every kind of catalog, and replace it.

`python -m tests.crash.fence_everywhere` goes over all points, which takes an hour or more; CI has a sample in
`test_fence*.py`.  At each point a command pauses right before a change (SIGSTOP), another process takes the
lock over and finishes, and the first one wakes up.  It must end with 5 and change nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

from icemigrate.errors import ExitCode
from icemigrate.execution.environment_session import open_environment
from icemigrate.frozen import Frozen
from icemigrate.iceberg.ref_names import FENCE_TAG, is_icemigrate_branch
from icemigrate.iceberg.table_properties import FENCE_PROPERTY
from icemigrate.iceberg.type_text import format_type
from icemigrate.project import choose_environment, open_project, pyiceberg_properties
from tests.crash.client import Blow, Gateway, Order
from tests.crash.model.random_runs import jvm
from tests.crash.test_fence import is_paused
from tests.crash.world import Ended, begun, ended
from tests.servers.lake import KINDS, Kind, postgres_kind, rest_kind, sqlite_kind
from tests.servers.postgres import postgres
from tests.servers.seaweedfs import seaweedfs

TRASH = "icemigrate_trash"
_LEASE = "ICEMIGRATE_LOCK_LEASE"
_KEY, _SECRET = "fence-access-pq4", "fence-secret-zt9"
_MOST_LOOKS = 60

MAKE = """
tables:
  - name: market_data.trades
    columns: [{name: id, type: long}, {name: venue, type: string}, {name: price, type: double}]
  - {name: market_data.quotes, columns: [{name: id, type: long}, {name: size, type: int}]}
  - {name: market_data.old, columns: [{name: id, type: long}]}
"""
CHANGE = """
allow: [destructive]
tables:
  - name: market_data.trades
    drop_columns: [price]
    columns: [{name: place, type: string}]
    properties: {owner.team: markets}
  - {name: market_data.ticks, renamed_from: market_data.quotes, properties: {owner.team: markets}}
  - {name: market_data.old, drop: true}
  - {name: market_data.fresh, columns: [{name: id, type: long}]}
"""
ROWS = """
allow: [destructive]
tables:
  - name: market_data.trades
    columns: [{name: note, type: string}]
    retype: {price: {to: string, using: cast(price as string)}}
    backfill: [{set: {venue: "concat(venue, '!')", note: "'seen'"}}]
"""
KEPT = """
tables:
  - name: market_data.trades
    identifier: [id]
    columns:
      - {name: id, type: long, required: true}
      - {name: venue, type: string}
      - {name: price, type: double}
"""
DROP_COLUMN = "{allow: [destructive], tables: [{name: market_data.trades, drop_columns: [price]}]}"
REWRITE = """
allow: [destructive]
tables: [{name: market_data.trades, backfill: [{set: {venue: "concat(venue, '')"}}]}]
"""
RETAIN = """
tables:
  - name: market_data.trades
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    partition_by: [day(at)]
    retention: {snapshots: {max_age: 1s, keep_at_least: 1}, rows: {column: at, max_age: 30d}}
  - {name: market_data.old, columns: [{name: id, type: long}]}
"""
DROP_TABLE = "{allow: [destructive], tables: [{name: market_data.old, drop: true}]}"
KEEP = """
tables:
  - name: market_data.trades
    retention: {snapshots: {max_age: 3650d, keep_at_least: 1}, rows: {column: at, max_age: 3650d}}
"""


class Place:
    """A project of its own for one point, in namespaces that no other point uses."""

    def __init__(self, kind: Kind, gateway: Gateway, folder: Path, namespace: str) -> None:
        folder.mkdir(parents=True)
        (folder / "migrations").mkdir()
        self.kind, self.gateway, self.folder, self.namespace = kind, gateway, folder, namespace
        self.project = kind.project(folder, namespace, f"{namespace}_meta.history")
        self._started = 0

    def write(self, name: str, text: str) -> None:
        """Write a migration file."""
        (self.folder / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def start(self, *args: str, lease: str, blow: Blow | None = None) -> tuple[Any, Order]:
        """Start the command line in a process of its own."""
        self._started += 1
        name = f"client{self._started}"
        variables = {**self.kind.variables, _LEASE: lease}
        order = Order(
            self.folder,
            self.folder / "none.db",
            self.gateway,
            (*args, "--auto-approve"),
            name,
            variables,
            blow,
        )
        return begun(order), order

    def done(self, *args: str) -> Ended:
        """Run the command line, which must succeed."""
        end = ended(*self.start(*args, lease="60"))
        assert end.code == 0, (args, end)
        return end

    def append(self, table: str, **columns: list[Any]) -> None:
        """Append rows as another client."""
        import pyarrow as pa  # type: ignore[import-untyped]

        with self._catalog() as catalog:
            loaded = catalog.load_table((self.namespace, table))
            loaded.append(pa.table(columns, schema=loaded.schema().as_arrow()))

    def _catalog(self) -> Any:
        from contextlib import closing

        from pyiceberg.catalog import load_catalog

        properties = pyiceberg_properties(choose_environment(self.project, None, dict(os.environ)))
        uri = properties["uri"].replace("postgresql:", "postgresql+psycopg2:")
        return closing(load_catalog(self.kind.catalog, **{**properties, "uri": uri}))

    def facts(self) -> dict[str, Any]:
        """Every table of this point by name, with what is on it.  The files of all snapshots are read."""
        with open_environment(open_project(self.folder), None) as world:
            mine = (self.namespace, TRASH)
            names = [n for space in mine for n in world.catalog.tables((space,))]
            own = [n for n in names if n.namespace != (TRASH,) or n.name.startswith(f"{self.namespace}__")]
            tables = {n: t for n, t in world.catalog.load(own).items() if t is not None}
        found = {}
        with self._catalog() as catalog:
            for name, table in tables.items():
                loaded = catalog.load_table((*name.namespace, name.name))
                for snapshot in loaded.snapshots():
                    loaded.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
                found[str(name)] = {
                    "columns": [(p, f.id, format_type(f.type)) for p, f in table.schema.walk()],
                    "properties": {k: v for k, v in table.properties.items() if k != FENCE_PROPERTY},
                    "snapshots": sorted(s.snapshot_id for s in loaded.snapshots()),
                    "rows": sorted(map(repr, loaded.scan().to_arrow().to_pylist())),
                    "refs": sorted(n for n in table.refs if n != FENCE_TAG),
                }
        return found

    @property
    def trashed(self) -> str:
        """What the table that is dropped is called in the trash."""
        return f"{TRASH}.{self.namespace}__old__market__0002"

    @property
    def made_in_trash(self) -> str:
        """The name in the trash of the table that a migration creates."""
        return f"{TRASH}.{self.namespace}__fresh__market__0002"

    def is_at_rest(self) -> bool:
        """No process holds the lock, nothing is half done, and no branch of a run is left."""
        with open_environment(open_project(self.folder), None) as world:
            history = world.history()
        left = [n for facts in self.facts().values() for n in facts["refs"] if is_icemigrate_branch(n)]
        return history.lock is None and not history.intents and not left


Do: TypeAlias = Callable[[Place], object]


class Scene(Frozen):
    """A command that is paused.

    :param prepare: what comes before it.
    :param then: what the process does that takes over.
    """

    prepare: Do
    command: tuple[str, ...]
    then: Do


def _made(place: Place, make: str, change: str) -> None:
    place.write("0001_make", make)
    place.done("apply")
    place.append("trades", id=[1, 2], venue=["A", None], price=[1.5, 2.5])
    place.write("0002_change", change)


def _three(place: Place) -> None:
    _made(place, MAKE, CHANGE)
    place.append("old", id=[7])


def _applied(place: Place) -> None:
    _three(place)
    place.done("apply")


def _held(place: Place) -> None:
    _applied(place)
    place.done("rollback")


def _rows(place: Place) -> None:
    _made(place, MAKE, ROWS)


def _dropped(place: Place) -> None:
    """A column was dropped, and its values were rewritten away."""
    _made(place, KEPT, DROP_COLUMN)
    place.done("apply")
    place.write("0003_rewrite", REWRITE)
    place.done("apply")


def _maintainable(place: Place) -> None:
    place.write("0001_make", RETAIN)
    place.done("apply")
    now = datetime.now(timezone.utc)
    place.append("old", id=[7])
    for first, at in ((1, now - timedelta(days=60)), (3, now)):
        place.append("trades", id=[first, first + 1], at=[at, at])
    place.write("0002_drop", DROP_TABLE)
    place.done("apply")
    with (place.folder / "icemigrate.yaml").open("a", encoding="utf-8") as settings:
        settings.write("trash: {max_age: 1s}\n")
    time.sleep(1.1)


def _keep(place: Place) -> None:
    """Restore the dropped table, unless it was purged before, and keep all rows and snapshots."""
    if place.trashed in place.facts():
        place.done("rollback", "--only", "0002")
    place.write("0003_keep", KEEP)
    place.done("apply")


def _drop_again(place: Place) -> None:
    """Restore the dropped table, write to it, and drop it again under the same name."""
    if place.trashed in place.facts():
        place.done("rollback", "--only", "0002")
        place.append("old", id=[8])
        place.done("apply", "--redo", "0002")
    place.write("0003_keep", KEEP)
    place.done("apply")


def _do(*args: str) -> Do:
    return lambda place: place.done(*args)


SCENES = {
    "apply": Scene(_three, ("apply",), _do("apply")),
    "apply-undone": Scene(_three, ("apply",), _do("rollback")),
    "rollback": Scene(_applied, ("rollback",), _do("rollback", "--only", "0002")),
    "redo": Scene(_held, ("apply", "--redo", "0002"), _do("apply")),
    "rows": Scene(_rows, ("apply",), _do("apply")),
    "refill": Scene(_dropped, ("rollback", "--only", "0002", "--refill"), _do("rollback", "--only", "0002")),
    "maintain": Scene(_maintainable, ("maintain",), _keep),
    "maintain-again": Scene(_maintainable, ("maintain",), _drop_again),
}


def pause(place: Place, scene: Scene, look: int, lease: str) -> bool:
    """One point, in a place that is prepared; whether the command came as far as this look.

    :raises AssertionError: the process that was replaced changed something.
    """
    blow = Blow(look, signal.SIGSTOP, at_lease=True)
    process, order = place.start(*scene.command, lease=lease, blow=blow)
    if not is_paused(process):
        end = ended(process, order)
        # All points share one trash, and `maintain` refuses what other points have there.
        assert end.code in (ExitCode.OK, ExitCode.FINDINGS), end
        return False
    try:
        scene.then(place)
        before = place.facts()
    finally:
        os.kill(process.pid, signal.SIGCONT)
    end = ended(process, order)
    assert end.code == ExitCode.LOCKED, end
    assert "Traceback" not in end.err + end.out, end
    after = place.facts()
    if place.trashed not in before:  # a purge has taken it out of the trash before the pause
        before, after = (
            {n: f for n, f in facts.items() if not n.startswith(place.trashed)} for facts in (before, after)
        )
    # `CREATE TABLE` cannot assert the lock: a table that it makes all the same goes to the trash, empty.
    made = after.pop(place.made_in_trash, None) if place.made_in_trash not in before else None
    assert made is None or made["rows"] == [], made
    assert after == before, (before, after, end)
    assert place.is_at_rest(), place.facts()
    return True


class Walk(Frozen):
    """The points that are gone over.

    :param every: only every so many looks.
    :param until: begin no point after this time, in seconds since 1970.
    :param lease: of the process that is paused, in seconds.
    """

    gateway: Gateway
    folder: Path
    every: int
    until: float
    lease: str

    def over(self, kind: Kind, name: str) -> Counter[str]:
        """Go over the looks of a scene, one after the other; how many there are, and how many failed."""
        counts = Counter[str]()
        for look in range(1, _MOST_LOOKS, self.every):
            if time.time() > self.until:
                counts["left out for want of time"] += 1
                break
            namespace = f"p_{name.replace('-', '_')}_{look}"
            place = Place(kind, self.gateway, self.folder / kind.name / namespace, namespace)
            said = "its preparation FAILED"
            try:
                SCENES[name].prepare(place)
                said = "FAILED"
                if not pause(place, SCENES[name], look, self.lease):
                    break
                said = "ok"
            except Exception:
                counts["failed"] += 1
                print(f"{kind.name} {name} {look}: {said}\n{traceback.format_exc()}", flush=True)
                if said != "FAILED":
                    break
            else:
                print(f"{kind.name} {name} {look}: ok", flush=True)
            counts[f"{kind.name} {name}"] += 1
        return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", action="append", choices=KINDS, help="all of them without it")
    parser.add_argument("--scene", action="append", choices=sorted(SCENES), help="all of them without it")
    parser.add_argument("--every", type=int, default=1, help="only every so many looks")
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--lease", default="8", help="of the process that is paused, in seconds")
    parser.add_argument("--until", type=float, default=float("inf"), help="begin nothing after this time")
    chosen = parser.parse_args(arguments)
    folder, counts = Path(mkdtemp(prefix="fence")), Counter[str]()
    with ExitStack() as stack:
        gateway = stack.enter_context(jvm(folder / "jvm"))
        makers: dict[str, Callable[[], Kind]] = {
            "sqlite": partial(_sqlite, folder),
            "postgres": lambda: postgres_kind(stack.enter_context(postgres(_SECRET)), folder / "postgres"),
            "rest": lambda: rest_kind(stack.enter_context(seaweedfs(_KEY, _SECRET))),
        }
        walk = Walk(gateway, folder, chosen.every, chosen.until, chosen.lease)
        for catalog in chosen.catalog or KINDS:
            kind = makers[catalog]()
            os.environ.update(kind.variables)
            with ThreadPoolExecutor(chosen.at_once) as pool:
                for found in pool.map(partial(walk.over, kind), chosen.scene or SCENES):
                    counts += found
    points = sum(number for key, number in counts.items() if key.split(" ")[0] in KINDS)
    print(json.dumps({"points": points, **dict(sorted(counts.items()))}), flush=True)
    return 1 if counts["failed"] or not points else 0


def _sqlite(folder: Path) -> Kind:
    (folder / "sqlite").mkdir()
    return sqlite_kind(folder / "sqlite")


if __name__ == "__main__":
    sys.exit(main())
