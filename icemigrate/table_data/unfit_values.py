"""Messages for expressions that fail on stored rows: which one, for which column, and for which value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from icemigrate.errors import UsageError
from icemigrate.table_data.duckdb_problems import advice_on, duckdb_problem
from icemigrate.table_data.expression_types import unfit_value
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.parquet_output import NullInRequired
from icemigrate.table_data.query_errors import file_error
from icemigrate.table_data.row_expressions import RowExpression


@contextmanager
def condition_errors(condition: RowExpression) -> Iterator[None]:
    """Raise what DuckDB says of a condition on stored rows, with the condition.

    :raises UsageError: its evaluation fails.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if file_error(error, "", {}) is not None:
            raise
        advice = advice_on(duckdb_problem(error))
        text = " ".join(condition.text.split())
        raise UsageError(f"--where: `{text}` fails: {advice.message}", advice.hint) from error


@contextmanager
def value_errors(
    db: LoadDatabase, target: LoadTarget, rows: str, values: Mapping[str, RowExpression]
) -> Iterator[None]:
    """Raise what DuckDB says of new values, with the column and the value.

    :param rows: the relation of the rows that get the values.
    :param values: the expression of each column.
    :raises UsageError: a value does not fit its column, or an expression fails.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, NullInRequired) as error:
        if isinstance(error, duckdb.Error) and file_error(error, "", {}) is not None:
            raise
        # The transaction of a failed statement takes no other one.
        db.run("ROLLBACK")
        for name, value in values.items():
            problem = unfit_value(db.connection, target.column(name), value.type, value.text, rows)
            if problem is not None:
                hint = "write an expression whose values fit, or change other rows; the table is not changed"
                raise UsageError(f"--set {name}: {problem}", hint) from error
        if not isinstance(error, NullInRequired):
            raise
        raise missing_stored_value(error, target.name) from error


def missing_stored_value(error: NullInRequired, table: str) -> UsageError:
    """The error of stored rows that lack a required value, which another client wrote."""
    return UsageError(
        f"column `{error.column}` of table `{table}` is required, and stored rows have no value; the table "
        "is not changed",
        "set the column in these rows first, or make it optional",
    )
