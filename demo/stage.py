"""What the demo is played with: commands, queries, rows that arrive, and promises that are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from demo.rows import trades
from icemigrate.cli import main
from icemigrate.errors import IcemigrateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RENAMED = {"volume": "quantity"}

Rows: TypeAlias = list[tuple[Any, ...]]


class BrokenPromise(Exception):
    """What the demo shows is not what was promised."""


def failure_of(play: Callable[[], None]) -> str | None:
    """Play a demo: what failed, or ``None``."""
    try:
        play()
    except BrokenPromise as broken:
        return f"✗ {broken}"
    except IcemigrateError as error:
        return f"{error.message}\n{error.hint or ''}"
    return None


def icemigrate(*arguments: str, is_told: bool = True) -> None:
    """Type a command.

    :param is_told: whether all that it writes is shown; else the last line of it alone, where it goes well.
    :raises SystemExit: it failed; with its exit code.
    """
    print(f"\n$ icemigrate {' '.join(arguments)}", flush=True)
    if is_told:
        code = main(list(arguments))
    else:
        told = StringIO()
        with redirect_stdout(told), redirect_stderr(told):
            code = main(list(arguments))
        print(told.getvalue() if code else told.getvalue().rstrip().rpartition("\n")[2], flush=True)
    if code:
        raise SystemExit(int(code))


def say(text: str) -> None:
    """Tell what comes next."""
    print(f"\n── {text}", flush=True)


def show(query: str) -> None:
    """Type a query into Spark's shell, with its answer as a table."""
    print(f"\nspark-sql> {query}", flush=True)
    _spark().sql(query).show(truncate=False)


def ask(query: str) -> Rows:
    """What a query finds, unseen."""
    return [tuple(row) for row in _spark().sql(query).collect()]


def promise(words: str, holds: bool) -> None:
    """Hold the demo to what it says.

    :raises BrokenPromise: it is not so.
    """
    if not holds:
        raise BrokenPromise(words)
    print(f"✓ {words}", flush=True)


def load_trades(day: datetime, count: int) -> None:
    """Let a day's trades arrive."""
    _load("trades", day, [*trades(day, count)])


@cache
def _session(folder: Path) -> SparkSession:
    """A session of the Spark that the first command has left running, on the catalog of a project."""
    from icemigrate.execution.spark_start import open_engine
    from icemigrate.project import choose_environment, open_project

    return open_engine(choose_environment(open_project(folder), None, {}), None).session


def _spark() -> SparkSession:
    return _session(Path.cwd())


def _load(name: str, day: datetime, rows: list[dict[str, Any]]) -> None:
    """Append rows as a writer does that knows the table as it is now."""
    spark, table = _spark(), f"local.market_data.{name}"
    schema = spark.table(table).schema
    spark.createDataFrame([_fit(row, schema.names) for row in rows], schema).writeTo(table).append()
    print(f"loaded {len(rows)} rows of {day:%Y-%m-%d} into market_data.{name}", flush=True)


def _fit(row: Mapping[str, Any], names: list[str]) -> tuple[Any, ...]:
    values = {**row, **{new: row[old] for old, new in _RENAMED.items() if old in row}}
    return tuple(values.get(name) for name in names)
