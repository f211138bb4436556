"""A column, or a field of a struct, that is no longer wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Harm,
    Hazard,
    HazardKind,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Sql,
    Statement,
    Subject,
)
from icemigrate.changes.fields import FieldChange, is_reshaped_field
from icemigrate.changes.statements import of_one_kind
from icemigrate.frozen import replace
from icemigrate.model.column_properties import after_drop
from icemigrate.model.names import format_path
from icemigrate.model.schema_edits import remove_by_id
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Struct, Type
from icemigrate.model.writers import Whom
from icemigrate.sql.names import path_sql, table_sql


class DropColumn(FieldChange):
    """Drop a field, with all that is below it.

    :param type: the field's type, for the reader.
    """

    kind: ClassVar[str] = "drop_column"
    phase: ClassVar[Phase] = Phase.DROP
    symbol: ClassVar[str] = "-"

    type: Type

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[DropColumn]:
        """The top-most fields of structs that are gone: what was below one goes with it."""
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
        properties = after_drop(table.properties, [self.path])
        return replace(table, schema=remove_by_id(table.schema, self.field_id), properties=properties)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (Sql(self.alter(catalog, "DROP COLUMN")),)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All neighbours of the kind."""
        return of_one_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        paths = ", ".join(path_sql(c.path) for c in changes if isinstance(c, DropColumn))
        return (Sql(f"ALTER TABLE {table_sql(catalog, changes[0].table)} DROP COLUMNS ({paths})"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        reason = f"the values of `{format_path(self.path)}` can no longer be read"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[Problem]:
        return self.map_key_problem(before)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.ALL, f"gives `{format_path(self.path)}`, which is gone then"),)

    def reversal(self, before: Table) -> Reversal:
        reason = "the data files that hold it are neither rewritten nor expired"
        return Reversal(Reversible.WHILE, reason)

    def describe(self) -> str:
        return f"{format_path(self.path)} {format_type(self.type)}"
