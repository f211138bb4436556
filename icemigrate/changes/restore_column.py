"""Restoration of a dropped field under its own field id, with the values in its data files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    ChangePhase,
    Hazard,
    HazardKind,
    MetadataCommit,
    Reversal,
    Reversibility,
    Statement,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.column_positions import FieldInsertion
from icemigrate.frozen import replace
from icemigrate.iceberg.names import RETYPE_SUFFIX, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import walk_fields


class RestoreColumn(FieldInsertion):
    """Restore a dropped field with its nested fields, under their field ids."""

    kind: ClassVar[str] = "restore_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.RESTORE
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[RestoreColumn]:
        """The missing fields that have the id of a dropped field."""
        return cls.insertions(pair, lambda field_id: field_id > 0 and field_id not in pair.old)

    @property
    def subject(self) -> Subject:
        return ("restore_columns", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """The table with the field; the last column id grows only if the field's id is above it."""
        ids = [self.field.id, *(f.id for _, f in walk_fields(self.field.type))]
        schema = self.inserted(table, self.field)
        return replace(table, schema=schema, last_column_id=max(table.last_column_id, *ids))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (MetadataCommit(f"restore {self.describe()}"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Rows written after the drop have no value for it."""
        if not self.is_missing_in_rows:
            return ()
        name = format_path(self.path)
        reason = f"rows written since the drop have no value for the required column `{name}`"
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversibility.YES, "undoing drops it; its values stay in their files")

    def describe(self) -> str:
        *above, name = self.path
        final = name.removesuffix(RETYPE_SUFFIX)
        filled = f", as `{name}` until `retype` has filled it" if final != name else ""
        text = f"{format_path((*above, final))} {format_type(self.field.type)}"
        return f"{text}, under its own field id {self.field.id}{filled}{self.position_text}"
