"""A log of 20 tenants drained into their tables while migrations change one of them, on the embedded default.

``make demo-pipeline`` runs it, in the folder ``.demo-pipeline``, which is made anew.  `ingest` runs all the
time.  Lines that begin with ``$`` are commands that anyone can type there, and lines that begin with ``✓``
are checks: the demo fails where one does not hold.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from demo.stage import BrokenPromise, failure_of, icemigrate, promise, say
from demo.telemetry_load import TelemetryLoad
from demo.telemetry_tables import create_tables
from icemigrate.commands.ingest_status import ingest_status
from icemigrate.project import open_project
from icemigrate.results.ingest_status_results import IngestStatus
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.table_session import open_tables
from icemigrate.wal import Entry, EntryKind, Writer

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo-pipeline"
LOAD = TelemetryLoad(requests=900, items=50, tenants=20)
_EVOLVED = 3
"""The number of the tenant whose logs change."""
_ADD = """\
description: Record the severity of logs as a number
tables:
  - name: {table}
    columns: [{{name: severity_number, type: int}}]
"""
_BAD = """\
description: Drop the body of logs
allow: [destructive {table}.body]
because: no query reads it
tables:
  - name: {table}
    drop_columns: [body]
"""
_LONGEST_WAIT_S = 600
_ERRORS = (
    "SELECT service_name, count(*) AS spans, count_if(status_code = 2) AS errors, "
    "round(quantile_cont(duration_ns, 0.99) / 1e6) AS p99_ms "
    "FROM otel.{tenant}_traces WHERE kind = 2 GROUP BY service_name ORDER BY service_name"
)


class _Log:
    """The log of the demo, and what was appended to it."""

    def __init__(self, load: TelemetryLoad) -> None:
        self._entries, self._load = load.entries(), load
        self.entries = 0
        self.items = dict[tuple[str, EntryKind], int]()

    def append(self, count: int) -> list[Entry]:
        """Append the next entries of the load, as several writers do, and let `ingest` drain them."""
        found = list(islice(self._entries, count))
        for begin in range(3):
            with Writer("log") as log:
                log.append_all(found[begin::3])
        for entry in found:
            key = entry.tenant, entry.kind
            self.items[key] = self.items.get(key, 0) + self._load.items
        self.entries += len(found)
        print(f"appended {len(found)} entries to the log", flush=True)
        _wait_for(self.entries)
        return found

    @property
    def tenant(self) -> str:
        """The tenant whose logs change."""
        return self._load.tenant(_EVOLVED)

    @property
    def table(self) -> str:
        """The table of that tenant's logs."""
        return f"otel.{self.tenant}_logs"

    def count(self, entries: list[Entry]) -> int:
        """The log records of that tenant in entries."""
        found = [one for one in entries if (one.tenant, one.kind) == (self.tenant, EntryKind.LOGS)]
        return len(found) * self._load.items

    def rows(self, kind: EntryKind) -> int:
        """The spans, log records or data points of all tenants."""
        return sum(items for (_, of), items in self.items.items() if of is kind)


def _status() -> IngestStatus:
    return ingest_status(Path("log"), None, time.time_ns())


def _wait_for(entries: int) -> None:
    """Wait until all entries are in tables.

    :raises BrokenPromise: it takes too long.
    """
    until = time.monotonic() + _LONGEST_WAIT_S
    while (found := _status()).ingested < entries:
        if time.monotonic() > until:
            raise BrokenPromise(f"{entries} entries are in tables, and not {found.ingested}")
        time.sleep(1)
    print(f"ingested {found.ingested} entries in {found.batches} batches", flush=True)


@contextmanager
def _ingesting() -> Iterator[None]:
    """`ingest` in a process beside the block; it ends after its batch.

    :raises BrokenPromise: it failed.
    """
    command = ["ingest", "--continuous", "1s", "--quiet"]
    print(f"\n$ icemigrate {' '.join(command)} &", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-m", "icemigrate.cli", *command], env=environment) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
    if process.returncode:
        raise BrokenPromise("`ingest` ends after its batch, without an error")


def _migrate(number: int, name: str, text: str) -> None:
    file = Path("migrations") / f"{number:04}_{name}.yaml"
    file.write_text(text, encoding="utf-8")
    print(f"\n$ cat {file}\n{text}", end="", flush=True)
    icemigrate("apply", "--auto-approve", "--apply-with", "metadata")


def _rows(table: str) -> Any:
    with open_tables(open_project(Path.cwd())) as session:
        return query_table(session, table)


def _bodies(log: _Log) -> dict[bytes, str | None]:
    """The bodies of logs by the ids of their spans."""
    found = _rows(log.table)
    return dict(zip(found["span_id"].to_pylist(), found["body"].to_pylist(), strict=True))


def play(folder: Path, load: TelemetryLoad) -> str:
    """Play the demo in a folder, which is made anew and becomes the working directory.

    :returns: the counts that were checked, in words.
    :raises SystemExit: a command failed; with its exit code.
    :raises BrokenPromise: a check failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    say(f"A project with tables of traces, logs and metrics for each of {load.tenants} tenants.")
    create_tables(folder, load, without={EntryKind.LOGS: {"severity_number"}})
    os.chdir(folder)
    Path("log").mkdir()
    log = _Log(load)
    with _ingesting():
        say("Writers append to the log, and `ingest` drains it into the tables.")
        log.append(load.requests // 3)
        icemigrate("table", "sql", _ERRORS.format(tenant=load.tenant(0)))
        say(f"While the stream runs, a migration adds a column to the logs of {log.tenant}.")
        _migrate(2, "record_the_severity", _ADD.format(table=log.table))
        numbered = log.count(log.append(load.requests // 3))
        found = _rows(log.table)["severity_number"]
        promise(f"the {numbered} logs since then have the number", len(found) - found.null_count == numbered)
        _go_wrong_and_back(log, load)
    return _check(log)


def _go_wrong_and_back(log: _Log, load: TelemetryLoad) -> None:
    before = _bodies(log)
    say("The next migration is a mistake: it drops the body of logs. The stream goes on.")
    _migrate(3, "drop_the_body", _BAD.format(table=log.table))
    count = log.count(log.append(load.requests // 6))
    promise("the table has no column `body`", "body" not in _rows(log.table).column_names)
    say("`rollback` takes the migration back. The stream goes on.")
    icemigrate("rollback", "--auto-approve", "--apply-with", "metadata")
    log.append(load.requests - log.entries)
    after = _bodies(log)
    promise(f"all {len(before)} bodies from before are back", before.items() <= after.items())
    promise(f"the {count} logs in between have none", list(after.values()).count(None) == count)


def _check(log: _Log) -> str:
    """Compare all tables with what was appended.

    :raises BrokenPromise: an entry is missing, or is in a table twice.
    """
    say("All tables are compared with what the writers appended.")
    status = _status()
    promise("no entry waits, and none is in quarantine", not status.waiting and not status.quarantined)
    for (tenant, kind), items in log.items.items():
        found = _rows(f"otel.{tenant}_{kind.value}")
        if found.num_rows != items:
            raise BrokenPromise(f"{tenant} has {items} rows of {kind.value}, and not {found.num_rows}")
        if kind is not EntryKind.METRICS and len(set(found["span_id"].to_pylist())) != items:
            raise BrokenPromise(f"each row of {kind.value} of {tenant} is there once")
    counts = ", ".join(f"{log.rows(kind):,} rows of {kind.value}" for kind in EntryKind)
    return (
        f"Checked: {log.entries} entries appended, {status.ingested} ingested; {counts} in {len(log.items)} "
        "tables, none missing and none twice."
    )


def main(folder: Path = FOLDER) -> str | None:
    """Play the demo, and say what failed, if anything did."""
    return failure_of(lambda: print(f"\n✓ {play(folder, LOAD)}", flush=True))


if __name__ == "__main__":
    sys.exit(main())
