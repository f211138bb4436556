"""Change of a required field to an optional one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alter_column import AlterColumnChange
from icemigrate.changes.change import (
    ChangePhase,
    PlanProblem,
    Reversal,
    Reversibility,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.field_changes import altered_alike
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table


class MakeOptional(AlterColumnChange):
    """Allow nulls in a field."""

    kind: ClassVar[str] = "make_optional"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ALTER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[MakeOptional]:
        for old, new in altered_alike(pair):
            if pair.before is not None and old.field.required and not new.field.required:
                yield cls(pair.before.name, new.field.id, new.path)

    @property
    def subject(self) -> Subject:
        return self.column_subject("required")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, required=False))

    def action(self) -> str:
        return "DROP NOT NULL"

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        return self.map_key_problem(before)

    def reversal(self, before: Table) -> Reversal:
        """If the field becomes required again, Spark reads the nulls in it as 0."""
        return Reversal(Reversibility.WHILE, "it contains no nulls")

    def describe(self) -> str:
        return f"{format_path(self.path)} required → optional"
