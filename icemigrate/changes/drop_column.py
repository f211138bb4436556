"""Removal of a column or of a field of a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Hazard,
    HazardKind,
    PlanProblem,
    Reversal,
    Reversibility,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.field_changes import FieldChange, is_reshaped_field
from icemigrate.changes.statement_shapes import leading_of_kind
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema_edits import remove_by_id
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import column_properties_after_drop
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Struct, Type
from icemigrate.spark_sql.identifiers import path_sql, table_sql


class DropColumn(FieldChange):
    """Drop a field with its nested fields.

    :param type: the field's type, for the description.
    """

    kind: ClassVar[str] = "drop_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.DROP
    symbol: ClassVar[str] = "-"

    type: Type

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[DropColumn]:
        """The outermost fields that are gone, with their nested fields."""
        if pair.both is None:
            return
        for field_id, entry in pair.old_apart.items():
            parent = entry.parent
            if field_id in pair.new or (parent is not None and parent not in pair.new):
                continue
            if parent is not None and not isinstance(pair.new[parent].field.type, Struct):
                continue
            if not is_reshaped_field(pair, parent):
                yield cls(pair.both[0].name, field_id, entry.path, entry.field.type)

    @property
    def subject(self) -> Subject:
        return ("drop_columns", format_path(self.path))

    def apply(self, table: Table) -> Table:
        properties = column_properties_after_drop(table.properties, [self.path])
        return replace(table, schema=remove_by_id(table.schema, self.field_id), properties=properties)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (SqlStatement(self.alter(catalog, "DROP COLUMN")),)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All leading changes of the kind."""
        return leading_of_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        paths = ", ".join(path_sql(c.path) for c in changes if isinstance(c, DropColumn))
        return (SqlStatement(f"ALTER TABLE {table_sql(catalog, changes[0].table)} DROP COLUMNS ({paths})"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        reason = f"the values of `{format_path(self.path)}` can no longer be read"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        return self.map_key_problem(before)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        reason = f"fails or loses values if it writes `{format_path(self.path)}`, which this migration drops"
        return (WriterImpact(WriterKind.ALL, reason),)

    def reversal(self, before: Table) -> Reversal:
        reason = "the data files that contain it are neither rewritten nor expired"
        return Reversal(Reversibility.WHILE, reason)

    def describe(self) -> str:
        return f"{format_path(self.path)} {format_type(self.type)}"
