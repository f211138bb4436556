"""The functions that an expression over one row may call, by DuckDB's own list of its functions.

A macro may call what its definition calls, so the definition is checked as the expression is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.table_data.duckdb_statements import NOT_OF_ONE_ROW, expression_nodes

if TYPE_CHECKING:
    import duckdb

_SET_RETURNING = frozenset({"unnest", "unlist"})
"""Names that DuckDB's binder reads itself, as one row for each element of a list."""


class DuckdbFunction(Frozen):
    """One entry of DuckDB's list of functions; a name has one for each form of its arguments.

    :param kind: such as ``scalar``, ``macro``, ``aggregate`` or ``table``.
    :param definition: the expression of a macro.
    :param is_volatile: whether it may give another value each time.
    """

    kind: str
    definition: str | None
    is_volatile: bool


Functions = Mapping[str, Sequence[DuckdbFunction]]
"""DuckDB's functions by their names in lower case."""


def require_row_functions(
    connection: duckdb.DuckDBPyConnection, text: str, what: str, *, is_condition: bool
) -> None:
    """Check that each function of an expression exists and has one value for each row.

    :param connection: of :func:`~icemigrate.table_data.duckdb_statements.open_alone`.
    :param what: names the expression in messages, such as ``--where``.
    :param is_condition: whether it is evaluated several times for one row, and needs the same value each
        time.
    :raises UsageError: DuckDB has no such function, the function takes or gives several rows, or a condition
        calls a volatile one.
    """
    functions = _functions(connection)
    for name in _called(connection, text):
        if name not in functions and name not in _SET_RETURNING:
            raise UsageError(
                f"{what}: `{' '.join(text.split())}` is not valid: DuckDB has no function `{name}`",
                "use a function of DuckDB",
            )
        reached = _reached(connection, functions, name)
        if not all(_is_scalar(functions, each) for each in reached):
            raise UsageError(
                f"{what}: the function `{name}` takes or gives several rows",
                "write an expression with one value for each row",
            )
        if is_condition and any(_is_volatile(functions, each) for each in reached):
            raise UsageError(
                f"{what}: the function `{name}` may give another value each time, and a condition is "
                "evaluated several times",
                "write a condition that depends on the row alone",
            )


def _functions(connection: duckdb.DuckDBPyConnection) -> Functions:
    found: dict[str, list[DuckdbFunction]] = {}
    query = (
        "SELECT lower(function_name), function_type, macro_definition, stability = 'VOLATILE' "
        "FROM duckdb_functions()"
    )
    for name, kind, definition, is_volatile in connection.execute(query).fetchall():
        found.setdefault(name, []).append(DuckdbFunction(kind, definition, bool(is_volatile)))
    return found


def _called(connection: duckdb.DuckDBPyConnection, text: str) -> Iterator[str]:
    """The functions of an expression, in lower case; a subquery is one that gives several rows."""
    for node in expression_nodes(connection, text):
        if "function_name" in node:
            yield str(node["function_name"]).lower()
        elif node.get("class") in NOT_OF_ONE_ROW:
            yield "unnest"


def _reached(connection: duckdb.DuckDBPyConnection, functions: Functions, name: str) -> set[str]:
    """A function and those that its macros call."""
    left, reached = {name}, set[str]()
    while left:
        called = left.pop()
        reached.add(called)
        for function in functions.get(called, ()):
            if function.kind == "macro" and function.definition is not None:
                left |= set(_called(connection, function.definition)) - reached
    return reached


def _is_scalar(functions: Functions, name: str) -> bool:
    kinds = {function.kind for function in functions.get(name, ())}
    return name not in _SET_RETURNING and bool(kinds & {"scalar", "macro"})


def _is_volatile(functions: Functions, name: str) -> bool:
    return any(function.is_volatile for function in functions.get(name, ()))
