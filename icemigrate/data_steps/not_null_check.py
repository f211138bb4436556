"""Data step that checks, before the migration, that columns which become required have no nulls.

Spark reads a remaining null as 0, and a file that lacks a required field cannot be read.  While the field is
optional, a missing field reads as null, so one query finds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.change import Reversal, Reversibility, Subject
from icemigrate.data_steps.data_step_kind import (
    DataStatement,
    DataStepContext,
    DataStepStage,
    QueryExpectation,
    TableDataStep,
)
from icemigrate.data_steps.fill_required import FilledColumns, backfilled_columns
from icemigrate.data_steps.retype import Retype
from icemigrate.errors import CheckFailed, IcemigrateError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.expressions import null_sql
from icemigrate.spark_sql.literals import string_sql
from icemigrate.spark_sql.type_sql import spark_loads

_HINT = "fill every row in an earlier migration (`backfill`), or leave it optional"
_MISSING = "there are rows without a value of"


class NotNullCheck(TableDataStep):
    """One query for all of a table's columns that become required.

    :param columns: their names in the file.
    :param conditions: for each, the SQL condition that it is null, with the names before the migration.
    """

    kind: ClassVar[str] = "every_value"

    columns: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def stage(self) -> DataStepStage:
        return DataStepStage.BEFORE

    @property
    def subject(self) -> Subject:
        """The first column, until a failure names one."""
        return ("columns", self.columns[0], "required")

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        if len(self.columns) == 1:
            query, gives = f"SELECT count(*) FROM {rows} WHERE {self.conditions[0]}", "0"
            return (QueryExpectation(query, gives, f"rows without a value of `{self.columns[0]}`", _HINT),)
        found = ", ".join(
            f"IF(count_if({condition}) > 0, {string_sql(column)}, NULL)"
            for column, condition in zip(self.columns, self.conditions, strict=True)
        )
        anywhere = " OR ".join(f"({condition})" for condition in self.conditions)
        query = f"SELECT coalesce(nullif(concat_ws(', ', {found}), ''), 'none') FROM {rows} WHERE {anywhere}"
        return (QueryExpectation(query, '"none"', _MISSING, _HINT, is_answer_shown=True),)

    def failure_subject(self, failure: IcemigrateError) -> Subject:
        """The first column in the result of the query."""
        rows = failure.rows if isinstance(failure, CheckFailed) else ()
        names = f", {', '.join(str(value) for row in rows for value in row)}, "
        return (
            "columns",
            next((c for c in self.columns if f", {c}, " in names), self.columns[0]),
            "required",
        )

    def reversal(self, context: DataStepContext) -> Reversal:
        return Reversal(Reversibility.YES, "it changes nothing")

    def describe(self) -> str:
        return f"check before: every row has a value of {', '.join(self.columns)}"


def not_null_check_steps(
    works: Sequence[TableDataStep], there: Table, after: Table
) -> Iterator[NotNullCheck]:
    """The check of a table with rows in which columns become required that the migration does not fill.

    A table that Spark cannot load is not checked.

    :param there: the table before the migration.
    :param after: the table after the migration.
    """
    if not there.has_rows or not spark_loads(there.schema):
        return
    before, own = schema_index(there.schema), filled_or_retyped(works)
    made = {
        format_path(entry.path): null_sql(there.schema, field_id)
        for field_id, entry in schema_index(after.schema).items()
        if entry.field.required
        and field_id in before
        and not before[field_id].field.required
        and not own.has(entry, before)
    }
    if made:
        yield NotNullCheck(tuple(made), tuple(made.values()))


def filled_or_retyped(works: Sequence[TableDataStep]) -> FilledColumns:
    """The fields that a migration fills or retypes, see :mod:`icemigrate.data_steps.fill_required`."""
    found, retyped = backfilled_columns(works), (work.path for work in works if isinstance(work, Retype))
    return replace(found, whole=found.whole.union(retyped))
