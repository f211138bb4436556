"""DuckDB without access to anything but the files of the tables that a query reads.

The extensions come from their packages, so nothing is downloaded.  Before a query runs, DuckDB's own
configuration is locked: no other file, no network, no further extension, and no variable of this process.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from icemigrate.errors import IcemigrateError, MissingExtra, extra_hint

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
_EXTENSIONS = ("avro", "iceberg")
"""In the order in which DuckDB needs them."""
_STORAGE_EXTENSIONS = ("httpfs",)
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # With its cache, the extension `iceberg` of DuckDB 1.5.5 reads another deletion vector of the same Puffin
    # file: `ScanPuffinFile` takes the start of the cached range for that of the vector.
    "enable_external_file_cache": "false",
}
_RUNS = 8
"""Runs of a query at most, until it gives its own error.  At most one of ten gives another one."""


@contextmanager
def open_duckdb(scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory, until the block ends.

    :param scratch: a folder for data that does not fit into memory.
    :raises MissingExtra: DuckDB or its extension is not installed.
    :raises KeyboardInterrupt: the user interrupts a statement.
    """
    try:
        import duckdb
    except ImportError as error:
        raise _missing(error) from error
    connection = duckdb.connect(config={**_SETTINGS, "temp_directory": str(scratch)})
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
        yield connection
    except RuntimeError as error:
        # Where the handler of a signal raises an error, DuckDB ends the statement with an error of its own.
        if isinstance(error.__cause__, (KeyboardInterrupt, IcemigrateError)):
            raise error.__cause__ from None
        raise
    finally:
        connection.close()


def statement_share(connection: duckdb.DuckDBPyConnection) -> float | None:
    """How much of the running statement is done, from 0 to 1; ``None`` where DuckDB does not know.

    Another thread than that of the statement may ask.
    """
    percent = connection.query_progress()
    return None if percent < 0 else percent / 100


def run_query(connection: duckdb.DuckDBPyConnection, run: Callable[[], T]) -> T:
    """Run a query, again where DuckDB reports an interrupt for an error in another of its threads.

    DuckDB 1.5.5 does so in some percent of failures (https://github.com/duckdb/duckdb/pull/23379).

    :param run: runs the query.  A transaction that is open begins again before the next run, so the query
        reads nothing that was written in it.
    :raises duckdb.Error: what is wrong.
    """
    import duckdb

    for _ in range(_RUNS - 1):
        try:
            return run()
        except duckdb.InterruptException:
            with suppress(duckdb.TransactionException):  # there is none
                connection.execute("ROLLBACK")
                connection.execute("BEGIN TRANSACTION")
    return run()


def load_iceberg(connection: duckdb.DuckDBPyConnection, secret: str | None = None) -> None:
    """Load what reads Iceberg's tables.

    :param secret: the statement that signs in to an object storage with tables.
    :raises MissingExtra: an extension is not installed, or is of another release of DuckDB.
    """
    import duckdb

    for name in _EXTENSIONS if secret is None else _STORAGE_EXTENSIONS + _EXTENSIONS:
        try:
            package = importlib.util.find_spec(f"duckdb_extension_{name}")
            if package is None or not package.submodule_search_locations:
                raise ImportError(f"duckdb-extension-{name} is not installed")
            (file,) = Path(package.submodule_search_locations[0]).rglob(f"{name}.duckdb_extension")
            connection.execute(f"LOAD {text_literal(str(file))}")
        except (ImportError, ValueError, duckdb.Error) as error:
            raise _missing(error) from error
    if secret is not None:
        connection.execute(secret)


def lock_duckdb(
    connection: duckdb.DuckDBPyConnection, folders: Iterable[str], files: Iterable[str] = ()
) -> None:
    """Permit no files but these and those of the folders, for as long as the connection is open."""
    for setting, allowed in (("allowed_directories", folders), ("allowed_paths", files)):
        listed = ", ".join(map(text_literal, dict.fromkeys(allowed)))
        connection.execute(f"SET {setting} = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def text_literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted_identifier(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _missing(error: Exception) -> MissingExtra:
    reason = str(error).partition("\n")[0]
    return MissingExtra(f"DuckDB or its extension is not installed: {reason}", extra_hint("table"))
