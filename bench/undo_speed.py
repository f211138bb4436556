"""How long ``icemigrate rollback`` takes as a whole process, for one migration that altered many tables.

``python -m bench.undo_speed`` prints, for one table and for a hundred, the seconds of the undo and those of a
process that only starts Spark, as icemigrate starts it, in the same run: the rest is what the undo itself
takes.  The migration renames a column, drops one that has values, and adds one; every table has rows from
before it and from after it, so that the undo asks the files of all of them what they still hold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.apply_speed import icemigrate, script, timed

TABLES = (1, 100)
_START = """
from icemigrate.project import open_project
from icemigrate.execution.spark_start import open_engine
from icemigrate.project import choose_environment
open_engine(choose_environment(open_project(), None, {}), None).session.sql("SHOW NAMESPACES").collect()
"""
_MAKE = """\
    columns:
      - {name: id, type: long}
      - {name: symbol, type: string}
      - {name: price, type: "decimal(9,2)"}
"""
_ALTER = """\
    renames: {symbol: ticker}
    drop_columns: [price]
    columns: [{name: venue, type: string}]
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    :param undo: of ``icemigrate rollback``, from process start to its end.
    :param start: of a process that does no more than start Spark.
    """

    undo: float
    start: float

    @property
    def beyond(self) -> float:
        """What the undo takes beyond the start of Spark."""
        return self.undo - self.start


class Bench:
    """A project of so many tables with rows, whose second migration is applied."""

    def __init__(self, folder: Path, tables: int) -> None:
        self._folder = folder
        self._names = [f"bench.t{number}" for number in range(tables)]
        (folder / "migrations").mkdir()
        self._migration("0001_make.yaml", "", _MAKE)
        icemigrate(folder, "apply", "--auto-approve")
        self._insert("(1, 'ACME', 182.40), (2, 'GLBX', 57.15)")
        self._migration("0002_alter.yaml", "allow: [destructive]\n", _ALTER)
        icemigrate(folder, "apply", "--auto-approve")

    def round(self) -> Times:
        """Take the second migration back after rows have come, and apply it again for the next round."""
        self._insert("(3, 'INIT', 'XLON')")
        start = timed([sys.executable, "-c", _START], self._folder)
        undo = icemigrate(self._folder, "rollback", "--auto-approve")
        icemigrate(self._folder, "apply", "--redo", "0002", "--auto-approve")
        return Times(undo, start)

    def _migration(self, file: str, consent: str, entry: str) -> None:
        text = f"{consent}tables:\n" + "".join(f"  - name: {name}\n{entry}" for name in self._names)
        (self._folder / "migrations" / file).write_text(text, encoding="utf-8")

    def _insert(self, values: str) -> None:
        script(self._folder, [f"INSERT INTO local.{name} VALUES {values}" for name in self._names])


def measure(tables: int, rounds: int) -> Times:
    """The medians of some rounds."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), tables)
        times = [bench.round() for _ in range(rounds)]
    return Times(statistics.median(t.undo for t in times), statistics.median(t.start for t in times))


def lines(sizes: Sequence[int], found: Sequence[Times]) -> list[str]:
    """The result, a line for each size, and one for each further table."""
    said = [
        f"{size:4} tables: undo {t.undo:6.2f} s; start of Spark {t.start:6.2f} s; beyond it {t.beyond:6.2f} s"
        for size, t in zip(sizes, found, strict=True)
    ]
    further = (found[-1].beyond - found[0].beyond) / (sizes[-1] - sizes[0])
    return [*said, f"each further table {1000 * further:.0f} ms"]


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for line in lines(TABLES, [measure(tables, rounds) for tables in TABLES]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
