"""A dropped field that comes back under its own field id, with what its files still hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Hazard,
    HazardKind,
    MetadataCommit,
    Pair,
    Phase,
    Reversal,
    Reversible,
    Statement,
    Subject,
)
from icemigrate.changes.positions import FieldInsertion
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import walk


class RestoreColumn(FieldInsertion):
    """Bring a field back, with all that was below it, under the ids that they had."""

    kind: ClassVar[str] = "restore_column"
    phase: ClassVar[Phase] = Phase.RESTORE
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[RestoreColumn]:
        """The fields that have an id of old and are not there."""
        return cls.insertions(pair, lambda field_id: field_id > 0 and field_id not in pair.old)

    @property
    def subject(self) -> Subject:
        return ("restore_columns", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """No id is given: the last one grows only where the table did not know the field's."""
        ids = [self.field.id, *(f.id for _, f in walk(self.field.type))]
        schema = self.inserted(table, self.field)
        return replace(table, schema=schema, last_column_id=max(table.last_column_id, *ids))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (MetadataCommit(f"bring back {self.describe()}"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Rows written since the drop hold nothing for it."""
        if not self.is_missed:
            return ()
        name = format_path(self.path)
        reason = f"rows written since it was dropped have no value for `{name}`, which is required"
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing drops it again; its values stay in their files")

    def describe(self) -> str:
        text = f"{format_path(self.path)} {format_type(self.field.type)}"
        return f"{text}, under its own field id {self.field.id}{self.place_text}"
