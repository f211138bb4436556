"""How long commits of metadata in Python take as whole processes, beside scripts that do the same.

``python -m bench.metadata_speed`` prints, for ``apply --apply-with metadata`` and ``rollback``, the medians
of some rounds and two ratios: to a PySpark script with the statements of the plan, and to a PyIceberg script
that commits the same changes of the schemas.  The last lines are those of :mod:`bench.growing_table`.  The
ratios count, since machines are noisy; the lines with the load say how noisy.  Each side has tables of its
own, of the same age, in the embedded catalog.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import growing_table
from bench.apply_speed import icemigrate, script, timed
from bench.check_speed import compile_modules

_OURS, _SPARK, _PYICEBERG = SIDES = ("ours", "spark", "pyiceberg")
_NAME = "local"
_SCRIPT = """
import json, sys
from pyiceberg.catalog import load_catalog
from pyiceberg.types import IntegerType
given = json.load(sys.stdin)
catalog = load_catalog("local", type="sql", uri=given["uri"], warehouse=given["warehouse"])
for name in given["tables"]:
    with catalog.load_table(name).update_schema(allow_incompatible_changes=True) as update:
        if given["drops"]:
            update.delete_column(given["column"])
        else:
            update.add_column(given["column"], IntegerType())
"""


@dataclass(frozen=True, slots=True)
class Work:
    """A command on some tables.

    :param drops: whether it is ``rollback``, else ``apply``; both change one column of each table.
    :param spark_goal: the highest ratio to the PySpark script.
    :param pyiceberg_goal: the highest ratio to the PyIceberg script; ``None`` for no goal.
    """

    tables: int
    drops: bool
    spark_goal: float
    pyiceberg_goal: float | None = None

    def __str__(self) -> str:
        return f"{'rollback' if self.drops else 'apply'}, {self.tables} tables"


WORKS = (Work(1, False, 0.15, 0.6), Work(1, True, 0.15, 0.6), Work(100, False, 0.25))


@dataclass(frozen=True, slots=True)
class Cost:
    """A process: elapsed time, and CPU time without that of its JVM, in seconds."""

    elapsed_s: float
    cpu_s: float


class Bench:
    """A project whose tables exist, for one number of tables."""

    def __init__(self, folder: Path, tables: int) -> None:
        self._folder = folder
        self._tables = tables
        self._version = 1
        (folder / "migrations").mkdir()
        (folder / "icemigrate.yaml").write_text("project: bench\n", encoding="utf-8")
        self._write(SIDES, "id", "long")
        self._run_icemigrate("apply")

    def round(self, drops: bool) -> dict[str, Cost]:
        """Add a column to all tables and, if asked, drop it again; the costs of the last of these by side."""
        self._version += 1
        column = f"n{self._version}"
        self._write((_OURS,), column, "int")
        costs = self._change(column, drops=False)
        return self._change(column, drops=True) if drops else costs

    def _change(self, column: str, drops: bool) -> dict[str, Cost]:
        command = "rollback" if drops else "apply"
        change = f"DROP COLUMN {column}" if drops else f"ADD COLUMNS ({column} INT)"
        statements = [f"ALTER TABLE {_NAME}.{name} {change}" for name in self._names(_SPARK)]
        state = self._folder / ".icemigrate"
        given = {
            "uri": f"sqlite:///{state / 'catalog.db'}",
            "warehouse": (state / "warehouse").as_uri(),
            "tables": list(self._names(_PYICEBERG)),
            "column": column,
            "drops": drops,
        }
        return {
            _OURS: cost(lambda: self._run_icemigrate(command)),
            _SPARK: cost(lambda: script(self._folder, statements)),
            _PYICEBERG: cost(lambda: timed([sys.executable, "-c", _SCRIPT], self._folder, json.dumps(given))),
        }

    def _run_icemigrate(self, command: str) -> float:
        return icemigrate(self._folder, command, "--auto-approve", "--apply-with", "metadata")

    def _write(self, sides: Sequence[str], column: str, type_: str) -> None:
        entries = (
            f"  - name: {name}\n    columns: [{{name: {column}, type: {type_}}}]\n"
            for side in sides
            for name in self._names(side)
        )
        path = self._folder / "migrations" / f"{self._version:04}_step.yaml"
        path.write_text("tables:\n" + "".join(entries), encoding="utf-8")

    def _names(self, side: str) -> Iterator[str]:
        return (f"{side}.t{number}" for number in range(self._tables))


def cost(run: Callable[[], float]) -> Cost:
    """What one child process costs.

    :param run: runs it; returns the elapsed seconds.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def lines(work: Work, rounds: int) -> Iterator[str]:
    """The result: the medians, the ratios, and the load."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), work.tables)
        found = [bench.round(work.drops) for _ in range(rounds)]
    ours, spark, pyiceberg = (statistics.median(costs[side].elapsed_s for costs in found) for side in SIDES)
    cpu, cpu_pyiceberg = (statistics.median(c[side].cpu_s for c in found) for side in (_OURS, _PYICEBERG))
    yield (
        f"{work!s:22} icemigrate {ours:6.2f} s ({cpu:.2f} s CPU); PySpark {spark:6.2f} s; "
        f"PyIceberg {pyiceberg:6.2f} s ({cpu_pyiceberg:.2f} s CPU)"
    )
    yield (
        f"{work!s:22} of PySpark {_ratio(ours / spark, work.spark_goal)}; "
        f"of PyIceberg {_ratio(ours / pyiceberg, work.pyiceberg_goal)}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )


def _ratio(found: float, goal: float | None) -> str:
    if goal is None:
        return f"{found:.2f}"
    return f"{found:.2f}, goal {goal}{'' if found <= goal else ' MISSED'}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--versions", type=int, default=250, help="of the growing table")
    arguments = parser.parse_args()
    compile_modules()
    for work in WORKS:
        for line in lines(work, arguments.rounds):
            print(line, flush=True)
    for line in growing_table.lines(arguments.versions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
