"""Rows as DuckDB reads them: `python -m tests.spark.duckdb_rows` takes queries as JSON and prints rows.

It runs in a process of its own, since an exception in DuckDB's extension ends the process.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Query = tuple[str, Sequence[Any]]


def duckdb_rows(queries: Sequence[Query]) -> list[list[list[Any]]]:
    """The rows of each query with its parameters; what is no number or null is text."""
    words = [sys.executable, "-m", __name__]
    text = json.dumps(queries, default=str)
    ran = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[list[list[Any]]] = json.loads(ran.stdout)
    return found


def main() -> None:
    """Answer the queries; nothing is downloaded."""
    import duckdb

    config = {"autoinstall_known_extensions": "false", "enable_external_file_cache": "false"}
    reader = duckdb.connect(config=config)
    for name in ("avro", "httpfs", "iceberg"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        (file,) = Path(package.__path__[0]).rglob(f"{name}.duckdb_extension")
        reader.execute(f"LOAD '{file}'")
    found = [reader.execute(query, values).fetchall() for query, values in json.load(sys.stdin)]
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main()
