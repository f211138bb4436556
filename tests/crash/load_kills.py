"""Kills `ingest`, its catalog and its storage while it drains a load of telemetry, and compares checksums.

``python -m tests.crash.load_kills --catalog rest --kills 200 --requests 10000`` appends the requests of
:mod:`demo.telemetry_load` in as many pieces as there are kills.  With ``--catalog rest``, the tables and the
log are on S3, and a part of the kills is of the server of both.  At the end, each table must have each item
once: its number of rows, and a sum over the ids (over the times, for metrics), are those of the load.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from demo.telemetry_load import TelemetryLoad
from demo.telemetry_tables import migration
from icemigrate.project import choose_environment, open_project, storage_properties
from icemigrate.table_data.query_tables import query_table
from icemigrate.table_data.table_session import open_tables
from icemigrate.wal import Entry, EntryKind, Fsync, Writer
from icemigrate.wal.storage_path import StoragePath, open_path
from tests.servers.lake import Kind, rest_kind, sqlite_kind
from tests.servers.seaweedfs import SeaweedFS, create_bucket, seaweedfs_at, seaweedfs_ports
from tests.support.killed_processes import kill_process, output_of, start_process, wait_for_batch

_KEYS = ("icemigrate-key", "icemigrate-secret")
_PARTS = {
    EntryKind.TRACES: ("resourceSpans", "scopeSpans", "spans"),
    EntryKind.LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
    EntryKind.METRICS: ("resourceMetrics", "scopeMetrics", "metrics"),
}
_PIPELINE = """\
lists:
  tenants: [{tenants}]
pipeline:
  log: {log}
  tables:
    traces: "otel.${{tenant}}_traces"
    logs: "otel.${{tenant}}_logs"
    metrics: "otel.${{tenant}}_metrics"
  segments_per_batch: 4
"""
_LAST_RUNS = 5
"""Runs that drain the rest: a storage on a busy machine can fail to answer."""
Sums = dict[tuple[str, EntryKind], tuple[int, int]]
"""By tenant and kind: the number of items, and a sum over them modulo 2⁶⁴."""


@dataclass
class Lake:
    """A project, and the server of its catalog and storage where it has one.

    :ivar server: runs in a block of its own, so that it can be killed and started again.
    """

    folder: Path
    kind: Kind
    log: str
    tenants: str
    server_folder: Path | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    server: SeaweedFS | None = None

    def write(self) -> None:
        """Write the project's files."""
        project = self.folder / "project"
        (project / "migrations").mkdir(parents=True)
        (project / "migrations/0001_tables.yaml").write_text(migration({}), encoding="utf-8")
        text = self.kind.project_file("market", "otel.history")
        text += _PIPELINE.format(tenants=self.tenants, log=self.log)
        (project / "icemigrate.yaml").write_text(text, encoding="utf-8")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of icemigrate."""
        return start_process("-m", "icemigrate.cli", *words, "--project", str(self.folder / "project"))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A block in which the server runs."""
        if self.server_folder is None:
            yield
            return
        with seaweedfs_at(self.server_folder, self.ports, *_KEYS) as self.server:
            yield

    def writer(self) -> Writer:
        """A writer of the log."""
        options: dict[str, Any] = {"fsync": Fsync.NEVER, "segment_bytes": 300_000}
        if self.server_folder is None:
            return Writer(self.folder / "project" / self.log, **options)
        environment = choose_environment(open_project(self.folder / "project"), None, os.environ)
        return Writer(
            self.log, spool=self.folder / "spool", storage=storage_properties(environment), **options
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--catalog", choices=("sqlite", "rest"), default="sqlite")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--requests", type=int, default=10_000, help="of 100 items each")
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600, help="no further kill after so many")
    chosen = parser.parse_args(arguments)
    load = TelemetryLoad(chosen.requests, tenants=chosen.tenants, seed=chosen.seed)
    with TemporaryDirectory(prefix="icemigrate-kills-") as name:
        lake = _lake(Path(name), chosen.catalog, load)
        os.environ.update(lake.kind.variables)
        lake.write()
        expected, kills = drain_and_kill(lake, load, chosen.kills, chosen.minutes * 60)
        with lake.serving():
            wrong = [one for one in expected if _stored(lake, *one) != expected[one]]
    for tenant, kind in wrong:
        print(f"WRONG: {tenant}, {kind.value}", file=sys.stderr)
    items = sum(count for count, _ in expected.values())
    shown = ", ".join(f"{number} of {victim}" for victim, number in sorted(kills.items()))
    print(
        f"{chosen.catalog}: {items:,} items of {chosen.tenants} tenants in {len(expected)} tables, "
        f"kills: {shown}; {len(expected) - len(wrong)} tables have each item once, {len(wrong)} are wrong"
    )
    return 1 if wrong else 0


def _lake(folder: Path, catalog: str, load: TelemetryLoad) -> Lake:
    tenants = ", ".join(map(load.tenant, range(load.tenants)))
    if catalog == "sqlite":
        return Lake(folder, sqlite_kind(folder), "log", tenants)
    server, ports = folder / "server", seaweedfs_ports()
    server.mkdir()
    with seaweedfs_at(server, ports, *_KEYS) as found:
        create_bucket(found, "telemetry")
        return Lake(folder, rest_kind(found), "s3://telemetry/log", tenants, server, ports)


def drain_and_kill(lake: Lake, load: TelemetryLoad, kills: int, seconds: float) -> tuple[Sums, Counter[str]]:
    """Append a piece of the load for each kill, and drain it; then drain the rest."""
    choose, done, expected = random.Random(load.seed), Counter[str](), Sums()
    entries, longest = load.entries(), 10.0
    with lake.serving():
        applied = lake.start("apply", "--auto-approve", "--quiet", "--apply-with", "metadata")
        assert applied.wait() == 0, output_of(applied)
    end = time.monotonic() + seconds
    while done.total() < kills and time.monotonic() < end:
        with ExitStack() as block:
            block.enter_context(lake.serving())
            _append(lake, islice(entries, -(-load.requests // kills)), expected)
            began = time.monotonic()
            ingest = lake.start("ingest", "--continuous", "1s", "--retention", "1m")
            if choose.random() < 0.6 and wait_for_batch(lambda: _batches(lake), ingest):
                longest = min(60.0, time.monotonic() - began)
                time.sleep(choose.uniform(0, 4))
            else:
                time.sleep(choose.uniform(0, longest))
            if lake.server is not None and choose.random() < 0.3:
                os.killpg(lake.server.pid, signal.SIGKILL)
                done["the catalog and S3"] += 1
                time.sleep(choose.uniform(0, 6))
            else:
                assert ingest.poll() is None, f"ingest ended: {output_of(ingest)}"
                done["ingest"] += 1
            kill_process(ingest, is_whole_group=choose.random() < 0.5)
        print(f"{done.total()} of {kills} kills", file=sys.stderr, flush=True)
    with lake.serving():
        _append(lake, entries, expected)
        for tries_left in reversed(range(_LAST_RUNS)):
            last = lake.start("ingest", "--retention", "1m")
            text = output_of(last)
            if last.wait() == 0:
                break
            assert tries_left, text
    return expected, done


def _append(lake: Lake, entries: Iterator[Entry], expected: Sums) -> None:
    with lake.writer() as writer:
        for entry in entries:
            writer.append(entry.tenant, entry.kind, entry.payload)
            count, total = expected.get((entry.tenant, entry.kind), (0, 0))
            items = list(_items(entry))
            expected[entry.tenant, entry.kind] = count + len(items), (total + sum(items)) % 2**64


def _items(entry: Entry) -> Iterator[int]:
    """The number of each item of a request: its span id, or its time in microseconds."""
    outer, inner, last = _PARTS[entry.kind]
    for resource in json.loads(entry.payload)[outer]:
        for scope in resource[inner]:
            for item in scope[last]:
                if entry.kind is not EntryKind.METRICS:
                    yield int(item["spanId"], 16)
                    continue
                (points,) = (value["dataPoints"] for value in item.values() if isinstance(value, dict))
                yield from (int(point["timeUnixNano"]) // 1000 for point in points)


def _stored(lake: Lake, tenant: str, kind: EntryKind) -> tuple[int, int]:
    import numpy

    column = "time" if kind is EntryKind.METRICS else "span_id"
    with open_tables(open_project(lake.folder / "project"), None) as session:
        rows = query_table(session, f"otel.{tenant}_{kind.value}", columns=[column])
    found = rows.column(column).combine_chunks()
    if kind is EntryKind.METRICS:
        numbers = found.cast("timestamp[us]").cast("int64").to_numpy()
    else:
        numbers = numpy.array([int.from_bytes(one, "big") for one in found.to_pylist()], dtype="uint64")
    return len(numbers), int(numbers.astype("uint64").sum(dtype="uint64")) % 2**64


def _batches(lake: Lake) -> frozenset[str]:
    """The batches that the checkpoint names."""
    with suppress(FileNotFoundError):
        if lake.server_folder is None:
            offsets = lake.folder / "project" / lake.log / "checkpoint" / "offsets"
            return frozenset(path.name for path in offsets.iterdir())
        environment = choose_environment(open_project(lake.folder / "project"), None, os.environ)
        log = open_path(lake.log, storage_properties(environment))
        assert isinstance(log, StoragePath)
        return frozenset(file.path.name for file in (log / "checkpoint" / "offsets").files())
    return frozenset()


if __name__ == "__main__":
    sys.exit(main())
