"""Expressions of `--where` and `--set`: one expression of DuckDB's SQL over the columns of the table."""

from __future__ import annotations

import logging
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field
from icemigrate.table_data.duckdb_statements import open_alone, require_expression
from icemigrate.table_data.expression_types import (
    expression_type,
    require_constant_fits,
    require_truth_type,
    require_value_type,
)
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.one_expression import CONDITION, NEW_VALUE, require_one_expression
from icemigrate.table_data.row_functions import require_row_functions
from icemigrate.table_data.row_relations import NULL_TYPE
from icemigrate.table_data.sql_positions import syntax_problem
from icemigrate.table_data.sql_quotes import quote_hints


class RowExpression(Frozen):
    """An expression that is checked.

    :param text: as the user wrote it.
    :param type: of its values in DuckDB; :data:`~icemigrate.table_data.row_relations.NULL_TYPE` for `NULL`.
    :param is_constant: whether it names no column.
    """

    text: str
    type: str = NULL_TYPE
    is_constant: bool = False

    @property
    def sql(self) -> str:
        """The expression for DuckDB; a comment at its end stays one."""
        return f"({self.text}\n)"


def parse_condition(text: str, target: LoadTarget) -> RowExpression:
    """Check a condition of ``--where``; see :func:`parse_row_expression`.

    :raises UsageError: it is not valid, or its values are neither true nor false.
    """
    found = parse_row_expression(text, target, "--where")
    require_truth_type(found.type, text)
    return found


def parse_new_value(text: str, target: LoadTarget, column: Field) -> RowExpression:
    """Check the new value of a column in ``--set``; see :func:`parse_row_expression`.

    :raises UsageError: it is not valid, or no value of the column.
    """
    what = f"--set {column.name}"
    found = parse_row_expression(text, target, what)
    with open_alone() as connection:
        require_value_type(connection, column, found.type, text, what)
        if found.is_constant:
            require_constant_fits(connection, column, found.type, text, what)
    return found


def parse_row_expression(text: str, target: LoadTarget, what: str) -> RowExpression:
    """Check an expression.

    :param what: names it in messages, such as ``--where``.
    :raises UsageError: it is no single expression, reads other rows or more than the row, names a column that
        the table or a function that DuckDB lacks, or has operands of wrong types.
    :raises MissingExtra: sqlglot or DuckDB is not installed.
    """
    with quote_hints(text, (field.name for _, field in target.schema.walk())):
        return _parsed(text, target, what)


def _parsed(text: str, target: LoadTarget, what: str) -> RowExpression:
    require_one_expression(text, what, CONDITION if what == "--where" else NEW_VALUE)
    from sqlglot import exp

    tree = _only_expression(text, what)
    for node in tree.walk():
        if isinstance(node, (exp.Query, exp.Table, exp.Command, exp.Placeholder, exp.Parameter)):
            raise UsageError(
                f"{what}: `{_one_line(text)}` reads more than one row", "write an expression over one row"
            )
        if isinstance(node, (exp.AggFunc, exp.Window)):
            raise UsageError(f"{what}: `{node.sql()}` needs several rows", "write an expression over one row")
        if isinstance(node, exp.Column):
            _require_stored(node, target, what)
    with open_alone() as connection:
        require_expression(connection, text, what)
        require_row_functions(connection, text, what, is_condition=what == "--where")
        type_ = expression_type(connection, text, target, what)
    if isinstance(tree, exp.Null):
        type_ = NULL_TYPE
    return RowExpression(text, type_, tree.find(exp.Column) is None)


def _only_expression(text: str, what: str) -> Any:
    import sqlglot
    from sqlglot import errors, exp

    hint = "write one condition, such as `id = 7`" if what == "--where" else "write `column = expression`"
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        found = sqlglot.parse(text, read="duckdb")
    except errors.ParseError as error:
        place, reason = syntax_problem(error)
        raise UsageError(f"{what}:{place}: `{_one_line(text)}` is not valid SQL: {reason}", hint) from error
    except (errors.TokenError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{what}: `{_one_line(text)}` is not valid SQL: {reason}", hint) from error
    finally:
        logger.setLevel(before)
    (tree, *others) = found or [None]
    if tree is None or others or not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query):
        raise UsageError(f"{what}: `{_one_line(text)}` is not one expression", hint)
    return tree


def _require_stored(node: Any, target: LoadTarget, what: str) -> None:
    """Check that DuckDB has the values of a column; DuckDB itself finds names that no column has."""
    name = node.parts[0].name.lower()
    for column in target.schema.fields:
        if column.name.lower() == name and column.name not in {c.name for c in target.columns}:
            try:
                target.column(column.name)
            except UsageError as error:
                raise UsageError(f"{what}: {error.message}", error.hint) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())
