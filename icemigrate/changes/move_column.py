"""Change of a field's position among its siblings."""

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
    WriterImpact,
)
from icemigrate.changes.column_positions import differing_siblings
from icemigrate.changes.field_changes import lacking_siblings
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema_edits import edit_fields_of, move_field
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.identifiers import quote


class MoveColumn(AlterColumnChange):
    """Move a field after a sibling, or to the first position (``after=None``)."""

    kind: ClassVar[str] = "move_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.MOVE

    after: str | None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[MoveColumn]:
        """The fewest moves that produce the declared order."""
        if pair.both is None:
            return
        table = pair.both[0].name
        for siblings in differing_siblings(pair):
            for field, behind in siblings.moves():
                after = None if behind is None else pair.new[behind].field.name
                yield cls(table, field.id, (*siblings.path, field.name), after)

    @property
    def subject(self) -> Subject:
        return self.column_subject("first" if self.after is None else "after")

    def lacks(self, table: Table) -> Iterator[str]:
        """The field, under its name in the statement, and the sibling that it moves after."""
        missing = [*super().lacks(table)]
        yield from missing
        if not missing:
            parent = table.schema.parent_of(self.field_id)
            yield from lacking_siblings(table, parent, self.path, (self.path[-1], self.after))

    def apply(self, table: Table) -> Table:
        schema = edit_fields_of(
            table.schema,
            table.schema.parent_of(self.field_id),
            lambda fields: move_field(fields, self.path[-1], self.after),
        )
        return replace(table, schema=schema)

    def action(self) -> str:
        return "FIRST" if self.after is None else f"AFTER {quote(self.after)}"

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        return self.map_key_problem(before)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        """Fields of structs are also written by position, unless an ``INSERT`` is ``BY NAME``."""
        if len(self.path) == 1:
            wrong = "columns if it writes values by position, because their order changes"
        else:
            struct = format_path(self.path[:1])
            wrong = (
                f"fields of `{struct}` if it is an `INSERT` without `BY NAME`, because their order changes"
            )
        return (
            WriterImpact(WriterKind.JOBS, f"fails or writes into the wrong {wrong}"),
            WriterImpact(
                WriterKind.SPARK_STREAM,
                "writes columns in the old order, which Spark refuses at its next start",
            ),
        )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversibility.YES, "undoing moves it back; only the order of the columns changes")

    def describe(self) -> str:
        position = "first" if self.after is None else f"after {self.after}"
        return f"{format_path(self.path)}, moved {position}"
