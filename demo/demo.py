"""The reference project on real Iceberg tables: planned, applied and queried, on the embedded default.

Everything happens in the folder ``.demo`` next to this one, which is made anew; ``make demo`` runs it.
Each line that begins with ``$`` is a command that anyone can type there.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rows import quotes, trades

from icemigrate.cli import main
from icemigrate.errors import IcemigrateError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"
RENAMED = {"volume": "quantity", "bid_volume": "bid_quantity", "ask_volume": "ask_quantity"}


def run() -> int:
    """Play the whole demo.

    :returns: the exit code of the first command that failed, or 0.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(ROOT / "migrations", FOLDER / "migrations")
    os.chdir(FOLDER)
    for scene in _scenes():
        code = scene()
        if code:
            return code
    return 0


def _scenes() -> Iterator[Callable[[], int]]:
    yield lambda: _say("Every file is checked, without a catalog.") or _icemigrate("check")
    yield (
        lambda: (
            _say("The first migration, planned and applied; Spark starts once.")
            or _icemigrate("plan", "--to", "0001")
        )
    )
    yield lambda: _icemigrate("apply", "--to", "0001", "--auto-approve")
    yield lambda: _load(datetime(2026, 3, 2), 2000)
    yield (
        lambda: (
            _say("A column is added, others are renamed. No row is rewritten.")
            or _icemigrate("apply", "--to", "0003", "--auto-approve")
        )
    )
    yield lambda: _load(datetime(2026, 3, 3), 2000)
    yield _travel
    yield (
        lambda: (
            _say("The rest: wider ids, a dropped column, a finer partition, a retention.")
            or _icemigrate("apply", "--auto-approve")
        )
    )
    yield lambda: _load(datetime(2026, 3, 4), 2000)
    yield _afterwards
    yield lambda: _icemigrate("status")
    yield lambda: _icemigrate("history")


def _icemigrate(*arguments: str) -> int:
    print(f"\n$ icemigrate {' '.join(arguments)}", flush=True)
    return main(list(arguments))


def _say(text: str) -> int:
    print(f"\n── {text}", flush=True)
    return 0


def _spark() -> Any:
    """The session that the first `apply` has left running."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None, "nothing was applied yet"
    return session


def _sql(query: str) -> None:
    print(f"\nspark-sql> {query}", flush=True)
    _spark().sql(query).show(truncate=False)


def _load(day: datetime, count: int) -> int:
    for table, rows in (("trades", trades(day, count)), ("quotes", quotes(day, 2 * count))):
        added = _append(f"local.market_data.{table}", [*rows])
        print(f"loaded {added} rows of {day:%Y-%m-%d} into market_data.{table}", flush=True)
    return 0


def _append(table: str, rows: list[dict[str, Any]]) -> int:
    """Append rows as a writer does that knows the table as it is now."""
    spark = _spark()
    schema = spark.table(table).schema
    spark.createDataFrame([_fit(row, schema.names) for row in rows], schema).writeTo(table).append()
    return len(rows)


def _fit(row: Mapping[str, Any], names: list[str]) -> tuple[Any, ...]:
    values = {**row, **{new: row[old] for old, new in RENAMED.items() if old in row}}
    return tuple(values.get(name) for name in names)


def _travel() -> int:
    _say("Every migration is a tag: the same rows with the schema of then, and of now.")
    _sql(
        "SELECT symbol, count(*) AS trades, sum(volume) AS volume FROM local.market_data.trades "
        "VERSION AS OF 'icemigrate-0002' GROUP BY symbol ORDER BY symbol"
    )
    _sql(
        "SELECT symbol, count(*) AS trades, sum(quantity) AS quantity FROM local.market_data.trades "
        "GROUP BY symbol ORDER BY symbol"
    )
    return 0


def _afterwards() -> int:
    _say("The dropped column is gone from the table, and still there under the tag before it.")
    _sql(
        "SELECT qualifiers, count(*) AS trades FROM local.market_data.trades "
        "VERSION AS OF 'icemigrate-0004' GROUP BY qualifiers ORDER BY qualifiers"
    )
    _sql(
        "SELECT partition.exchange_date, count(*) AS partitions, sum(record_count) AS rows "
        "FROM local.market_data.trades.partitions GROUP BY 1 ORDER BY 1"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(run())
    except IcemigrateError as error:
        sys.exit(f"{error.message}\n{error.hint or ''}")
