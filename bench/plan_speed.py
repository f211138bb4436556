"""How long ``icemigrate plan`` takes as a whole process, beside one that loads the same tables by PyIceberg.

``python -m bench.plan_speed`` prints one line per size of lake; the ratio counts, since machines are noisy.
Every table is declared, applied and touched by the pending migration, so each is read from the catalog and
from the history, merged, planned and shown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import lake, project
from bench.check_speed import compile_modules

_OURS = "import sys; from icemigrate.cli import main; sys.exit(main(['plan']))"
_THEIRS = """
import sys
from pyiceberg.catalog.sql import SqlCatalog
catalog = SqlCatalog(sys.argv[1], uri="sqlite:///catalog.db")
names = catalog.list_tables(sys.argv[2])
assert len([t for t in map(catalog.load_table, names) if t.current_snapshot()]) == int(sys.argv[3])
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall time in seconds, highest memory in megabytes."""

    seconds: float
    megabytes: float


def measure(program: str, folder: Path, arguments: Sequence[str] = ()) -> Run:
    """Run one process in a folder and wait for it."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    # `Popen` is told, since the process was waited for behind its back.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the process ended with {process.returncode}")
    return Run(seconds, usage.ru_maxrss / 1024)


def compare(tables: int, rounds: int) -> str:
    """One line of the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A child's highest memory begins at its parent's, so this process has to stay small.
        with ProcessPoolExecutor(1) as pool:
            pool.submit(project.make, folder, tables).result()
        loading = (lake.CATALOG_NAME, lake.NAMESPACE, str(tables))
        pairs = [(measure(_OURS, folder), measure(_THEIRS, folder, loading)) for _ in range(rounds)]
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    mine, other = _middle(ours), _middle(theirs)
    return (
        f"{tables:5} tables: icemigrate {mine:6.2f} s, {_peak(ours):4.0f} MB; "
        f"PyIceberg {other:6.2f} s, {_peak(theirs):4.0f} MB; ratio {mine / other:.2f}"
    )


def _peak(runs: list[Run]) -> float:
    return max(run.megabytes for run in runs)


def _middle(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=int, default=[1, 1000], help="sizes of lakes")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    compile_modules()
    for tables in arguments.tables:
        print(compare(tables, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
