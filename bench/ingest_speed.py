"""How fast ``ingest`` drains a log into the tables of 50 tenants, compared with a bare Spark job.

``python -m bench.ingest_speed`` makes a load (:mod:`demo.telemetry_load`), and drains it by ``icemigrate
ingest`` and by :mod:`bench.bare_spark` in both of its ways, in turns, each in processes of their own.  It
compares the rows that each one wrote, and prints rows per second, CPU seconds, peak memory, and the ratio to
the faster way of the bare job.  Then it drains batches of one entry of each kind for each of 100, 300 and
1,000 tenants.  Seconds of the processor are more exact than those of the clock where other programs run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.bare_spark import WAYS
from bench.process_tree import TreeCost, measure_tree
from demo.telemetry_load import TelemetryLoad, write_load
from demo.telemetry_tables import create_tables
from icemigrate.commands.ingest import IngestRequest, ingest_log
from icemigrate.frozen import replace
from icemigrate.project import open_project
from icemigrate.wal import EntryKind

ROOT = Path(__file__).parents[1]
GOAL = 1.3
"""Of the time of the bare job."""


def ingest(project: Path, log: Path) -> TreeCost:
    """The cost of a run over everything in a log."""
    command = [sys.executable, "-m", "icemigrate.cli", "ingest", str(log), "--project", str(project)]
    cost = measure_tree([*command, "--format", "json"], ROOT)
    tables = json.loads(cost.output)["tables"]
    assert not [one for one in tables if one["problem"]], "each table has its entries"
    return cost


def rows_of(cost: TreeCost) -> dict[str, int]:
    """The rows of a run by kind."""
    found = dict.fromkeys((kind.value for kind in EntryKind), 0)
    for table in json.loads(cost.output)["tables"]:
        found[table["kind"]] += table["rows"]
    return found


def parquet_rows(folder: Path) -> dict[str, int]:
    """The rows of Parquet files by kind."""
    import pyarrow.dataset

    return {
        kind.value: pyarrow.dataset.dataset(folder / kind.value, format="parquet").count_rows()
        for kind in EntryKind
    }


def shown(cost: TreeCost, rows: int) -> str:
    """A cost in words."""
    return (
        f"{cost.seconds:.1f} s, {cost.cpu_seconds:.1f} s of the processor, {cost.megabytes:.0f} MB, "
        f"{rows / cost.seconds:,.0f} rows/s"
    )


def compare(folder: Path, load: TelemetryLoad, times: int) -> None:
    """Print the costs of one log."""
    log = folder / "log"
    write_load(load, log)
    rows = load.requests * load.items
    size = sum(path.stat().st_size for path in log.glob("*.wal"))
    print(f"{rows:,} rows of {load.tenants} tenants, {size / 1e6:.0f} MB in {load.requests:,} entries")
    best = dict[str, TreeCost]()
    for turn in range(times):
        project = folder / f"project{turn}"
        create_tables(project, load)
        costs = {"ingest": ingest(project, log)}
        print(f"ingest: {shown(costs['ingest'], rows)}", flush=True)
        counted = rows_of(costs["ingest"])
        assert sum(counted.values()) == rows, "all items are rows"
        shutil.rmtree(log / "checkpoint")
        for way in WAYS:
            target = folder / "parquet"
            command = [sys.executable, "-m", "bench.bare_spark", way, str(log), str(target)]
            costs[f"bare Spark ({way})"] = measure_tree(command, ROOT)
            assert parquet_rows(target) == counted, "the peer has the same rows"
            print(f"bare Spark ({way}): {shown(costs[f'bare Spark ({way})'], rows)}", flush=True)
            shutil.rmtree(target)
        shutil.rmtree(project)
        for name, cost in costs.items():
            best[name] = min(cost, best.get(name, cost), key=lambda one: one.cpu_seconds)
    peer = min((cost for name, cost in best.items() if name != "ingest"), key=lambda one: one.cpu_seconds)
    own = best["ingest"]
    for what, ratio in (
        ("time", own.seconds / peer.seconds),
        ("processor", own.cpu_seconds / peer.cpu_seconds),
    ):
        print(f"ingest takes {ratio:.2f} times the {what} of the faster bare job; the goal is {GOAL}")


def one_entry_each(folder: Path, tenants: int) -> None:
    """Print the seconds of a batch with an entry of each kind of each tenant."""
    project = folder / f"project{tenants}"
    load = TelemetryLoad(requests=3 * tenants, items=10, tenants=tenants)
    create_tables(project, load, "  segments_per_batch: 1\n")
    for seed in range(_BATCHES):
        write_load(replace(load, seed=seed), project / "log")
    command = [sys.executable, "-m", "bench.ingest_speed", "--drain", str(project)]
    cost = measure_tree(command, ROOT)
    *_, before, last = json.loads(cost.output)
    print(
        f"{tenants:,} tenants with one entry of each kind: a batch of {3 * tenants:,} tables takes "
        f"{last - before:.1f} s, {1000 * (last - before) / (3 * tenants):.1f} ms a table; {_BATCHES} batches "
        f"take {cost.cpu_seconds:.1f} s of the processor and {cost.megabytes:.0f} MB",
        flush=True,
    )


_BATCHES = 3


def drain(project: Path) -> None:
    """Drain the log of a project in this process, and print when its batches ended."""
    ended = list[float]()
    ingest_log(
        open_project(project), None, IngestRequest(), on_batch=lambda _: ended.append(time.monotonic())
    )
    print(json.dumps(ended))


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, help="of 100 items each")
    parser.add_argument("--times", type=int, default=2, help="turns")
    parser.add_argument(
        "--tenants", type=int, nargs="*", default=[100, 300, 1000], help="with one entry each"
    )
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drain:
        drain(given.drain)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.times:
            compare(folder, TelemetryLoad(given.requests), given.times)
        for tenants in given.tenants:
            one_entry_each(folder, tenants)


if __name__ == "__main__":
    main()
