"""Readers and writers of one table at the same time, and writers that are killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.new_table import create_declared, table_from_yaml
from tests.support.table_project import TableProject

BATCH = 50
WRITER = """
import sys
from pathlib import Path
from icemigrate.project import open_project
from icemigrate.table_data.insert_rows import insert_data
from icemigrate.table_data.table_session import open_tables
with open_tables(open_project(Path(sys.argv[1]))) as tables:
    print("ready", flush=True)
    for number in range(1000):
        insert_data(tables, "sales.t", [{"batch": number}] * 50)
"""


@pytest.fixture
def project(tmp_path: Path) -> TableProject:
    """A project with the empty table `sales.t`."""
    made = TableProject.create(tmp_path)
    with made.tables() as tables:
        declared = tables.parse("sales.t")
        create_declared(tables, declared, table_from_yaml(declared, "[{name: batch, type: int}]", "t.yaml"))
    return made


def row_count(project: TableProject) -> int:
    """The rows of the current snapshot, from its data files."""
    with project.tables() as tables:
        location = tables.load("sales.t").stored.location
    return len(StaticTable.from_metadata(location).scan().to_arrow())


def test_concurrent_writers_all_land_and_readers_see_whole_snapshots(project: TableProject) -> None:
    seen, is_done = list[int](), threading.Event()

    def write(number: int) -> None:
        with project.tables() as tables:
            for _ in range(3):
                insert_data(tables, "sales.t", [{"batch": number}] * BATCH)

    def read() -> None:
        while not is_done.is_set():
            seen.append(row_count(project))

    with ThreadPoolExecutor(4) as threads:
        reader = threads.submit(read)
        try:
            for writer in [threads.submit(write, number) for number in range(3)]:
                writer.result()
        finally:
            is_done.set()
        reader.result()
    assert row_count(project) == 9 * BATCH
    assert seen
    assert all(count % BATCH == 0 for count in seen)
    assert seen == sorted(seen)


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_writer_leaves_whole_loads(project: TableProject, seed: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(project.folder)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    time.sleep(random.Random(seed).uniform(0.2, 2))
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    count = row_count(project)
    assert count % BATCH == 0
    with project.tables() as tables:
        assert insert_data(tables, "sales.t", [{"batch": 0}] * BATCH).rows == BATCH
    assert row_count(project) == count + BATCH
