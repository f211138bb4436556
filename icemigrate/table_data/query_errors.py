"""DuckDB's exceptions as errors of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from icemigrate.errors import IcemigrateError, UsageError

_PREFIX = re.compile(r"\A(?:[A-Z][A-Za-z ]* Error|TransactionContext Error): ")
_PREFIX_OF_QUERY = re.compile(r"\A(?:Binder|Catalog|Conversion|Invalid Input|Out of Range|Parser) Error: ")
_IN_QUERY = (
    "BinderException",
    "CatalogException",
    "ConversionException",
    "InvalidInputException",
    "OutOfRangeException",
    "ParserException",
    "SyntaxException",
    "TypeMismatchException",
)
"""Exceptions of the query itself; others are of its tables."""
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
    return IcemigrateError(
        f"a file of {names} is missing or damaged: {_reason(str(error), tables)}",
        "restore the file from a backup",
    )


@contextmanager
def duckdb_errors(tables: Mapping[str, str]) -> Iterator[None]:
    """Raise DuckDB's exceptions as errors of the project.

    :param tables: by the names of their views.
    :raises UsageError: DuckDB does not accept the query.
    :raises IcemigrateError: a table cannot be read.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, ValueError) as error:
        # Arrow's stream raises exceptions of Python, with DuckDB's message.
        reason = _reason(str(error), tables)
        names = ", ".join(f"`{name}`" for name in tables.values())
        if isinstance(error, duckdb.PermissionException):
            raise IcemigrateError(
                f"the query reads a file outside of its tables' folders: {reason}",
                "a query reads tables of the catalog, no files",
            ) from error
        if (damage := file_error(error, names, tables)) is not None:
            raise damage from error
        if type(error).__name__ in _IN_QUERY or _PREFIX_OF_QUERY.match(str(error)):
            raise UsageError(f"DuckDB does not accept the query: {reason}", syntax_hint(reason)) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise IcemigrateError(f"the query needs too much memory: {reason}", "read fewer rows") from error
        raise IcemigrateError(
            f"the query on {names} failed: {reason}", "`--explain` shows the reader and the files"
        ) from error


def syntax_hint(reason: str) -> str:
    """What to do about SQL that DuckDB does not accept.

    :param reason: DuckDB's message, without its kind.
    """
    if reason.startswith("syntax error"):
        return "correct the SQL; a name that is a keyword, such as `at`, is in double quotes"
    return "correct the SQL"


def _reason(text: str, tables: Mapping[str, str]) -> str:
    """The message without its kind, and without the position in a text that the user did not write."""
    text = _PREFIX.sub("", text.partition("\nLINE ")[0].partition("\n\n")[0])
    for view, name in tables.items():
        text = text.replace(view, name)
    return " ".join(text.split())
