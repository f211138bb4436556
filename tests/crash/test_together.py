"""Many at once: processes that all want to apply, and writers that never stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]

from icemigrate.errors import ExitCode
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from tests.crash.client import Gateway
from tests.crash.stage import MAKE, Stage
from tests.crash.world import World, barrier_of, ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = ("shop", "trades")


def test_ten_processes_apply_at_once(gateway: Gateway, tmp_path: Path) -> None:
    """The history does not exist yet.  One process applies, and one that does not wait names it.

    Some commit with Spark, some in Python.
    """
    world = World(tmp_path / "project", gateway, environment={})
    world.write("0001_make", MAKE)
    barrier = barrier_of(10)
    started = [
        world.start(
            *("apply", "--auto-approve", "--lock-timeout", ("0", "100")[number % 2]),
            barrier=barrier,
            apply_with=("spark", "metadata")[number // 2 % 2],
        )
        for number in range(10)
    ]
    ends = [ended(*client) for client in started]
    pids = [str(process.pid) for process, _ in started]
    hasty, patient = ends[::2], ends[1::2]
    assert [end.code for end in patient] == [ExitCode.OK] * 5, patient
    assert {end.code for end in hasty} <= {ExitCode.OK, ExitCode.LOCKED}, hasty
    for end in hasty:
        if end.code == ExitCode.LOCKED:
            assert end.is_one_message
            assert any(f"(process {pid})" in end.err for pid in pids), end
    assert sum("Recorded 0001" in end.err or "0001 " in end.out for end in ends) >= 1
    rows = world.reader().load_table(("icemigrate", "history")).scan().to_arrow().to_pylist()
    assert [row["outcome"] for row in rows if row["version_text"] == "0001"].count("applied") == 1
    assert world.standings() == {"0001": "applied"}
    assert world.history().lock is None
    assert len(world.tables()) == 3


class Writers:
    """Append one row after the other to a table, each by an id of its own."""

    def __init__(self) -> None:
        self.surely: set[int] = set()
        self.perhaps: set[int] = set()
        self._over = Event()

    @contextmanager
    def writing(self, *ways: Callable[[int], None]) -> Iterator[None]:
        """The block in which they write."""
        threads = [Thread(target=self._write, args=(w, n)) for n, w in enumerate(ways, start=1)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _write(self, write: Callable[[int], None], number: int) -> None:
        for at in count(number * 1_000_000):
            if self._over.is_set():
                return
            try:
                write(at)
            except Exception:  # the table changed under its hands; whether the row came through shows later
                self.perhaps.add(at)
            else:
                self.surely.add(at)
            # Several commits a second by each is more than any stream makes; without a breath between them
            # an optimistic commit of anybody else may never come through.
            self._over.wait(0.15)


def test_writers_lose_nothing(staged: Stage, crash_jvm: SparkSession) -> None:
    world = staged.world
    assert crash_jvm is not None
    conf = sqlite_catalog_conf(world.database, world.warehouse)
    session = start_spark(SparkSettings(world.catalog, conf))
    reader = world.reader()

    def by_spark(at: int) -> None:
        session.sql(f"INSERT INTO {world.catalog}.shop.trades (id) VALUES ({at})")

    def by_pyiceberg(at: int) -> None:
        table = reader.load_table(TABLE)
        table.append(pa.Table.from_pylist([{"id": at}], schema=table.schema().as_arrow()))

    writers = Writers()
    with writers.writing(by_spark, by_pyiceberg):
        world.done("apply")
        half = set(writers.surely)
        world.done("rollback")
    found = [row["id"] for row in reader.load_table(TABLE).scan().to_arrow().to_pylist()]
    reader.close()
    assert len(found) == len(set(found)), "none twice"
    assert writers.surely | {1, 2} <= set(found) <= writers.surely | writers.perhaps | {1, 2}
    assert half, "they wrote during the apply"
    for base in (1_000_000, 2_000_000):
        assert any(base <= at < base + 1_000_000 for at in writers.surely), "both wrote"
    kept = {row for row in world.facts()["shop.trades"]["rows"] if "qualifiers': 'x'" in row}
    assert len(kept) == 1, "the dropped column is back with its values"
    assert world.standings() == {"0001": "applied", "0002": "held"}
    assert staged.is_at_rest
