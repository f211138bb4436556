"""What DuckDB can say of an expression over one row before it reads a row: its type, and a constant's value.

The expression is bound to a relation without rows that has the columns of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.errors import UsageError
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import Field, is_nested
from icemigrate.table_data.bad_rows import value_problem
from icemigrate.table_data.duckdb_problems import advice_on, duckdb_problem
from icemigrate.table_data.duckdb_session import quoted_identifier
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.nested_casts import type_problem
from icemigrate.table_data.row_relations import NULL_TYPE, TEXT, LoadRelation
from icemigrate.table_data.sql_positions import EditedSql

if TYPE_CHECKING:
    import duckdb

_BEFORE = "SELECT (\n"
_SAMPLES = {
    "BOOLEAN": "true",
    "DATE": "DATE '2000-01-01'",
    "TIME": "TIME '00:00:00'",
    "UUID": "uuid()",
    "BLOB": "''::BLOB",
    "INTERVAL": "INTERVAL 1 DAY",
}
"""A value of each type; those that are not listed are times of a day or numbers."""


def expression_type(connection: duckdb.DuckDBPyConnection, text: str, target: LoadTarget, what: str) -> str:
    """The type of an expression in DuckDB.

    :param connection: of :func:`~icemigrate.table_data.duckdb_statements.open_alone`.
    :param what: names the expression in messages, such as ``--where``.
    :raises UsageError: the expression is not valid for the columns of the table.
    """
    import duckdb

    columns = ", ".join(
        f"CAST(NULL AS {duckdb_type(column.type)}) AS {quoted_identifier(column.name)}"
        for column in target.columns
    )
    query = f"{_BEFORE}{text}\n) AS v FROM (SELECT {columns})"
    written = EditedSql(query, label=what, start=len(_BEFORE), end=len(_BEFORE) + len(text))
    try:
        found = connection.execute(f"DESCRIBE {query}").fetchall()
    except duckdb.Error as error:
        problem = duckdb_problem(error)
        before = len("DESCRIBE ")
        position = None if problem.position is None else problem.position - before
        names = [column.name for column in target.columns]
        advice = advice_on(problem, names, f"DESCRIBE {query}")
        raise UsageError(f"{written.place(position) or what}: {advice.message}", advice.hint) from error
    ((_, type_, *_),) = found
    return str(type_)


def require_truth_type(given: str, text: str) -> None:
    """Check that the values of a condition of ``--where`` are true or false.

    :param given: their type in DuckDB.
    :param text: the condition.
    :raises UsageError: they are of another type.
    """
    if given != "BOOLEAN":
        raise UsageError(
            f"--where: `{_one_line(text)}` is a value of type {given}, not a condition",
            "write a comparison, such as `id = 7`",
        )


def require_value_type(
    connection: duckdb.DuckDBPyConnection, column: Field, given: str, text: str, what: str
) -> None:
    """Check that values of a type may be values of a column.

    :param given: the type of the values in DuckDB.
    :param text: the expression.
    :raises UsageError: none of them is.
    """
    problem = type_problem(column.type, given, column.name)
    if problem is None and not is_nested(column.type) and not _has_cast(connection, given, column):
        problem = f"column `{column.name}` ({primitive_text(column.type)}) has no values of type {given}"
    if problem is not None:
        raise UsageError(f"{what}: `{_one_line(text)}`: {problem}", "write a value of the column's type")


def _has_cast(connection: duckdb.DuckDBPyConnection, given: str, column: Field) -> bool:
    """Whether DuckDB casts values of a type to that of a column: a cast of a null shows nothing."""
    import duckdb

    wanted = duckdb_type(column.type)
    if given in (wanted, "VARCHAR", NULL_TYPE):
        return True
    sample = _SAMPLES.get(given, "TIMESTAMP '2000-01-01'" if given.startswith("TIME") else "1")
    try:
        connection.execute(f"SELECT CAST(CAST({sample} AS {given}) AS {wanted})").fetchall()
    except duckdb.Error as error:
        return "Unimplemented type for cast" not in duckdb_problem(error).message
    return True


def require_constant_fits(
    connection: duckdb.DuckDBPyConnection, column: Field, given: str, text: str, what: str
) -> None:
    """Check the value of an expression without columns.

    :param given: the type of the expression, ``NULL`` for the literal.
    :raises UsageError: it is no value of the column, or its evaluation fails.
    """
    problem = unfit_value(connection, column, given, text, "(SELECT 1)")
    if problem is not None:
        raise UsageError(f"{what}: {problem}", "write a value that fits; the table is not changed")


def unfit_value(
    connection: duckdb.DuckDBPyConnection, column: Field, given: str, text: str, rows: str
) -> str | None:
    """Why a value of an expression is none of a column: a sentence with the column and the value.

    :param given: the type of the expression.
    :param rows: a relation whose rows the expression is evaluated on.
    :returns: ``None`` where all values fit.
    """
    import duckdb

    name = quoted_identifier(column.name)
    given = TEXT if given == "VARCHAR" and not is_nested(column.type) else given
    relation = LoadRelation(f"(SELECT ({text}\n) AS {name} FROM {rows})", {column.name: given})
    condition = relation.misfits(column)
    # Without a condition all values fit, but their evaluation may fail.
    shown = f"SELECT CAST({name} AS VARCHAR), count(*) OVER () FROM {relation.sql}"
    try:
        if condition is None:
            connection.execute(f"SELECT count({name}) FROM {relation.sql}").fetchall()
            return None
        found: list[Any] = connection.execute(f"{shown} WHERE {condition} LIMIT 1").fetchall()
    except duckdb.Error as error:
        return f"`{_one_line(text)}` has no value: {duckdb_problem(error).message}"
    if not found:
        return None
    ((value, count),) = found
    more = "" if count == 1 else f" (in {count:,} rows)"
    return f"`{_one_line(text)}`: {value_problem(column, value)}{more}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
