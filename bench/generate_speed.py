"""How fast rows of test data become a Parquet file: the native module, Arrow in Python, and DuckDB.

``python -m bench.generate_speed`` writes ten million rows of ten columns with each of them, in turns, and
prints the best times as ratios; then the peak memory of the native module for ten and for a hundred million
rows.  DuckDB makes similar values with ``range()`` and ``random()``, and writes Parquet with the same codec
and row groups.  Seconds of the processor are more exact than those of the clock where other processes run.

The native module has to be installed: ``pip install ./rust/python``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from icemigrate.frozen import Frozen
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Decimal, Field, List, Primitive, Type
from icemigrate.test_data import parquet_file
from icemigrate.test_data.parquet_file import ROWS_PER_GROUP, RowRange, write_rows

COLUMNS: dict[str, Type] = {
    "id": Primitive("long"),
    "customer_id": Primitive("long"),
    "email": Primitive("string"),
    "city": Primitive("string"),
    "status": Primitive("string"),
    "amount": Decimal(10, 2),
    "quantity": Primitive("int"),
    "ratio": Primitive("double"),
    "ordered_at": Primitive("timestamptz"),
    "tags": List(Field(100, "element", Primitive("string"), True)),
}
OPTIONAL = ("email", "city", "quantity", "ratio", "tags")
WORDS = "['amber', 'basin', 'cedar', 'delta', 'ember', 'field', 'grove', 'haven']"
DUCKDB = f"""
COPY (
    SELECT
        range AS id,
        pow(2, random() * 20)::BIGINT AS customer_id,
        if(random() < 0.05, NULL, concat(
            ['ada', 'alan', 'amir', 'anna', 'ben'][1 + (random() * 4)::INT], '.',
            ['adams', 'bauer', 'brown', 'costa', 'diaz'][1 + (random() * 4)::INT],
            (random() * 1023)::INT, '@example.com')) AS email,
        if(random() < 0.05, NULL, ['London', 'Paris', 'Berlin', 'Rome'][pow(2, random() * 2)::INT]) AS city,
        ['active', 'pending', 'completed', 'cancelled'][pow(2, random() * 2)::INT] AS status,
        pow(2, random() * 20)::DECIMAL(10, 2) AS amount,
        if(random() < 0.05, NULL, pow(2, random() * 6)::INT) AS quantity,
        if(random() < 0.05, NULL, (random() * 10000)::INT / 10000) AS ratio,
        to_timestamp(1704067200 + range)
            - if(random() < 0.0625, to_milliseconds((random() * 3600000)::INT),
                 to_microseconds((random() * 1000000)::INT)) AS ordered_at,
        if(random() < 0.05, NULL, list_transform(
            range((random() * 4)::INT),
            x -> concat({WORDS}[1 + (random() * 7)::INT], '-', (random() * 999)::INT))) AS tags
    FROM range(%d)
) TO '%s' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {ROWS_PER_GROUP})
"""


def schema() -> Schema:
    """The schema of the ten columns."""
    pairs = enumerate(COLUMNS.items(), 1)
    return Schema(tuple(Field(number, name, type_, name not in OPTIONAL) for number, (name, type_) in pairs))


def generate(generator: str, rows: int, file: Path) -> None:
    """Write a file in this process."""
    if generator == "duckdb":
        import duckdb

        duckdb.execute(DUCKDB % (rows, file))
        return
    if generator == "arrow":
        parquet_file.native_module = lambda: None
    with file.open("wb") as stream:
        used = write_rows(schema(), RowRange(0, rows, 1), stream)
    assert used == generator, f"the module `icemigrate_native` is {'not ' * (used == 'arrow')}installed"


class Measurement(Frozen):
    """What one process took.

    :param seconds: by the clock.
    :param cpu_seconds: of all threads.
    :param megabytes: the peak memory of the process.
    """

    seconds: float
    cpu_seconds: float
    megabytes: float

    def __str__(self) -> str:
        times = f"{self.seconds:.1f} s, {self.cpu_seconds:.1f} s of the processor"
        return f"{times}, {self.megabytes:.0f} MB of memory"


def measure_here(generator: str, rows: int, file: Path) -> Measurement:
    """The measurement of this process."""
    began, before = time.monotonic(), time.process_time()
    generate(generator, rows, file)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measurement(time.monotonic() - began, time.process_time() - before, peak)


def measure(generator: str, rows: int, file: Path) -> Measurement:
    """The measurement of a process of its own."""
    command = [sys.executable, "-m", "bench.generate_speed", "--one", generator, str(rows), str(file)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Measurement(*json.loads(ran.stdout))


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=2, help="turns")
    parser.add_argument("--most-rows", type=int, default=100_000_000, help="rows of the last measurement")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        generator, rows, file = given.one
        found = measure_here(generator, int(rows), Path(file))
        print(json.dumps([found.seconds, found.cpu_seconds, found.megabytes]))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        best: dict[str, Measurement] = {}
        for _ in range(given.times):
            for generator in ("native", "arrow", "duckdb"):
                found = measure(generator, given.rows, file)
                best[generator] = min(found, best.get(generator, found), key=lambda one: one.seconds)
                size = file.stat().st_size / 1e6
                print(f"{generator}: {given.rows:,} rows in {found}, a file of {size:.0f} MB", flush=True)
        native = best["native"]
        for other in ("arrow", "duckdb"):
            ratio, of_cpu = (
                best[other].seconds / native.seconds,
                best[other].cpu_seconds / native.cpu_seconds,
            )
            print(f"{other} takes {ratio:.1f} times as long as native, and {of_cpu:.1f} times the processor")
        for rows in (given.rows, given.most_rows):
            print(f"native: {rows:,} rows in {measure('native', rows, file)}", flush=True)


if __name__ == "__main__":
    main()
