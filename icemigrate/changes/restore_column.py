"""A dropped field that comes back under its own field id, with what its files still hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Hazard,
    HazardKind,
    MetadataCommit,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Statement,
    Subject,
)
from icemigrate.changes.fields import field_scope, map_key_problem
from icemigrate.changes.positions import all_siblings
from icemigrate.model.names import Path, format_path
from icemigrate.model.schema_edits import insert_field
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, walk


@dataclass(frozen=True, slots=True)
class RestoreColumn(Change):
    """Bring a field back, with all that was below it.

    :param parent_id: the struct's field, ``None`` for a column.
    :param path: the field's path when it is there.
    :param field: the field, under the ids it had.
    :param after: the sibling it is put behind.
    :param first: whether it is put first; with neither it comes last.
    """

    kind: ClassVar[str] = "restore_column"
    phase: ClassVar[Phase] = Phase.RESTORE
    symbol: ClassVar[str] = "+"

    parent_id: int | None
    path: Path
    field: Field
    after: str | None = None
    first: bool = False

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[RestoreColumn]:
        """The top-most fields that have an id of old and are not there."""
        if pair.both is None:
            return
        table = pair.both[0].name
        for siblings in all_siblings(pair):
            for field, place in siblings.insertions(
                lambda field_id: field_id > 0 and field_id not in pair.old
            ):
                after = None if place.after is None else pair.new[place.after].field.name
                yield cls(table, siblings.parent, (*siblings.path, field.name), field, after, place.first)

    @property
    def subject(self) -> Subject:
        return ("restore_columns", format_path(self.path))

    def scope(self) -> str:
        return field_scope(self.table, self.path)

    def apply(self, table: Table) -> Table:
        """No id is given: the last one grows only where the table did not know the field's."""
        ids = [self.field.id, *(f.id for _, f in walk(self.field.type))]
        schema = insert_field(table.schema, self.parent_id, self.field, self.after, self.first)
        return replace(table, schema=schema, last_column_id=max(table.last_column_id, *ids))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (MetadataCommit(f"bring back {self.describe()}"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Rows written since the drop hold nothing for it."""
        if not self.field.required or self.field.initial_default is not None:
            return ()
        name = format_path(self.path)
        reason = f"rows written since it was dropped have no value for `{name}`, which is required"
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[Problem]:
        yield from map_key_problem(before, self.table, self.parent_id, self.subject, self.path)

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing drops it again; its values stay in their files")

    def describe(self) -> str:
        place = ", first" if self.first else f", after {self.after}" if self.after is not None else ""
        text = f"{format_path(self.path)} {format_type(self.field.type)}"
        return f"{text}, under its own field id {self.field.id}{place}"
