"""Change of an optional field to a required one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    ChangePhase,
    Hazard,
    HazardKind,
    MetadataCommit,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.field_changes import FieldChange, altered_alike
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table


class MakeRequired(FieldChange):
    """Forbid nulls in a field, without a check of existing rows.

    :param was_required: whether it replaces a required column of another type (`retype`), whose values fill
        it in every row: then it affects no reader and no writer.
    """

    was_required: bool = False

    kind: ClassVar[str] = "make_required"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ALTER

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[MakeRequired]:
        for old, new in altered_alike(pair):
            if pair.before is not None and new.field.required and not old.field.required:
                yield cls(pair.before.name, new.field.id, new.path)

    @property
    def subject(self) -> Subject:
        return self.column_subject("required")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, required=True))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A metadata commit, because Spark always refuses ``SET NOT NULL``."""
        return (MetadataCommit(f"make {format_path(self.path)} required"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        if self.was_required:
            return ()
        path = format_path(self.path)
        reason = (
            f"a table with files without `{path}` cannot be read, and Spark reads a null in `{path}` as 0"
        )
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        return self.map_key_problem(before)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        if self.was_required:
            return ()
        return (
            WriterImpact(
                WriterKind.ALL,
                f"may write no value for `{format_path(self.path)}`, which this migration makes required",
            ),
        )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversibility.YES, "undoing makes it optional again, and all rows can be read")

    def describe(self) -> str:
        path = format_path(self.path)
        return f"{path} required again" if self.was_required else f"{path} optional → required"
