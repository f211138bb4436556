"""What commands cost on the tables of many tenants: three kinds for each tenant, declared by templates.

``python -m bench.tenant_commands`` makes a project with 100 and with 1,000 tenants on the embedded catalog.
One migration creates their tables, a second one adds a column to all of them, and a third one waits. A line
for each command and size has the CPU seconds, the elapsed seconds, the peak memory, the milliseconds for a
table and the number of lines of the output. The exponent of the growth follows: 1 is linear. What a process
takes for one tenant is subtracted before. ``--folder`` keeps the projects, for a profile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.check_speed import compile_modules
from bench.growth import exponent
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.drained_totals import record_totals
from icemigrate.wal import EntryKind, Fsync, Writer

_COMMAND = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"
_APPLY = ("apply", "--quiet", "--apply-with", "metadata", "--auto-approve")
_RETENTION = "    retention: {snapshots: {max_age: 7d}}\n"
_BATCHES = 10
_MOST_EXPONENT = 1.1
_KINDS = tuple(kind.value for kind in EntryKind)
_COMMANDS = (
    ("check",),
    ("plan",),
    ("plan", "--format", "json"),
    ("status",),
    ("drift",),
    ("rollback", "--dry-run"),
    ("maintain", "--dry-run"),
    ("history",),
    ("ingest", "status"),
)
_COLUMNS = {
    "traces": {
        "trace_id": "fixed[16]",
        "span_id": "fixed[8]",
        "service_name": "string",
        "name": "string",
        "start_time": "timestamptz",
        "duration_ns": "long",
        "attributes": "map<string, string>",
        "events": "list<struct<time: timestamptz, name: string, attributes: map<string, string>>>",
    },
    "logs": {
        "time": "timestamptz",
        "service_name": "string",
        "severity_number": "int",
        "body": "string",
        "attributes": "map<string, string>",
    },
    "metrics": {
        "time": "timestamptz",
        "service_name": "string",
        "name": "string",
        "value": "double",
        "bucket_counts": "list<long>",
        "attributes": "map<string, string>",
    },
}


@dataclass(frozen=True, slots=True)
class Cost:
    """One process: CPU and elapsed time in seconds, peak memory in megabytes, lines of its output."""

    cpu_s: float
    elapsed_s: float
    peak_mb: float
    lines: int


def make(folder: Path, tenants: int) -> tuple[Cost, Cost]:
    """Make a project.

    :returns: what the migrations cost that create the tables and that change them.
    """
    migrations, log = folder / "migrations", folder / "log"
    migrations.mkdir(parents=True)
    ids = [f"tenant{number:04}" for number in range(tenants)]
    tables = "".join(f"    {kind}: 'otel.${{tenant}}_{kind}'\n" for kind in _KINDS)
    (folder / "icemigrate.yaml").write_text(
        f"project: otel\nlists:\n  tenants: {json.dumps(ids)}\npipeline:\n  log: log\n  tables:\n{tables}",
        encoding="utf-8",
    )
    (migrations / "0001_create.yaml").write_text(_migration(_creation), encoding="utf-8")
    created = run(folder, *_APPLY)
    (migrations / "0002_release.yaml").write_text(_migration(_column("release")), encoding="utf-8")
    changed = run(folder, *_APPLY)
    (migrations / "0003_region.yaml").write_text(_migration(_column("region")), encoding="utf-8")
    run(folder, "lock")
    _write_log(log, ids)
    return created, changed


def _migration(entry: Callable[[str], str]) -> str:
    return "tables:\n" + "".join(
        f'  - name: "otel.${{tenant}}_{kind}"\n    for_each: {{tenant: tenants}}\n{entry(kind)}'
        for kind in _KINDS
    )


def _creation(kind: str) -> str:
    columns = "".join(
        f'      - {{name: {name}, type: "{type_}"}}\n' for name, type_ in _COLUMNS[kind].items()
    )
    time_ = "start_time" if kind == "traces" else "time"
    layout = f"    partition_by: [day({time_})]\n    sort_by: [service_name, {time_}]\n"
    return f"    columns:\n{columns}{layout}{_RETENTION}"


def _column(name: str) -> Callable[[str], str]:
    return lambda _kind: f"    columns: [{{name: {name}, type: string}}]\n"


def _write_log(log: Path, ids: list[str]) -> None:
    """A log in which each table has an entry that waits, and entries that ten batches drained."""
    with Writer(log, fsync=Fsync.NEVER) as writer:
        for tenant in ids:
            for kind in EntryKind:
                writer.append(tenant, kind, b"{}")
    checkpoint = log / "checkpoint"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    now = time.time()
    for number in range(_BATCHES):
        done = [TableBatch(f"otel.{one}_{kind}", one, kind, 5, 50) for one in ids for kind in _KINDS]
        record_totals(checkpoint, number, done, now - 10, now)
        (checkpoint / "offsets" / str(number)).write_text('v1\n{}\n{"logOffset": -1}')
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")
    (checkpoint / "metadata").write_text(json.dumps({"id": "7439b67c-3a39-4e32-8f20-a29bf516c4fa"}))


def run(folder: Path, *command: str) -> Cost:
    """Run a command in a process of its own.

    :raises SystemExit: it fails.
    """
    before = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, "-c", _COMMAND, *command], cwd=folder, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - before
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"`icemigrate {' '.join(command)}` ends with exit code {process.returncode}")
        output.seek(0)
        lines = sum(1 for _ in output)
    return Cost(usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024, lines)


def lines(folder: Path, sizes: list[int]) -> Iterator[str]:
    """The result: a line for each command and size, and one with the exponent."""
    smallest, *_ = sizes = [1, *sizes]
    costs: dict[str, dict[int, Cost]] = {}
    for size in sizes:
        created, changed = make(folder / str(size), size)
        costs.setdefault("apply, creation", {})[size] = created
        costs.setdefault("apply, a column", {})[size] = changed
    for command in _COMMANDS:
        costs[" ".join(command)] = {size: run(folder / str(size), *command) for size in sizes}
    for name, found in costs.items():
        start = found[smallest]
        for size in sizes[1:]:
            cost, tables = found[size], size * len(_KINDS)
            each = 1000 * max(cost.cpu_s - start.cpu_s, 0) / tables
            yield (
                f"{name:20} {tables:5} tables: {cost.cpu_s:6.2f} s CPU, {cost.elapsed_s:6.2f} s elapsed, "
                f"{cost.peak_mb:4.0f} MB, {each:6.3f} ms for each table, {cost.lines} lines"
            )
        if len(sizes) > 2:
            power = exponent(sizes, [found[size].cpu_s for size in sizes], start.cpu_s)
            verdict = "" if power <= _MOST_EXPONENT else f", MISSED: at most {_MOST_EXPONENT}"
            yield f"{name:20} exponent {power:.2f}{verdict}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenants", nargs="*", type=int, default=[100, 1000], help="numbers of tenants")
    parser.add_argument("--folder", type=Path, help="a new folder for the projects, which is kept")
    given = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        for line in lines(given.folder or Path(name), sorted(given.tenants)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
