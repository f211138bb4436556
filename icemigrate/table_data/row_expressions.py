"""Expressions of `--where` and `--set`: one expression of DuckDB's SQL over the columns of the table."""

from __future__ import annotations

import logging
from typing import Any

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.table_data.duckdb_statements import open_alone, require_expression
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.row_functions import require_row_functions


class RowExpression(Frozen):
    """An expression that is checked.

    :param text: as the user wrote it.
    :param is_null: whether it is `NULL`.
    """

    text: str
    is_null: bool = False

    @property
    def sql(self) -> str:
        """The expression for DuckDB; a comment at its end stays one."""
        return f"({self.text}\n)"


def parse_row_expression(text: str, target: LoadTarget, what: str) -> RowExpression:
    """Check an expression.

    :param what: names it in messages, such as ``--where``.
    :raises UsageError: it is no single expression, reads other rows or more than the row, or names a column
        that the table or a function that DuckDB lacks.
    :raises MissingExtra: sqlglot or DuckDB is not installed.
    """
    try:
        from sqlglot import exp
    except ImportError as error:
        raise MissingExtra("sqlglot is not installed", extra_hint("table")) from error
    tree = _only_expression(text, what)
    for node in tree.walk():
        if isinstance(node, (exp.Query, exp.Table, exp.Command, exp.Placeholder, exp.Parameter)):
            raise UsageError(
                f"{what}: `{_one_line(text)}` reads more than one row", "write an expression over one row"
            )
        if isinstance(node, (exp.AggFunc, exp.Window)):
            raise UsageError(f"{what}: `{node.sql()}` needs several rows", "write an expression over one row")
        if isinstance(node, exp.Column):
            _require_column(node, target, what)
    with open_alone() as connection:
        require_expression(connection, text, what)
        require_row_functions(connection, text, what, is_condition=what == "--where")
    return RowExpression(text, isinstance(tree, exp.Null))


def _only_expression(text: str, what: str) -> Any:
    import sqlglot
    from sqlglot import errors, exp

    hint = "write one condition, such as `id = 7`" if what == "--where" else "write `column = expression`"
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        found = sqlglot.parse(text, read="duckdb")
    except (errors.ParseError, errors.TokenError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{what}: `{_one_line(text)}` is not valid SQL: {reason}", hint) from error
    finally:
        logger.setLevel(before)
    (tree, *others) = found or [None]
    if tree is None or others or not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query):
        raise UsageError(f"{what}: `{_one_line(text)}` is not one expression", hint)
    return tree


def _require_column(node: Any, target: LoadTarget, what: str) -> None:
    """Check the column of a name; the parts behind it may be fields of a struct."""
    parts = [part.name for part in node.parts]
    names = {column.name.lower() for column in target.schema.fields}
    if parts[0].lower() in names:
        return
    try:
        target.column(parts[0])
    except UsageError as error:
        hint = error.hint
        if node.this.args.get("quoted"):
            hint = f"{hint}; a text has single quotes: '{parts[-1]}'"
        raise UsageError(f"{what}: {error.message}", hint) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())
