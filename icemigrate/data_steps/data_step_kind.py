"""The interface of a kind of data step.

A kind is a frozen class below :class:`TableDataStep`.  Columns have their names from the migration file,
which are their names when the step runs.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Context, Decimal
from enum import IntEnum
from typing import Any, TypeAlias

from icemigrate.changes.change import Hazard, PlanProblem, Reversal, SqlStatement, Subject
from icemigrate.data_steps.column_mentions import bare_word
from icemigrate.diagnostics import did_you_mean, format_count
from icemigrate.errors import CheckFailed, IcemigrateError
from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.declared_sides import DataStep
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.single_values import parse_spark_timestamp
from icemigrate.iceberg.table import DroppedField, Table
from icemigrate.iceberg.type_text import format_type

TABLE_PLACEHOLDER = "{table}"
"""Placeholder for the rows in a query of the file."""
BEFORE_PLACEHOLDER = "{before}"
"""Placeholder for the rows before the migration in a query of the file; replaced when the query runs."""
DATA_SUMMARY_KEY = "data"
"""Key, after icemigrate's prefix, in the summary of every snapshot that a data step writes."""


MAX_WRITE_ATTEMPTS = 5
"""How often rows are written if other clients keep writing to the table."""
PAUSE_WRITERS_HINT = "pause the other writers of the table while it runs"


class DataStepStage(IntEnum):
    """When a data step runs."""

    BEFORE = 0
    """On the table, before the migration changes anything."""
    WRITE = 10
    """On the branch, after the metadata changes that the rows need."""
    AFTER = 20
    """On the branch, after all rows are written."""
    AFTER_PUBLICATION = 30
    """On the table, after all other changes of the migration."""


CHECK_HINT = "correct the rows or the check"


class QueryExpectation(Frozen, omit_defaults=True):
    """A query, and its expected result.

    :param gives: as JSON: one value for one row of one column, or a list of rows in any order.
    :param name: what is checked, in words.
    :param hint: what to do if the check fails.
    :param is_answer_shown: whether the message is the name followed by the result.
    """

    text: str = field(name="query")
    gives: str
    name: str
    hint: str
    is_answer_shown: bool = field(default=False, name="is_told")

    def failure(self, rows: Sequence[Sequence[Any]]) -> str | None:
        """The message about a wrong result; ``None`` if the result is the expected one."""
        wanted = json.loads(self.gives, parse_float=Decimal)
        if not isinstance(wanted, list):
            wanted = [[wanted]]
        moments = {i for row in rows for i, value in enumerate(row) if isinstance(value, datetime)}
        lists = (row if isinstance(row, list) else [row] for row in wanted)
        expected = sorted(_row(_with_timestamps(row, moments)) for row in lists)
        if sorted(map(_row, rows)) == expected:
            return None
        if self.is_answer_shown:
            return f"{self.name} {_shown(rows)}"
        if not wanted:
            number = format_count(len(rows), "row")
            return f"{self.name}: expected no rows, got {number}: {_shown(rows, is_value=False)}"
        return f"{self.name}: expected {_shown(wanted)}, got {_shown(rows)}"

    def require(self, rows: Sequence[Sequence[Any]]) -> None:
        """Compare a result with the expected one.

        :raises CheckFailed: they differ.
        """
        wrong = self.failure(rows)
        if wrong is not None:
            raise CheckFailed(wrong, self.hint, rows)


class FileRewrite(Frozen):
    """A rewrite of the files with an old partition spec.

    :param text: the ``CALL`` that rewrites all files, for tables in which every file has an old spec.
    :param is_sorted: whether to write the new files in the table's sort order.
    """

    text: str = field(name="rewrite")
    is_sorted: bool


DataStatement: TypeAlias = SqlStatement | QueryExpectation | FileRewrite
"""What a data step runs: a statement that writes rows, a query with its expected result, or a rewrite."""


def _with_timestamps(row: Sequence[Any], columns: Collection[int]) -> Iterator[Any]:
    """A row of the file, with the texts in timestamp columns parsed as timestamps."""
    for i, value in enumerate(row):
        moment = parse_spark_timestamp(value) if i in columns and isinstance(value, str) else None
        yield value if moment is None else moment


def _row(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_plain, values))


_LARGEST_EXPONENT = 100_000
_EXACT = Context(prec=1000)
"""Python rounds to 28 digits by default, and Iceberg's decimals have up to 38."""


def _plain(value: Any) -> str:
    """A value in a form in which 1, 1.0 and a decimal 1.00 are equal, and a date equals its text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)):
        number = Decimal(str(value))
        # `normalize` fails for exponents that no column can have.
        is_plain = number.is_finite() and abs(number.adjusted()) < _LARGEST_EXPONENT
        return str(number.normalize(_EXACT)) if is_plain else str(number)
    return f"'{value}"


_MOST_SHOWN = 5


def _shown(rows: Sequence[Any], *, is_value: bool = True) -> str:
    """Rows in a message, without those above a limit.

    :param is_value: whether one row of one column is shown as its value.
    """
    if not rows:
        return "no rows"
    lists = [list(row) if isinstance(row, (list, tuple)) else [row] for row in rows]
    if is_value and len(lists) == 1 and len(lists[0]) == 1:
        return _value(lists[0][0])
    shown = ", ".join(f"({', '.join(map(_value, row))})" for row in lists[:_MOST_SHOWN])
    more = len(lists) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class DataStepContext(Frozen):
    """The table of a data step.

    :param declared: the table's declared name.
    :param table: the table when rows are written.
    :param old: fields that had values before the migration.
    :param back: fields that the migration restores under their own ids, so that files may have values of
        them.
    :param gone: paths of fields that earlier migrations dropped, of which files may still have values.
    """

    declared: TableName
    table: Table
    old: frozenset[int]
    back: frozenset[int] = frozenset()
    gone: tuple[str, ...] = ()

    def had_values_before(self, path: FieldPath) -> bool:
        """Whether a column had values before the migration, or is restored with values."""
        field = self.table.schema.find(path)
        return field is not None and (field.id in self.old or field.id in self.back)

    def is_restored_column(self, path: FieldPath) -> bool:
        """Whether the migration restores a column."""
        field = self.table.schema.find(path)
        return field is not None and field.id in self.back


def bare_word_problems(expression: str, subject: Subject, context: DataStepContext) -> Iterator[PlanProblem]:
    """An expression of one word that is not a column of the table, such as a string without quotes."""
    word = bare_word(expression)
    known = [field.name for field in context.table.schema.fields]
    if word is None or word.lower() in (name.lower() for name in known):
        return
    other = did_you_mean(word, known)
    text = f"write a string in quotes of its own: `\"'{word}'\"`"
    yield PlanProblem(
        "unknown-column",
        context.declared,
        subject,
        f"the expression is the name `{word}`, but table `{context.table.name}` has no such column",
        f"{text}; {other}" if other else text,
    )


def fields_with_values_before(base: Table | None, there: Table | None, is_resumed: bool) -> frozenset[int]:
    """The fields that had values before a migration.

    :param base: the table as declared before it.
    :param there: the current table, which may contain fields that an earlier run of the migration added.
    """
    known = (base,) if is_resumed else (base, there)
    return frozenset(i for table in known if table is not None for i in schema_index(table.schema))


def restored_fields(base: Table | None, there: Table | None, goal: Table, is_resumed: bool) -> frozenset[int]:
    """The fields that a migration restores, or adds again under their ids in a redo.

    :param goal: the table after the migration, in which only new fields have negative ids.
    """
    known = {i for i in schema_index(goal.schema) if i > 0}
    return frozenset(known - fields_with_values_before(base, there, is_resumed))


def earlier_dropped_paths(before: Table | None, after: Table | None) -> tuple[str, ...]:
    """The paths of fields that earlier migrations dropped and that this one does not restore.

    Fields that the migration itself drops still exist when rows are written.
    """
    if before is None or after is None:
        return ()
    left = {dropped.field.id for dropped in after.dropped}
    return dropped_field_names((d for d in before.dropped if d.field.id in left), after)


def dropped_field_names(dropped: Iterable[DroppedField], table: Table) -> tuple[str, ...]:
    """The paths of dropped fields; one whose name another field has is the old column of a retype, so its
    type follows.
    """
    return tuple(
        format_path(d.path)
        if table.schema.find(d.path) is None
        else f"{format_path(d.path)} as {format_type(d.field.type)}"
        for d in dropped
    )


def with_lost_columns(reason: str, gone: Sequence[str]) -> str:
    """A reason of a reversal, with the dropped columns whose values the rewritten files lose."""
    if not gone:
        return reason
    return (
        f"{reason}; but values of {', '.join(gone)}, dropped before, can no longer be restored: "
        "the new files do not contain them"
    )


class TableDataStep(DataStep):
    """One data step of one table."""

    @property
    @abstractmethod
    def stage(self) -> DataStepStage:
        """When the step runs."""

    @property
    def writes(self) -> bool:
        """Whether it changes rows, rather than only querying them."""
        return self.stage not in (DataStepStage.BEFORE, DataStepStage.AFTER)

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """The part of a table entry that declares the step."""

    def failure_subject(self, failure: IcemigrateError) -> Subject:
        """The part of a table entry that a failure of its statements is about."""
        return self.subject

    def parts(self) -> Iterator[tuple[Subject, TableDataStep]]:
        """The parts of the step, each with its subject; each can be analysed alone."""
        yield self.subject, self

    @abstractmethod
    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """The statements and queries of the step, in order.

        :param rows: the table, or its branch, as SQL names it.
        """

    def late_row_statements(self, rows: str, required: Collection[FieldPath]) -> tuple[DataStatement, ...]:
        """Statements for rows that others wrote after those of the migration, before columns are swapped and
        become required; none if such rows need no change.

        :param rows: the branch on which it runs, as SQL names it.
        :param required: columns that become required and that only this step fills.
        """
        return ()

    def adapted_step(self, context: DataStepContext) -> TableDataStep:
        """The step adapted to the table."""
        return self

    def problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """Why the step is refused."""
        return iter(())

    def unknown_column_problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """Why the step is refused if the table has only the known columns."""
        return iter(())

    def hazards(self, context: DataStepContext) -> tuple[Hazard, ...]:
        """The hazards of the step, which need consent."""
        return ()

    def overwrites(self, context: DataStepContext) -> bool:
        """Whether the step changes values of before the migration, so that an undo must restore rows."""
        return False

    @abstractmethod
    def reversal(self, context: DataStepContext) -> Reversal:
        """Whether the step can be undone, and why."""

    @abstractmethod
    def describe(self) -> str:
        """The step in a few words, without the table's name."""
