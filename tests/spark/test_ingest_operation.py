"""A continuous `ingest` as a service: metrics, log lines, a table that is dropped meanwhile, and SIGTERM."""

from __future__ import annotations

import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from icemigrate.errors import ExitCode
from icemigrate.wal import EntryKind, Writer
from tests.spark.test_ingest import SPANS, TRACES, counts, spans
from tests.support.table_project import TableProject

ROOT = Path(__file__).parents[2]
IMPATIENT = """
import sys
from icemigrate.cli import main
from icemigrate.pipeline import table_retries
table_retries.FIRST_PAUSE_S = table_retries.LONGEST_PAUSE_S = 2
sys.exit(main(sys.argv[1:]))
"""


class Service:
    """A process of the command, and the lines that it writes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines = queue.Queue[str | None]()
        self.events = list[dict[str, Any]]()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, name: str, **fields: object) -> dict[str, Any]:
        """The next event of a name with these fields."""
        while (line := self._lines.get(timeout=300)) is not None:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] == name and fields.items() <= event.items():
                return dict(event)
        raise AssertionError(f"the process ended: {self.events}")

    def read_all(self) -> None:
        """Read the events until the process ends."""
        while (line := self._lines.get(timeout=300)) is not None:
            self.events.append(json.loads(line))

    def wait_for_entries(self, count: int) -> None:
        """Wait until batches have so many entries more."""
        while count > 0:
            count -= self.wait_for("batch")["entries"]


@contextmanager
def service(project: TableProject, *args: str) -> Iterator[Service]:
    command = [sys.executable, "-c", IMPATIENT, "ingest", *args, "--project", str(project.folder)]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield Service(process)
    finally:
        process.kill()
        process.wait()


def process_tree(pid: int) -> list[int]:
    """A process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(f"{address}{path}", timeout=60) as answer:
        return str(answer.read().decode())


def test_a_table_that_is_dropped_meanwhile_is_reported_once_and_loses_nothing(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, SPANS % "acme, globex")
    # Batches that wait for more bytes than there are start after the delay.
    starts = "pipeline: {min_batch_bytes: 1000000, max_batch_delay: 1s}\n"
    (tmp_path / "icemigrate.yaml").write_text(f"project: sales\n{starts}", encoding="utf-8")
    log, number = tmp_path / "a log%20", 0
    catalog = sqlite3.connect(project.folder / ".icemigrate" / "catalog.db", isolation_level=None)
    writer = Writer(log)

    def write(*tenants: str) -> None:
        nonlocal number
        for tenant in tenants:
            writer.append(tenant, EntryKind.TRACES, spans(number))
            number += 1
        writer.flush()

    arguments = [str(log), "--table", TRACES, "--quarantine", "otel.quarantine"]
    options = ["--continuous", "1s", "--metrics-address", "0", "--log-format", "json"]
    with writer, service(project, *arguments, *options) as running:
        started = running.wait_for("progress")["message"]
        address = str(started).removeprefix("Metrics: ").removesuffix("/metrics")
        write("acme", "globex")
        running.wait_for_entries(2)
        assert page(address, "/health") == "ok\n"

        where = "FROM iceberg_tables WHERE table_name = 'acme_traces'"
        (stored,) = catalog.execute(f"SELECT * {where}").fetchall()
        catalog.execute(f"DELETE {where}")
        write("acme", "globex")
        failed = running.wait_for("table_failed")
        assert (failed["tenant"], failed["problem"]) == ("acme", "there is no table `otel.acme_traces`")
        write("acme", "globex", "globex")
        running.wait_for_entries(2)
        assert "icemigrate_ingest_failed_tables 1.0" in page(address, "/metrics")

        marks = ", ".join("?" * len(stored))
        catalog.execute(f"INSERT INTO iceberg_tables VALUES ({marks})", stored)
        write("acme")
        running.wait_for("table_recovered", tenant="acme")
        write("globex")
        running.wait_for_entries(1)
        metrics = page(address, "/metrics")
        write("acme", "globex")
        for pid in process_tree(running.process.pid):  # as systemd does
            os.kill(pid, signal.SIGTERM)
        assert running.process.wait(300) in (ExitCode.OK, ExitCode.ERROR)
        running.read_all()
    assert 'icemigrate_ingest_entries_total{kind="traces",tenant="globex"} 5.0' in metrics
    assert "icemigrate_ingest_failed_tables 0.0" in metrics
    events = Counter(event["event"] for event in running.events)
    assert (events["table_failed"], events["table_recovered"], events["failed"]) == (1, 1, 0)

    # What was deferred when the run stopped is ingested by the next one.
    assert project.run("ingest", *arguments) == ExitCode.OK
    acme, globex = counts(project, "otel.acme_traces"), counts(project, "otel.globex_traces")
    assert acme + globex == Counter(range(number))
