"""Whether the memory of ``ingest --continuous`` stays flat while writers go on.

``python -m bench.ingest_memory --minutes 10`` starts a run over an empty log, appends telemetry of 50 tenants
(:mod:`demo.telemetry_load`) at a rate, and prints the peak of each minute for the JVM and for the Python
processes.  At the end it prints the slope of both in the second half, when all code is loaded and each task
has run, and checks that each row is in a table.  Meanwhile old snapshots expire, as in production: the
metadata of a table, which a commit reads, grows with its snapshots.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.process_tree import memory_by_program
from demo.telemetry_load import TelemetryLoad
from demo.telemetry_tables import create_tables
from icemigrate import IcebergManager
from icemigrate.frozen import replace
from icemigrate.wal import EntryKind, Fsync, Writer

ROOT = Path(__file__).parents[1]
_SAMPLE_S = 0.5
_ITEMS = 100
"""Of a request."""


class LogWriter(threading.Thread):
    """Appends requests at a rate until it is stopped.

    :param rate: requests a second.
    :ivar rows: that the requests have.
    """

    def __init__(self, log: Path, rate: float) -> None:
        super().__init__(daemon=True)
        self._log, self._rate = log, rate
        self._is_stopped = threading.Event()
        self.rows = 0

    def run(self) -> None:
        load, began, written = TelemetryLoad(200, _ITEMS), time.monotonic(), 0
        with Writer(self._log, fsync=Fsync.NEVER, segment_seconds=5) as writer:
            while not self._is_stopped.is_set():
                load = replace(load, seed=load.seed + 1)
                for entry in load.entries():
                    writer.append(entry.tenant, entry.kind, entry.payload, encoding=entry.encoding)
                    written += 1
                    self.rows += _ITEMS
                    if self._is_stopped.wait(max(0.0, began + written / self._rate - time.monotonic())):
                        return

    def stop(self) -> None:
        """Stop, and seal the last segment."""
        self._is_stopped.set()
        self.join()


class SnapshotExpiry(threading.Thread):
    """Expires the snapshots of all tables that are older than some minutes, until it is stopped."""

    def __init__(self, folder: Path, load: TelemetryLoad, minutes: float) -> None:
        super().__init__(daemon=True)
        self._folder, self._minutes = folder, minutes
        self._tables = [
            f"otel.{load.tenant(number)}_{kind.value}" for number in range(load.tenants) for kind in EntryKind
        ]
        self._is_stopped = threading.Event()
        self.expired = 0

    def run(self) -> None:
        with IcebergManager(self._folder) as manager:
            while not self._is_stopped.wait(60 * self._minutes):
                for name in self._tables:
                    if self._is_stopped.is_set():
                        return
                    done = manager.expire_snapshots(name, self._minutes / (24 * 60))
                    self.expired += len(done.expired)

    def stop(self) -> None:
        """Stop after the current table."""
        self._is_stopped.set()
        self.join()


def peaks_by_minute(pid: int, minutes: float) -> list[dict[str, float]]:
    """The peak of each minute in megabytes, by program; each one is printed when it is known."""
    began, found = time.monotonic(), list[dict[str, float]]()
    while (elapsed := time.monotonic() - began) < 60 * minutes:
        if elapsed // 60 >= len(found):
            if found:
                print(shown(len(found), found[-1]), flush=True)
            found.append({})
        for name, megabytes in memory_by_program(pid).items():
            found[-1][name] = max(found[-1].get(name, 0.0), megabytes)
        time.sleep(_SAMPLE_S)
    print(shown(len(found), found[-1]), flush=True)
    return found


def shown(minute: int, peaks: dict[str, float]) -> str:
    """The peaks of a minute in words."""
    return f"minute {minute}: " + ", ".join(f"{name} {peak:.0f} MB" for name, peak in sorted(peaks.items()))


def slope(values: list[float]) -> float:
    """By how much values grow from one to the next, by the method of least squares; of one value, 0."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    spread = sum((at - middle) ** 2 for at in range(len(values)))
    return sum((at - middle) * (one - mean) for at, one in enumerate(values)) / spread if spread else 0.0


def measure(folder: Path, minutes: float, rate: float, settings: str, expire_minutes: float) -> None:
    """Print the memory of a run.

    :param settings: further lines below ``pipeline`` in the project file.
    :param expire_minutes: the age at which snapshots expire.
    """
    load = TelemetryLoad(1, _ITEMS)
    create_tables(folder, load, settings)
    log = folder / "log"
    writer, expiry = LogWriter(log, rate), SnapshotExpiry(folder, load, expire_minutes)
    writer.start()
    expiry.start()
    command = [sys.executable, "-m", "icemigrate.cli", "ingest", "--project", str(folder)]
    options = ["--continuous", "5s", "--retention", "1m", "--format", "json", "--quiet"]
    with subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE) as running:
        try:
            peaks = peaks_by_minute(running.pid, minutes)
        finally:
            running.send_signal(signal.SIGTERM)
            writer.stop()
            expiry.stop()
        output, _ = running.communicate()
    done = subprocess.run(
        [*command, "--format", "json", "--quiet"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    results = [json.loads(text) for text in (output, done.stdout)]
    rows = sum(table["rows"] for result in results for table in result["tables"])
    print(f"{writer.rows:,} rows written, {rows:,} in tables, {results[0]['batches']} batches")
    print(f"{expiry.expired:,} snapshots expired")
    assert rows == writer.rows, "each row is in a table once"
    half = peaks[len(peaks) // 2 :]
    for name in sorted(half[-1]):
        grows = slope([one.get(name, 0.0) for one in half])
        print(f"{name}: {grows:+.1f} MB a minute in the last {len(half)} minutes")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--rate", type=float, default=10, help=f"requests a second, of {_ITEMS} items each")
    parser.add_argument("--min-batch-bytes", type=int, help="default is a batch each 5 s")
    parser.add_argument("--expire-minutes", type=float, default=10, help="the age at which snapshots expire")
    given = parser.parse_args()
    size = given.min_batch_bytes
    with tempfile.TemporaryDirectory() as name:
        settings = "" if size is None else f"  min_batch_bytes: {size}\n"
        measure(Path(name), given.minutes, given.rate, settings, given.expire_minutes)


if __name__ == "__main__":
    main()
