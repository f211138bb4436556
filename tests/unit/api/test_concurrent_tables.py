"""Readers and writers of one table at the same time: a reader sees whole snapshots."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from icemigrate import IcebergManager

ROWS, LOADS = 7, 5
PROCESS = """
import sys
from icemigrate import IcebergManager

folder, writer, rows, loads = sys.argv[1], *map(int, sys.argv[2:])
with IcebergManager(folder) as lake:
    for load in range(loads):
        lake.insert_data("s.t", [{"writer": writer, "load": load, "row": row} for row in range(rows)])
"""


def started(act: Callable[[], None], failures: list[BaseException]) -> Thread:
    """A thread whose failure is kept."""

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run)
    thread.start()
    return thread


def test_readers_see_whole_snapshots_while_threads_and_a_process_write(tmp_path: Path) -> None:
    """Each load is one snapshot: a reader counts all rows of a load or none, and never fewer rows later."""
    failures, done = list[BaseException](), Event()
    with IcebergManager(tmp_path) as lake:
        lake.create_table("s.t", {"writer": "int", "load": "int", "row": "int"})

        def write(writer: int) -> None:
            for load in range(LOADS):
                lake.insert_data("s.t", [{"writer": writer, "load": load, "row": row} for row in range(ROWS)])

        def read() -> None:
            last, is_last = 0, False
            while not is_last:
                is_last = done.is_set()  # one more read after the last commit
                rows = lake.query_table("s.t").to_pylist()
                loads = Counter((row["writer"], row["load"]) for row in rows)
                assert set(loads.values()) <= {ROWS}
                assert len(rows) >= last
                last = len(rows)
            assert last == 3 * LOADS * ROWS

        def evolve() -> None:
            for number in range(2):
                lake.add_column("s.t", f"extra_{number}", "string")

        readers = [started(read, failures) for _ in range(3)]
        writers = [started(lambda: write(1), failures), started(lambda: write(2), failures)]
        writers.append(started(evolve, failures))
        other = [sys.executable, "-c", PROCESS, str(tmp_path), "3", str(ROWS), str(LOADS)]
        subprocess.run(other, check=True, timeout=300)
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
        assert failures == []
        assert len(lake.list_snapshots("s.t")) == 3 * LOADS
        assert lake.query_table("s.t", limit=0).schema.names[-2:] == ["extra_0", "extra_1"]
