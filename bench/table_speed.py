"""How long it takes to create a table, to insert a million rows of a CSV file and to add a column.

DuckDB reads the same CSV file and writes the same Parquet, with the same types.  Its time is the unit of the
insert, because machines differ.  The unit of the column is PyIceberg's time for the same update of a table of
the same age.  Each is a whole process, and the shortest of several runs counts.

    python -m bench.table_speed [--rows 1000000] [--runs 5]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.check_speed import compile_modules

SCHEMA = """\
columns:
  - {name: id, type: long, required: true}
  - {name: customer, type: string}
  - {name: amount, type: "decimal(10,2)"}
  - {name: quantity, type: int}
  - {name: at, type: timestamptz}
  - {name: day, type: date}
  - {name: price, type: double}
  - {name: flag, type: boolean}
  - {name: note, type: string}
  - {name: code, type: string}
"""
ROWS = """
copy (
  select i as id, 'customer ' || (i % 5000) as customer, (i % 100000) / 100::decimal(10,2) as amount,
    (i * 7) % 1000 as quantity, timestamp '2024-01-01' + interval (i) second as at,
    date '2024-01-01' + (i % 365)::int as day, i * 1.5 as price, i % 2 = 0 as flag,
    'note number ' || i as note, md5(i::varchar) as code
  from range({rows}) t(i)
) to '{path}' (header)
"""
DUCKDB = """
import duckdb
connection = duckdb.connect()
connection.execute("set TimeZone = 'UTC'")
connection.execute(
    "copy (select * from read_csv('{csv}', types = {{'amount': 'DECIMAL(10,2)', 'at': 'TIMESTAMPTZ'}}))"
    " to '{parquet}' (format parquet, compression zstd)"
)
"""


PYICEBERG = """
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import StringType
catalog = SqlCatalog("local", uri="sqlite:///{state}/catalog.db", warehouse="{state}/warehouse")
with catalog.load_table("speed.peer").update_schema() as update:
    update.add_column("{column}", StringType())
"""


def seconds(arguments: list[str], folder: Path) -> float:
    """How long a process takes."""
    began = time.perf_counter()
    subprocess.run(arguments, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print one line for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    wanted = parser.parse_args()
    compile_modules()
    icemigrate = [sys.executable, "-m", "icemigrate.cli"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "icemigrate.yaml").write_text("project: speed\n", encoding="utf-8")
        (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        rows = ROWS.format(rows=wanted.rows, path=folder / "rows.csv")
        alone = DUCKDB.format(csv=folder / "rows.csv", parquet=folder / "alone.parquet")
        subprocess.run([sys.executable, "-c", f"import duckdb; duckdb.sql({rows!r})"], check=True)
        creates, inserts, copies = list[float](), list[float](), list[float]()
        columns, peers = list[float](), list[float]()
        for name in ("speed.own", "speed.peer"):
            seconds([*icemigrate, "table", "create", name, "--schema", "schema.yaml"], folder)
        for number in range(wanted.runs):
            name = f"speed.t{number}"
            creates.append(seconds([*icemigrate, "table", "create", name, "--schema", "schema.yaml"], folder))
            copies.append(seconds([sys.executable, "-c", alone], folder))
            inserts.append(seconds([*icemigrate, "table", "insert", name, "--data", "rows.csv"], folder))
            column = f"added_{number}"
            own = ["table", "add-column", "speed.own", column, "string", "--quiet"]
            columns.append(seconds([*icemigrate, *own], folder))
            peer = PYICEBERG.format(state=folder / ".icemigrate", column=column)
            peers.append(seconds([sys.executable, "-c", peer], folder))
        sys.stdout.write(
            f"create a table: {min(creates):.2f} s\n"
            f"insert {wanted.rows:,} rows of 10 columns from CSV: {min(inserts):.2f} s\n"
            f"DuckDB alone, CSV to Parquet: {min(copies):.2f} s\n"
            f"ratio: {min(inserts) / min(copies):.2f}\n"
            f"add a column: {min(columns):.2f} s\n"
            f"PyIceberg alone, the same update: {min(peers):.2f} s\n"
            f"ratio: {min(columns) / min(peers):.2f}\n"
        )


if __name__ == "__main__":
    main()
