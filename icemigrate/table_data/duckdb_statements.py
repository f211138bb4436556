"""What DuckDB itself reads in a text: one SELECT or one expression, its tables, and its functions.

sqlglot reads a text first, and its errors have lines and columns
(:mod:`~icemigrate.table_data.query_statements`, :mod:`~icemigrate.table_data.row_expressions`).  DuckDB runs
the text as its own parser reads it, so the tree of that parser is checked too: ``json_serialize_sql`` gives
it.  Lists permit what may follow ``FROM``, so that a query cannot use what a later DuckDB adds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.metadata_engine.parquet_values import surrogate_problem
from icemigrate.table_data.duckdb_problems import advice_on, duckdb_problem, report_problems
from icemigrate.table_data.duckdb_session import text_literal

if TYPE_CHECKING:
    import duckdb

_TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest", "json_each", "json_tree"})
"""Table functions that read neither files nor settings."""
_PROCESS_FUNCTIONS = frozenset(
    {"current_setting", "getenv", "getvariable", "json_serialize_plan", "which_secret", "write_log"}
)
"""Functions that read or write more than their arguments; the one of plans opens the files of its text."""
_SOURCES = frozenset(
    {"EMPTY", "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "PIVOT"}
)
"""What may follow ``FROM``, as DuckDB's tree names it."""
NOT_OF_ONE_ROW = frozenset({"SUBQUERY", "WINDOW", "STAR", "PARAMETER", "POSITIONAL_REFERENCE", "DEFAULT"})
"""Classes of expressions that have no value for one row and its columns."""
_CLAUSES = ("modifiers", "where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")
_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "threads": 1,
}
"""The configuration of a DuckDB that reads texts, and no file."""
_ONLY_TABLES = "a query reads tables of the catalog, no files"


class _Expected(Frozen):
    """What a text has to be, in messages.

    :param noun: with an article.
    :param hint: what to write.
    :param where: precedes each message.
    """

    noun: str
    hint: str
    where: str = ""


_QUERY = _Expected("a query", "write one SELECT on tables of the catalog")


def require_table_function(name: str) -> None:
    """Check the name of a table function.

    :raises UsageError: it may read files or settings.
    """
    if name.lower() not in _TABLE_FUNCTIONS:
        raise UsageError(
            f"the table function `{name}` is not allowed: it may read files or settings", _ONLY_TABLES
        )


def require_pure_function(name: str, where: str = "") -> None:
    """Check the name of a function.

    :param where: precedes the message.
    :raises UsageError: it reads settings or variables, or writes a log.
    """
    if name.lower() in _PROCESS_FUNCTIONS:
        raise UsageError(
            f"{where}the function `{name}` reads more than tables", "leave it out: SQL reads tables only"
        )


def require_reads(connection: duckdb.DuckDBPyConnection, sql: str, views: Collection[str]) -> None:
    """Check that DuckDB takes a text for one SELECT that reads nothing but some views.

    :raises UsageError: it is another statement, several, or reads something else.
    :raises duckdb.Error: DuckDB cannot read the text.
    """
    _check_sources(_only_select(connection, sql), frozenset(map(str.lower, views)))


def require_expression(
    connection: duckdb.DuckDBPyConnection, text: str, what: str, *, has_subqueries: bool = False
) -> None:
    """Check that DuckDB takes a text for one expression, with and without parentheses around it.

    :param connection: of :func:`open_alone`.
    :param what: names it in messages, such as ``--where``.
    :param has_subqueries: whether it may have subqueries, whose tables :func:`require_reads` checks.
    :raises UsageError: it is no expression, or calls a function that reads more than its arguments.
    """
    shown = f"{what}: `{' '.join(text.split())}`"
    expected = _Expected("an expression", "write one expression, such as `id + 1`", f"{what}: ")
    import duckdb

    for sql in (f"SELECT {text}\n", f"SELECT (\n{text}\n)"):
        try:
            tree = _only_select(connection, sql, expected)
        except duckdb.Error as error:
            advice = advice_on(duckdb_problem(error))
            raise UsageError(f"{shown} is not valid SQL: {advice.message}", advice.hint) from error
        if not _is_expression(tree):
            raise UsageError(f"{shown} is not one expression", expected.hint)
        for node in _nodes(tree["select_list"]):
            kind = node.get("class")
            if kind in NOT_OF_ONE_ROW and not has_subqueries:
                raise UsageError(f"{shown} reads more than one row", "write an expression over one row")
            if "function_name" in node:
                require_pure_function(node["function_name"], f"{what}: ")


def _is_expression(tree: Mapping[str, Any]) -> bool:
    """Whether a SELECT has nothing but one value without a name."""
    selected = tree.get("select_list") or []
    return (
        len(selected) == 1
        and not selected[0]["alias"]
        and tree["from_table"]["type"] == "EMPTY"
        and not any(tree[key] for key in _CLAUSES)
        and not tree["cte_map"]["map"]
    )


def open_alone() -> duckdb.DuckDBPyConnection:
    """A DuckDB that reads texts, and no file; it reads times without a zone as UTC.

    :raises MissingExtra: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtra("DuckDB is not installed", extra_hint("table")) from error
    connection = duckdb.connect(config=_ALONE)
    connection.execute("SET TimeZone = 'UTC'")
    report_problems(connection)
    return connection


def expression_tree(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """DuckDB's tree of an expression that :func:`require_expression` accepts."""
    tree: dict[str, Any] = _only_select(connection, f"SELECT {text}\n")["select_list"][0]
    return tree


def expression_nodes(connection: duckdb.DuckDBPyConnection, text: str) -> Iterator[dict[str, Any]]:
    """The nodes of the tree of :func:`expression_tree`."""
    return _nodes(expression_tree(connection, text))


def _only_select(
    connection: duckdb.DuckDBPyConnection, sql: str, expected: _Expected = _QUERY
) -> dict[str, Any]:
    """DuckDB's tree of the only statement of a text."""
    import duckdb

    where, noun, hint = expected.where, expected.noun, expected.hint
    if "\0" in sql:  # DuckDB reads a text up to it
        raise UsageError(f"{where}the SQL has the character U+0000", "remove it")
    if (problem := surrogate_problem(sql)) is not None:
        raise UsageError(f"{where}the SQL is not UTF-8: {problem}", "write the SQL in UTF-8")
    kinds = [statement.type for statement in connection.extract_statements(sql)]
    if len(kinds) != 1:
        count = "no statement" if not kinds else f"{len(kinds)} statements"
        raise UsageError(f"{where}DuckDB reads {count} in the text, not {noun}", hint)
    if kinds[0] != duckdb.StatementType.SELECT:
        raise UsageError(f"{where}`{kinds[0].name}` is not {noun}", hint)
    # A literal: DuckDB imports pandas to see what a parameter is, which takes 0.2 s.
    ((serialized,),) = connection.execute(f"SELECT json_serialize_sql({text_literal(sql)})").fetchall()
    try:
        document = json.loads(serialized)
    except RecursionError as error:
        raise UsageError(f"{where}the SQL is nested too deeply", "write it with fewer levels") from error
    if document["error"]:
        raise UsageError(f"{where}DuckDB does not accept the SQL: {document['error_message']}", hint)
    (parsed,) = document["statements"]
    tree: dict[str, Any] = parsed["node"]
    return tree


def _check_sources(tree: Mapping[str, Any], views: frozenset[str]) -> None:
    """Check what a query reads, and the functions that it calls.

    The names of ``WITH`` have scopes, so that none hides a table of DuckDB's own elsewhere.
    """
    left: list[tuple[Any, frozenset[str]]] = [(tree, views)]
    while left:
        node, tables = left.pop()
        if isinstance(node, list):
            left += [(item, tables) for item in node]
        if not isinstance(node, dict):
            continue
        if "function_name" in node:
            require_pure_function(node["function_name"])
        if _is_source(node):
            _check_source(node, tables)
        for entry in node.get("cte_map", {"map": []})["map"]:
            # A name is known behind its own query alone.
            left.append((entry["value"], tables))
            tables |= {entry["key"].lower()}
        for key, value in node.items():
            is_recursion = node.get("type") == "RECURSIVE_CTE_NODE" and key != "left"
            if key != "cte_map":
                left.append((value, tables | {node["cte_name"].lower()} if is_recursion else tables))


def _check_source(node: dict[str, Any], tables: frozenset[str]) -> None:
    kind = node["type"]
    if kind not in _SOURCES:
        raise UsageError(f"`{kind}` is not a query: `table sql` only reads tables", _ONLY_TABLES)
    if kind == "TABLE_FUNCTION":
        require_table_function(node["function"]["function_name"])
    if kind == "BASE_TABLE":
        is_qualified = node["schema_name"] or node["catalog_name"]
        if is_qualified or node["table_name"].lower() not in tables:
            raise UsageError(f"`{node['table_name']}` is no table of the catalog", _ONLY_TABLES)


def _is_source(node: dict[str, Any]) -> bool:
    """Whether a node follows ``FROM``: expressions have a class, and queries have modifiers."""
    return "sample" in node and "class" not in node and "modifiers" not in node


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node
