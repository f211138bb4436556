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
        if isinstance(error, duckdb.PermissionException):
            raise IcemigrateError(
                f"the query reads a file outside of its tables' folders: {reason}",
                "a query reads tables of the catalog, no files",
            ) from error
        if type(error).__name__ in _IN_QUERY or _PREFIX_OF_QUERY.match(str(error)):
            raise UsageError(f"DuckDB does not accept the query: {reason}", syntax_hint(reason)) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise IcemigrateError(f"the query needs too much memory: {reason}", "read fewer rows") from error
        names = ", ".join(f"`{name}`" for name in tables.values())
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
