"""Many random runs, from the command line: `python -m tests.crash.model.random_runs --runs 2000`."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from tests.crash.client import Gateway
from tests.crash.model.run import Bases, Outcome, run
from tests.crash.world import World
from tests.support.spark_settings import end_jvm, start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS_OF_A_JVM = 160
"""Clients that are killed give nothing back of what they use in the JVM."""


def session_on(world: World) -> SparkSession:
    """A session of another client on the world's catalog, in the JVM that runs."""
    conf = sqlite_catalog_conf(world.database, world.warehouse) | {"cache-enabled": "false"}
    return start_spark(SparkSettings(world.catalog, conf))


def run_all(
    seeds: Sequence[int],
    gateway: Gateway,
    folder: Path,
    at_once: int,
    keep: bool = False,
    until: float | None = None,
) -> Iterator[Outcome]:
    """Do the runs of some seeds, several at once, since they wait for leases most of the time."""
    bases = Bases(folder / "bases", gateway, session_on)

    def one(seed: int) -> Outcome | None:
        if until is not None and time.time() > until:
            return None
        try:
            return run(seed, folder, bases, keep)
        except Exception:
            fault = f"the test itself failed:\n{traceback.format_exc()}"
            return Outcome(seed, [fault], counts=Counter({"runs": 1, "failed runs": 1}))

    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(one, seed) for seed in seeds]):
            outcome = done.result()
            if outcome is not None:
                yield outcome


def report(outcome: Outcome, verbose: bool) -> str:
    """A run in words: what failed, and how it is done again."""
    lines = [f"seed {outcome.seed}: {'FAILED' if outcome.faults else 'ok'}"]
    if verbose or outcome.faults:
        lines += outcome.log
    lines += [f"  FAULT: {fault}" for fault in outcome.faults]
    if outcome.faults:
        lines.append(f"  again: {outcome.replay}")
    return "\n".join(lines)


@contextmanager
def jvm(folder: Path) -> Iterator[Gateway]:
    """A JVM for some runs."""
    session = start_jvm(folder)
    at = session.sparkContext._gateway
    assert at is not None
    # No run reads the checksum files; the file system is one object in the whole JVM.
    files = at.jvm.org.apache.hadoop.fs.FileSystem.getLocal(session.sparkContext._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)
    try:
        yield Gateway(at.gateway_parameters.port, at.gateway_parameters.auth_token)
    finally:
        end_jvm()


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="the first seed; without it a random one")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--fresh", type=int, default=0, help="so many runs more, of random seeds")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--progress", action="store_true", help="a line for each run")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the worlds of failed runs")
    parser.add_argument("--summary", type=Path, help="a file for the counts, as JSON")
    parser.add_argument("--until", type=float, help="begin no run after this time (seconds since 1970)")
    chosen = parser.parse_args(arguments)
    first = secrets.randbelow(10**9) if chosen.seed is None else chosen.seed
    if chosen.runs + chosen.fresh <= _RUNS_OF_A_JVM:
        return _batch(first, chosen)
    return _batches(first, chosen)


def _batch(first: int, chosen: argparse.Namespace) -> int:
    folder, counts, failed = Path(mkdtemp(prefix="runs")), Counter[str](), list[int]()
    began = time.monotonic()
    fresh = [secrets.randbelow(10**9) for _ in range(chosen.fresh)]
    seeds = [*range(first, first + chosen.runs), *fresh]
    with jvm(folder / "jvm") as gateway:
        for outcome in run_all(seeds, gateway, folder, chosen.at_once, chosen.keep, chosen.until):
            counts += outcome.counts
            failed += [outcome.seed] if outcome.faults else []
            if chosen.verbose or outcome.faults or chosen.progress:
                print(report(outcome, chosen.verbose), flush=True)
    if not chosen.keep or not failed:
        shutil.rmtree(folder, ignore_errors=True)
    summary = {"first": first, "fresh": fresh, "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps({**summary, "failed": failed, "counts": dict(sorted(counts.items()))}), flush=True)
    return 1 if failed else 0


def _batches(first: int, chosen: argparse.Namespace) -> int:
    """Many runs, in processes that have a JVM each."""
    total, failed, seconds = Counter[str](), list[int](), 0.0
    for begin in range(first, first + chosen.runs, _RUNS_OF_A_JVM):
        if chosen.until is not None and time.time() > chosen.until:
            break
        number = min(_RUNS_OF_A_JVM, first + chosen.runs - begin)
        command = [sys.executable, "-m", "tests.crash.model.random_runs", "--seed", str(begin)]
        flags = {"--progress": chosen.progress, "--verbose": chosen.verbose, "--keep": chosen.keep}
        command += [flag for flag, is_set in flags.items() if is_set]
        command += [] if chosen.until is None else ["--until", str(chosen.until)]
        command += ["--runs", str(number), "--at-once", str(chosen.at_once)]
        last = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as batch:
            for line in batch.stdout or ():
                print(line, end="", flush=True)
                last = line
        try:
            part = json.loads(last)
        except ValueError:
            print(f"the batch of {begin} did not come to an end: {batch.returncode}", flush=True)
            failed.append(begin)
            continue
        total += Counter(part["counts"])
        failed += part["failed"]
        seconds += part["seconds"]
        summary = {
            "first": first,
            "seconds": seconds,
            "failed": failed,
            "counts": dict(sorted(total.items())),
        }
        print(f"so far: {json.dumps(summary)}", flush=True)
        if chosen.summary is not None:
            chosen.summary.write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
