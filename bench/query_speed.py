"""How long queries of an earlier state take, beside a bare ``iceberg_scan``.

``python -m bench.query_speed`` prints medians of some rounds on a table of 1,000,000 rows, and their ratios:

* ``IcebergManager.query_as_of`` in this process, three columns with a condition.  The peer opens a DuckDB,
  loads the extension, scans the metadata file of the same snapshot, and makes the same Arrow table.  The goal
  is a ratio of 1.3.
* ``table query`` and ``table sql`` as whole processes.  The peer is a script that prints the same rows; both
  start Python.  The goal is two seconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from bench.check_speed import compile_modules
from icemigrate import IcebergManager

GOAL = 1.3
_COLUMNS = 10
_SCRIPT = """
import importlib, json, sys
from pathlib import Path
import duckdb
given = json.load(sys.stdin)
connection = duckdb.connect()
for name in ("avro", "iceberg"):
    package = importlib.import_module(f"duckdb_extension_{name}")
    (file,) = Path(package.__path__[0]).rglob(f"{name}.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
rows = f"iceberg_scan('{given['location']}', snapshot_from_id => {given['snapshot']})"
for row in connection.execute(given["query"].format(rows=rows)).fetchall():
    print(*row, sep=",")
"""
_COMMAND = "import sys; from icemigrate.cli import main; sys.exit(main())"
_SUMS = "SELECT v1, count(*) AS n, sum(v2) AS total FROM {rows} GROUP BY v1 ORDER BY v1"
_ROWS = "SELECT v3 FROM {rows} LIMIT 10000"
_SELECTED = ("v1", "v2", "v3")
_CONDITION = "v1 = 3"


def _extension(name: str) -> Path:
    (folder,) = importlib.import_module(f"duckdb_extension_{name}").__path__
    (file,) = Path(folder).rglob(f"{name}.duckdb_extension")
    return file


class Bench:
    """A project with one table of four snapshots.

    :ivar snapshot: the third one.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self._folder = folder
        (folder / "migrations").mkdir()
        (folder / "icemigrate.yaml").write_text("project: bench\n", encoding="utf-8")
        columns = ["{name: id, type: long}", *(f"{{name: v{n}, type: long}}" for n in range(1, _COLUMNS))]
        (folder / "migrations" / "0001_table.yaml").write_text(
            f"tables: [{{name: lake.rows, columns: [{', '.join(columns)}]}}]\n", encoding="utf-8"
        )
        self._timed([sys.executable, "-c", _COMMAND, "apply", "--auto-approve", "--apply-with", "metadata"])
        table = self._fill(rows)
        self.snapshot = table.metadata.snapshots[-2]
        self._at = datetime.fromtimestamp(self.snapshot.timestamp_ms / 1000, timezone.utc).isoformat()
        self._location, self._rows = table.metadata_location, rows
        self._manager = IcebergManager(folder)
        self._extensions = [_extension(name) for name in ("avro", "iceberg")]

    def _fill(self, rows: int) -> Any:
        import pyarrow as pa
        from pyiceberg.catalog.sql import SqlCatalog

        state = self._folder / ".icemigrate"
        catalog = SqlCatalog("local", uri=f"sqlite:///{state / 'catalog.db'}", warehouse=f"{state}/warehouse")
        table = catalog.load_table("lake.rows")
        part = rows // 4
        for first in range(0, rows, part):
            ids = range(first, first + part)
            values = {f"v{n}": [number * n % (10**n) for number in ids] for n in range(1, _COLUMNS)}
            table.append(pa.table({"id": list(ids), **values}))
            time.sleep(0.01)  # a time lies between two snapshots
        return table

    def by_manager(self) -> float:
        """The method of the manager, in seconds."""
        began = time.perf_counter()
        rows = self._manager.query_as_of("lake.rows", self._at, _CONDITION, _SELECTED)
        return self._checked(rows.num_rows, began)

    def by_scan(self) -> float:
        """A new DuckDB in this process, in seconds."""
        import duckdb

        began = time.perf_counter()
        rows = f"iceberg_scan('{self._location}', snapshot_from_id => {self.snapshot.snapshot_id})"
        with duckdb.connect() as connection:
            for extension in self._extensions:
                connection.execute(f"LOAD '{extension}'")
            query = f"SELECT {', '.join(_SELECTED)} FROM {rows} WHERE {_CONDITION}"
            found = connection.execute(query).to_arrow_table()
        return self._checked(found.num_rows, began)

    def _checked(self, rows: int, began: float) -> float:
        seconds = time.perf_counter() - began
        if rows != self._rows * 3 // 4 // 10:
            raise SystemExit(f"{rows} rows were found")
        return seconds

    def ours(self, query: str) -> float:
        """The command, in seconds."""
        at = self._at
        if query == _ROWS:
            words = ["query", "lake.rows", "--timestamp", at, "--columns", "v3", "--limit", "10000"]
        else:
            words = ["sql", query.format(rows=f"lake.rows FOR TIMESTAMP AS OF '{at}'")]
        return self._timed([sys.executable, "-c", _COMMAND, "table", *words, "--format", "csv"])

    def bare(self, query: str) -> float:
        """The script, in seconds."""
        given = {"location": self._location, "snapshot": self.snapshot.snapshot_id, "query": query}
        return self._timed([sys.executable, "-c", _SCRIPT], json.dumps(given))

    def _timed(self, command: Sequence[str], text: str = "") -> float:
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=self._folder, input=text, text=True, capture_output=True)
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(f"the process ended with {done.returncode}: {done.stderr[-2000:]}")
        return seconds


def _report(
    name: str, ours: Callable[[], float], peer: Callable[[], float], rounds: int, goal: str = ""
) -> None:
    ours(), peer()
    pairs = [(ours(), peer()) for _ in range(rounds)]
    seconds = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    print("{}: {:.2f} s, peer {:.2f} s".format(name, *seconds) + f", ratio {ratio:.2f}{goal}")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), given.rows)
        _report("query_as_of", bench.by_manager, bench.by_scan, given.rounds, f", goal {GOAL}")
        for name, query in (("table query", _ROWS), ("table sql", _SUMS)):
            _report(f"{name}, process", partial(bench.ours, query), partial(bench.bare, query), given.rounds)
    print(f"{given.rows:,} rows; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
