"""Data step that fills columns from SQL expressions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Hazard,
    HazardKind,
    PlanProblem,
    Reversal,
    Reversibility,
    SqlStatement,
    Subject,
)
from icemigrate.data_steps.data_step_kind import (
    TABLE_PLACEHOLDER,
    DataStatement,
    DataStepContext,
    DataStepStage,
    TableDataStep,
    bare_word_problems,
    with_lost_columns,
)
from icemigrate.data_steps.query_check import QueryCheck
from icemigrate.frozen import replace
from icemigrate.iceberg.names import BadName, FieldPath, format_path, parse_path
from icemigrate.spark_sql.identifiers import path_sql


class Backfill(TableDataStep):
    """One ``UPDATE``.

    :param sets: columns or fields of structs, dotted, each with the expression of its values; all expressions
        read the row before the update.
    :param where: the condition of rows to update; ``None`` for all.
    :param number: its index in the list of the file, from 0.
    """

    kind: ClassVar[str] = "backfill"

    sets: tuple[tuple[str, str], ...]
    where: str | None = None
    number: int = 0

    @property
    def stage(self) -> DataStepStage:
        return DataStepStage.WRITE

    @property
    def subject(self) -> Subject:
        return ("backfill", str(self.number))

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """The columns that it sets."""
        return tuple(parse_path(column) for column, _ in self.sets)

    def parts(self) -> Iterator[tuple[Subject, TableDataStep]]:
        """A step for each column, and steps for the condition."""
        for column, value in self.sets:
            yield (*self.subject, "set", column), replace(self, sets=((column, value),), where=None)
        if self.where is not None:
            subject, column = (*self.subject, "where"), self.sets[0][0]
            # Spark reports an invalid condition of an UPDATE as an internal error, and one of a query
            # properly.
            yield (
                subject,
                QueryCheck(f"SELECT 1 FROM {TABLE_PLACEHOLDER} WHERE {self.where}", "[]", is_after=True),
            )
            yield subject, replace(self, sets=((column, path_sql(parse_path(column))),))

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        sets = ", ".join(f"{path_sql(parse_path(column))} = {value}" for column, value in self.sets)
        where = "" if self.where is None else f" WHERE {self.where}"
        return (SqlStatement(f"UPDATE {rows} SET {sets}{where}"),)

    def late_row_statements(self, rows: str, required: Collection[FieldPath]) -> tuple[DataStatement, ...]:
        """An ``UPDATE`` of the null columns that become required."""
        pairs = zip(self.paths, self.sets, strict=True)
        values = {path_sql(path): value for path, (_, value) in pairs if path in required}
        if not values:
            return ()
        empty = " OR ".join(f"{name} IS NULL" for name in values)
        only = replace(
            self,
            sets=tuple((column, f"coalesce({column}, {value})") for column, value in values.items()),
            where=f"({empty})" if self.where is None else f"({self.where}) AND ({empty})",
        )
        return only.statements(rows)

    def problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """Columns that another client has dropped."""
        for path in self.paths:
            if context.table.schema.find(path) is None:
                yield PlanProblem(
                    "unknown-column",
                    context.declared,
                    (*self.subject, "set", format_path(path)),
                    f"table `{context.table.name}` has no column `{format_path(path)}` to fill",
                )

    def unknown_column_problems(self, context: DataStepContext) -> Iterator[PlanProblem]:
        """Expressions that consist of one unknown word."""
        for column, value in self.sets:
            yield from bare_word_problems(value, (*self.subject, "set", column), context)
        if self.where is not None:
            yield from bare_word_problems(self.where, (*self.subject, "where"), context)

    def hazards(self, context: DataStepContext) -> tuple[Hazard, ...]:
        """Values of before the migration that the step may overwrite."""
        return tuple(
            Hazard(HazardKind.DESTRUCTIVE, reason, f"{context.declared}.{format_path(path)}")
            for path in self.paths
            for reason in self._overwritten(path, context)
        )

    def _overwritten(self, path: FieldPath, context: DataStepContext) -> Iterator[str]:
        if context.had_values_before(path) and path not in self._null_condition_columns("null"):
            name = format_path(path)
            if context.is_restored_column(path):
                yield f"overwrites restored values of {name}; add the condition {name} is null to keep them"
            else:
                yield f"overwrites existing values of {name}"
        struct = self._made(path, context)
        if struct is not None:
            name = format_path(struct)
            yield f"replaces a null {name} by a struct; add the condition {name} is not null to keep nulls"

    def _made(self, path: FieldPath, context: DataStepContext) -> FieldPath | None:
        """The optional struct around a field that Spark creates if it is null, in order to set the field."""
        for depth in range(1, len(path)):
            struct = context.table.schema.find(path[:depth])
            is_there = any(name[:depth] == path[:depth] for name in self._null_condition_columns("not null"))
            if (
                struct is not None
                and not struct.required
                and context.had_values_before(path[:depth])
                and not is_there
            ):
                return path[:depth]
        return None

    def overwrites(self, context: DataStepContext) -> bool:
        """Whether it sets a column that existed before the migration, even if all its values were null."""
        return any(
            context.had_values_before(path) or self._made(path, context) is not None for path in self.paths
        )

    def reversal(self, context: DataStepContext) -> Reversal:
        """Undoing drops columns that the migration added; otherwise it resets the rows to the snapshot
        before."""
        if not self.overwrites(context):
            return Reversal(
                Reversibility.YES, with_lost_columns("undoing drops the filled columns", context.gone)
            )
        condition = "no row is written after it and the snapshot before it has not expired"
        return Reversal(Reversibility.WHILE, with_lost_columns(condition, context.gone))

    def is_null_guarded(self, path: FieldPath) -> bool:
        """Whether it updates every row in which a column is null, and only these."""
        return (
            self.where is not None
            and _IS.fullmatch(self.where) is not None
            and path in self._null_condition_columns("null")
        )

    def describe(self) -> str:
        """The assignments and the condition."""
        sets = ", ".join(f"{column} = {' '.join(value.split())}" for column, value in self.sets)
        return f"fill {sets}" + ("" if self.where is None else f" where {' '.join(self.where.split())}")

    def _null_condition_columns(self, what: str) -> tuple[FieldPath, ...]:
        """The columns that a simple condition requires to be ``null`` or ``not null``."""
        if self.where is None or _NOT_PLAIN.search(self.where):
            return ()
        parts = re.split(r"\s+and\s+", self.where.strip(), flags=re.I)
        found = (m for m in map(_IS.fullmatch, parts) if m is not None)
        return tuple(_names(m[1]) for m in found if " ".join(m[2].lower().split()) == what)


_NOT_PLAIN = re.compile(r"['\"()]|--|/\*|\b(or|case|between)\b", re.I)
_IS = re.compile(r"\s*([\w.`]+)\s+is\s+((?:not\s+)?null)\s*", re.I)


def _names(text: str) -> FieldPath:
    try:
        return parse_path(text)
    except BadName:
        return ()
