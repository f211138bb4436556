"""Data step that replaces a column, or a field of a struct, by one of a type to which Iceberg cannot promote
it.

The new column has a temporary name while its rows are written.  After their publication, the old column is
dropped and the new one gets its name and position.  So the new column is a new field, and an undo restores
the old one under its own field id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    PlanProblem,
    Reversal,
    Reversibility,
    SqlStatement,
    Subject,
    WriterImpact,
)
from icemigrate.changes.field_changes import default_text
from icemigrate.data_steps.data_step_kind import (
    CHECK_HINT,
    DataStatement,
    DataStepContext,
    DataStepStage,
    QueryExpectation,
    TableDataStep,
    bare_word_problems,
    with_lost_columns,
)
from icemigrate.frozen import replace
from icemigrate.iceberg.names import RETYPE_SUFFIX, FieldPath, parse_path
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.types import Primitive
from icemigrate.spark_sql.expressions import default_sql
from icemigrate.spark_sql.identifiers import path_sql


class Retype(TableDataStep):
    """One ``UPDATE``, and a query for values that became null.

    :param column: its name, dotted for a field of a struct.
    :param using: the expression of the new values.
    :param to: the new type, as in a migration file.
    :param field_id: of the old column.
    :param keeps: whether the new column is restored with values that were written before a rollback; they are
        kept in rows in which the old column has no value.
    :param reads: the initial default of the old column, as SQL; empty if it has none.  Rows that were written
        without the column read it instead of null.
    """

    kind: ClassVar[str] = "retype"

    column: str
    using: str
    to: str
    field_id: int
    keeps: bool = False
    reads: str = ""

    @property
    def path(self) -> FieldPath:
        """The column, or the field of a struct."""
        return parse_path(self.column)

    @property
    def temporary(self) -> FieldPath:
        """The path of the new column while it is filled."""
        *above, name = self.path
        return (*above, f"{name}{RETYPE_SUFFIX}")

    @property
    def stage(self) -> DataStepStage:
        return DataStepStage.WRITE

    @property
    def subject(self) -> Subject:
        return ("retype", self.column)

    def parts(self) -> Iterator[tuple[Subject, TableDataStep]]:
        """The expression of the values."""
        yield (*self.subject, "using"), self

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """The ``UPDATE`` and the query."""
        return self._statements(rows)

    def late_row_statements(self, rows: str, required: Collection[FieldPath]) -> tuple[DataStatement, ...]:
        """The same statements for rows without a value of the new column."""
        return self._statements(rows, f"{path_sql(self.temporary)} IS NULL")

    def _statements(self, rows: str, *conditions: str) -> tuple[DataStatement, ...]:
        old, new, above = path_sql(self.path), path_sql(self.temporary), self.path[:-1]
        # Setting a field of a null struct would create the struct.
        which = [*conditions, *([f"{path_sql(above)} IS NOT NULL"] if above else [])]
        if self.keeps:
            has_own = f"{old} IS NOT NULL" + (f" AND NOT ({old} <=> {self.reads})" if self.reads else "")
            which.append(f"({has_own} OR {new} IS NULL)")
        where = f" WHERE {' AND '.join(which)}" if which else ""
        lost = f"SELECT count(*) FROM {rows} WHERE {old} IS NOT NULL AND {new} IS NULL"
        return (
            SqlStatement(f"UPDATE {rows} SET {new} = {self.using}{where}"),
            QueryExpectation(lost, "0", f"values of {self.column} that became null", CHECK_HINT),
        )

    def adapted_step(self, context: DataStepContext) -> Retype:
        """The step, which keeps restored values if the migration restores its column."""
        if not context.is_restored_column(self.temporary):
            return self
        old = context.table.schema.find(self.path)
        default = None if old is None else old.initial_default
        reads = "" if old is None or default is None else default_sql(default, old.type)
        return replace(self, keeps=True, reads=reads)

    def problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """The type ``unknown``, which has no values."""
        new = context.table.schema.find(self.temporary)
        if new is not None and new.type == Primitive("unknown"):
            yield PlanProblem(
                "retype-unknown",
                context.declared,
                self.subject,
                f"a column of type `unknown` is always null, so `{self.column}` would lose its values",
                f"list `{self.column}` in `drop_columns` and in `columns` to replace it without its values",
            )

    def unknown_column_problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """An expression that is one unknown word."""
        return bare_word_problems(self.using, (*self.subject, "using"), context)

    @property
    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        """Impact on all writers, which write values of the old type."""
        reason = (
            f"fails or loses values if it writes `{self.column}`, which this migration replaces by a column "
            f"of type {self.to}"
        )
        return (WriterImpact(WriterKind.ALL, reason),)

    def reversal(self, context: DataStepContext) -> Reversal:
        """Undoing restores the old column, which has no values in rows that are written later."""
        old = context.table.schema.find(self.path)
        default = None if old is None else old.initial_default
        value = "have no value in it" if default is None else f"read its default {default_text(default)}"
        reason = f"undoing restores the old column; rows written until then {value}"
        return Reversal(Reversibility.YES, with_lost_columns(reason, context.gone))

    def describe(self) -> str:
        """The column, its new type, and the expression of its values."""
        text = f"retype {self.column} to {self.to} using {' '.join(self.using.split())}"
        if not self.keeps:
            return text
        missing = "reads its default or null" if self.reads else "is null"
        return f"{text}; where the old column {missing}, values written as {self.to} are kept"
