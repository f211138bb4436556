"""How long ``icemigrate apply`` takes as a whole process, beside a PySpark script with the same statements.

``python -m bench.apply_speed`` prints one line per case; the ratio counts, since machines are noisy.  Both
start Spark anew: the script with the defaults of a session, jars and catalog added.  Of every table there are
two, one for each side, so that both meet tables of the same age.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from icemigrate import Project
from icemigrate.changes.change import SqlStatement
from icemigrate.spark import find_java
from icemigrate.spark.jars import locate_jars
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.versions import spark_release

_OURS, _THEIRS = "ours", "theirs"
_COMMAND = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"
_SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
given = json.load(sys.stdin)
builder = SparkSession.builder
for key, value in given["conf"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
for statement in given["statements"]:
    spark.sql(statement)
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A size of migration.

    :param tables: how many tables it changes.
    :param columns: how many columns each of them gets, in one statement.
    :param comments: how many columns are described, with one statement for each.
    """

    tables: int
    columns: int = 1
    comments: int = 0

    def __str__(self) -> str:
        said = f"{self.tables} tables, {self.columns} new columns each"
        return f"{said}, {self.comments} described" if self.comments else said


CASES = (Case(1), Case(100), Case(1, columns=100), Case(1, comments=50))


class Bench:
    """A project whose tables are made, for one case."""

    def __init__(self, folder: Path, case: Case) -> None:
        self._folder = folder
        self._case = case
        self._version = 1
        (folder / "migrations").mkdir()
        self._write(self._entries((_OURS, _THEIRS), self._first))
        self.ours()

    def round(self) -> tuple[float, float]:
        """Both sides on a further migration, in seconds."""
        self._version += 1
        self._write(self._entries((_OURS,), self._next))
        plan = Project(self._folder).plan().plan
        steps = [step for table in plan.migrations[0].tables for step in table.steps]
        statements = [
            s.text.replace(f".{_OURS}.", f".{_THEIRS}.")
            for step in steps
            for s in step.statements
            if isinstance(s, SqlStatement)
        ]
        return self.ours(), script(self._folder, statements)

    def ours(self) -> float:
        """``icemigrate apply`` of what is pending."""
        return icemigrate(self._folder, "apply", "--auto-approve")

    def _write(self, entries: Iterator[str]) -> None:
        text = "tables:\n" + "".join(entries)
        (self._folder / "migrations" / f"{self._version:04}_step.yaml").write_text(text, encoding="utf-8")

    def _entries(self, sides: Sequence[str], columns: str) -> Iterator[str]:
        for side in sides:
            for number in range(self._case.tables):
                yield f"  - name: {side}.t{number}\n    columns:\n{columns}"

    @property
    def _first(self) -> str:
        names = ("id", *(f"c{i}" for i in range(self._case.comments)))
        return "".join(f"      - {{name: {name}, type: long}}\n" for name in names)

    @property
    def _next(self) -> str:
        new = (f"n{self._version}_{i}" for i in range(self._case.columns))
        lines = [f"      - {{name: {name}, type: int}}\n" for name in new]
        lines += [
            f"      - {{name: c{i}, description: Version {self._version}}}\n"
            for i in range(self._case.comments)
        ]
        return "".join(lines)


def icemigrate(folder: Path, *arguments: str) -> float:
    """A command in a project's folder, as a process of its own, in seconds."""
    return timed([sys.executable, "-c", _COMMAND, *arguments], folder)


def script(folder: Path, statements: Sequence[str]) -> float:
    """A PySpark script that runs the statements on the embedded catalog of a project, in seconds."""
    state = folder / ".icemigrate"
    conf = _session_conf(sqlite_catalog_conf(state / "catalog.db", state / "warehouse"))
    return timed(
        [sys.executable, "-c", _SCRIPT], folder, json.dumps({"conf": conf, "statements": statements})
    )


def _session_conf(catalog: dict[str, str]) -> dict[str, str]:
    located = locate_jars(SparkSettings("local", catalog), spark_release(pyspark.__version__))
    prefix = "spark.sql.catalog.local"
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in catalog.items()},
    }
    return conf | {"spark.jars": ",".join(map(str, located.files))}


def timed(command: Sequence[str], folder: Path, text: str = "") -> float:
    """A process that must end well, in seconds.

    :param text: what it reads from its standard input.
    """
    home = find_java.find_java(spark_release(pyspark.__version__).java).home
    before = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        input=text,
        text=True,
        capture_output=True,
        env={**os.environ, "JAVA_HOME": str(home)},
    )
    seconds = time.perf_counter() - before
    if done.returncode:
        raise SystemExit(f"the process ended with {done.returncode}: {done.stderr[-2000:]}")
    return seconds


def compare(case: Case, rounds: int) -> str:
    """One line of the result."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), case)
        pairs = [bench.round() for _ in range(rounds)]
    ours, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    return f"{case!s:45} icemigrate {ours:6.2f} s; script {theirs:6.2f} s; ratio {ours / theirs:.2f}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for case in CASES:
        print(compare(case, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
