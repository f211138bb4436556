"""DuckDB's exceptions as errors of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.table_data.duckdb_problems import advice_on, duckdb_problem
from icemigrate.table_data.sql_positions import EditedSql
from icemigrate.table_data.sql_quotes import quote_hint

_IN_QUERY = frozenset(
    {
        "Binder",
        "Catalog",
        "Conversion",
        "Invalid Input",
        "Mismatch Type",
        "Out of Range",
        "Parser",
        "Syntax",
    }
)
"""Kinds of exceptions of the query itself; others are of its tables."""
_OF_FILES = re.compile(
    r"too small to be a Parquet file|(?:No magic bytes found at end of|Footer length error in) file|"
    r"Out of buffer|Avro container file|Cannot read file (?:header|block)|Cannot open file"
)
"""What DuckDB says of a data file or a manifest that is missing or damaged."""


def file_error(error: Exception, names: str, tables: Mapping[str, str]) -> IcemigrateError | None:
    """The error of a missing or damaged file of a table; ``None`` where the exception has another cause.

    :param names: the tables, as a message shows them.
    :param tables: by the names of their views.
    """
    if not _OF_FILES.search(str(error)):
        return None
    reason = _named(duckdb_problem(error).message, tables)
    return IcemigrateError(
        f"a file of {names} is missing or damaged: {reason}", "restore the file from a backup"
    )


@contextmanager
def duckdb_errors(
    tables: Mapping[str, str], written: EditedSql | None = None, columns: Sequence[str] = ()
) -> Iterator[None]:
    """Raise DuckDB's exceptions as errors of the project.

    :param tables: by the names of their views.
    :param written: the statement, if a user wrote a part of it.
    :param columns: of the tables, for hints.
    :raises UsageError: DuckDB does not accept the query.
    :raises IcemigrateError: a table cannot be read.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, ValueError) as error:
        # Arrow's stream raises exceptions of Python, with DuckDB's message.
        problem = duckdb_problem(error)
        reason = _named(problem.message, tables)
        names = ", ".join(f"`{name}`" for name in tables.values())
        if isinstance(error, duckdb.PermissionException):
            raise IcemigrateError(
                f"the query reads a file outside of its tables' folders: {reason}",
                "a query reads tables of the catalog, no files",
            ) from error
        if (damage := file_error(error, names, tables)) is not None:
            raise damage from error
        if problem.exception in _IN_QUERY:
            advice = advice_on(problem, columns, "" if written is None else written.sql)
            place = None if written is None else written.place(problem.position)
            where = "DuckDB does not accept the query" if place is None else place
            hint = None if written is None else quote_hint(written.text[written.start : written.end], columns)
            raise UsageError(
                f"{where}: {_named(advice.message, tables)}", hint or _named(advice.hint, tables)
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise IcemigrateError(f"the query needs too much memory: {reason}", "read fewer rows") from error
        raise IcemigrateError(
            f"the query on {names} failed: {reason}", "`--explain` shows the reader and the files"
        ) from error


def _named(text: str, tables: Mapping[str, str]) -> str:
    """A text with the names of tables for those of their views."""
    for view, name in tables.items():
        text = text.replace(view, name)
    return text
