"""What each version of one growing table costs, and what its history keeps.

``python -m bench.growing_table`` applies 500 versions, each of which adds a column, without Spark.  It prints
the CPU time of the first and of the last versions in one process, that of the second and of the last one in
a process of their own, and the size of the history: the bytes of its properties, and the bytes and the number
of the files below its location.  Then it applies 250 versions with Spark, and prints the memory of the JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bench import replay_speed
from bench.check_speed import compile_modules

NAME = "apply, versions of one growing table"
"""The name in the list of :mod:`bench.growth`."""
_SOME = 10
"""How many versions a median is of."""
_MOST_GROWTH = 1.5
_MOST_MS = 500
_MOST_VERSIONS = 251
"""The number of versions for which the sizes have goals; the goals grow with the versions."""
_MOST_PROPERTIES_MB = 0.5
_MOST_KEPT_MB = 25.0
_MOST_JVM_MB = 600
_JVM_VERSIONS = (2, 50, 100, 250)
"""The versions after which the memory of the JVM is printed."""
_MOST_JVM_GROWTH = 1.1
_TOP = Path(__file__).parents[1]
_COSTS = "import sys; from bench.version_costs import print_costs; print_costs(sys.argv[1])"
_COMMAND = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class HistorySize:
    """The size of a history: bytes of its properties, and its files."""

    properties: int
    kept: int
    files: int


@dataclass(frozen=True, slots=True)
class VersionCost:
    """One version: the CPU time of icemigrate's process, and the memory of the JVM."""

    cpu_ms: float
    jvm_mb: float


def version_costs(folder: Path, versions: int, apply_with: str) -> list[VersionCost]:
    """The cost of each version, where one process adds a column to a table in each."""
    replay_speed.make(folder, versions, "add")
    command = [sys.executable, "-c", _COSTS, apply_with]
    environment = {**os.environ, "PYTHONPATH": str(_TOP)}
    # A process of its own, as `bench.growth` has to stay small: a child's peak memory begins at its parent's.
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return [VersionCost(**json.loads(line)) for line in done.stdout.splitlines()]


def process_cost(folder: Path, version: int) -> float:
    """The CPU seconds of a process that applies one more version, without Spark.

    :param version: of a project that has all versions before.
    """
    text = "tables:\n  - name: db.t\n    columns: [{name: last, type: string}]\n"
    (folder / "migrations" / f"{version:05}_step.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", _COMMAND, "apply", "--auto-approve", "--apply-with", "metadata"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"version {version} ends with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def history_size(folder: Path) -> HistorySize:
    """The size of the history in a project's embedded catalog."""
    query = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 'history'"
    with closing(sqlite3.connect(folder / ".icemigrate" / "catalog.db")) as database:
        (location,) = database.execute(query).fetchone()
    metadata = _path(location)
    properties = json.loads(metadata.read_bytes())["properties"]
    files = [file for file in metadata.parents[1].rglob("*") if file.is_file()]
    return HistorySize(
        sum(len(key) + len(value) for key, value in properties.items()),
        sum(file.stat().st_size for file in files),
        len(files),
    )


def _path(location: str) -> Path:
    return Path(unquote(urlsplit(location).path) if location.startswith("file:") else location)


def growth_line(found: Sequence[VersionCost]) -> str:
    """The cost of the last versions, and in multiples of the first ones after the creation of the table."""
    times = [one.cpu_ms for one in found]
    few, many = (statistics.median(part) for part in (times[1 : 1 + _SOME], times[-_SOME:]))
    missed = [
        f"{what}, goal {goal}"
        for what, value, goal in (("ratio", many / few, _MOST_GROWTH), ("ms", many, _MOST_MS))
        if value > goal
    ]
    return (
        f"{NAME}: versions 2 to {1 + _SOME} {few:.0f} ms CPU each, the last {_SOME} of {len(found)} "
        f"{many:.0f} ms CPU each; ratio {many / few:.2f}; {_result(missed)}"
    )


def process_line(few: float, many: float, versions: int) -> str:
    """The cost of the second and of the last version, as whole processes."""
    missed = [f"ratio, goal {_MOST_GROWTH}"] if many / few > _MOST_GROWTH else []
    return (
        f"{NAME}: a process for version 2 {few:.2f} s CPU, for version {versions} {many:.2f} s CPU; "
        f"ratio {many / few:.2f}; {_result(missed)}"
    )


def jvm_line(found: Sequence[VersionCost]) -> str:
    """The memory of the JVM after some versions."""
    shown = {number: found[number - 1].jvm_mb for number in _JVM_VERSIONS if number <= len(found)}
    last = max(shown)
    missed = [f"{last} versions, goal {_MOST_JVM_MB} MB"] if shown[last] > _MOST_JVM_MB else []
    if shown[last] > _MOST_JVM_GROWTH * shown[min(shown)]:
        missed.append(f"growth, goal {_MOST_JVM_GROWTH}")
    sizes = ", ".join(f"{number}: {size:.0f} MB" for number, size in shown.items())
    return f"{NAME}, with Spark: the JVM after versions {sizes}; {_result(missed)}"


def size_line(found: HistorySize, versions: int) -> str:
    """The size of the history after so many versions."""
    share = max(1.0, versions / _MOST_VERSIONS)
    properties, kept = found.properties / 1e6, found.kept / 1e6
    missed = [
        f"{what}, goal {goal * share:.1f} MB"
        for what, value, goal in (
            ("properties", properties, _MOST_PROPERTIES_MB),
            ("files", kept, _MOST_KEPT_MB),
        )
        if value > goal * share
    ]
    return (
        f"{NAME}: the history has {properties:.2f} MB of properties and {kept:.1f} MB in {found.files} "
        f"files; {_result(missed)}"
    )


def _result(missed: list[str]) -> str:
    return f"MISSED: {'; '.join(missed)}" if missed else "goals met"


def lines(versions: int) -> Iterator[str]:
    """The result for so many versions."""
    with tempfile.TemporaryDirectory() as name:
        many, few, in_spark = (Path(name) / one for one in ("many", "few", "spark"))
        yield growth_line(version_costs(many, versions, "metadata"))
        yield size_line(history_size(many), versions)
        version_costs(few, 1, "metadata")
        yield process_line(process_cost(few, 2), process_cost(many, versions + 1), versions + 1)
        yield jvm_line(version_costs(in_spark, min(versions, max(_JVM_VERSIONS)), "spark"))


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=500)
    arguments = parser.parse_args()
    compile_modules()
    for line in lines(arguments.versions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
