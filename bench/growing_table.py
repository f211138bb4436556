"""What each version of one growing table costs, and what its history keeps.

``python -m bench.growing_table`` applies 500 versions in one process, each of which adds a column, without
Spark.  It prints the elapsed time of the first and of the last versions, and the size of the history: the
bytes of its properties, and the bytes and the number of the files below its location.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class HistorySize:
    """The size of a history: bytes of its properties, and its files."""

    properties: int
    kept: int
    files: int


def version_costs(folder: Path, versions: int) -> list[int]:
    """The elapsed milliseconds of each version, where one process adds a column to a table in each."""
    # Late, as `bench.growth` has to stay small: a child's peak memory begins at its parent's.
    from bench.apply_speed import icemigrate
    from icemigrate import Project

    replay_speed.make(folder, versions, "add")
    icemigrate(folder, "apply", "--auto-approve", "--apply-with", "metadata")
    entries = Project(folder).history().entries
    return [entry.duration_ms for entry in sorted(entries, key=lambda entry: entry.version)]


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


def growth_line(found: list[int]) -> str:
    """The cost of the last versions, and in multiples of the first ones after the creation of the table."""
    few, many = (statistics.median(part) for part in (found[1 : 1 + _SOME], found[-_SOME:]))
    missed = [
        f"{what}, goal {goal}"
        for what, value, goal in (("ratio", many / few, _MOST_GROWTH), ("ms", many, _MOST_MS))
        if value > goal
    ]
    return (
        f"{NAME}: versions 2 to {1 + _SOME} {few:.0f} ms each, the last {_SOME} of {len(found)} "
        f"{many:.0f} ms each; ratio {many / few:.2f}; {_result(missed)}"
    )


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
        folder = Path(name)
        yield growth_line(version_costs(folder, versions))
        yield size_line(history_size(folder), versions)


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
