"""A new column, or a new field of a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, takewhile
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Hazard,
    HazardKind,
    MetadataCommit,
    Pair,
    Phase,
    Reversal,
    Reversible,
    Sql,
    Statement,
    Subject,
)
from icemigrate.changes.fields import default_text
from icemigrate.changes.positions import FieldInsertion
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import renumber
from icemigrate.sql.names import path_sql, quote, table_sql
from icemigrate.sql.types import comment_sql, spark_type


class AddColumn(FieldInsertion):
    """Add a field, with all that is below it.

    Whether its name, its type and its default may be is a question about the table that results.
    """

    kind: ClassVar[str] = "add_column"
    phase: ClassVar[Phase] = Phase.ADD
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[AddColumn]:
        return cls.insertions(pair, lambda field_id: field_id < 0)

    @property
    def subject(self) -> Subject:
        return ("columns", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """Ids as ``SchemaUpdate.addColumn`` gives them: the field's own first, then all below it."""
        ids = count(table.last_column_id + 1)
        field = replace(self.field, id=next(ids))
        field = replace(field, type=renumber(field.type, lambda: next(ids)))
        return replace(table, schema=self.inserted(table, field), last_column_id=next(ids) - 1)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        definition = self.definition()
        if definition is None:
            return (MetadataCommit(f"add {self.describe()}"),)
        return (Sql(f"ALTER TABLE {table_sql(catalog, self.table)} ADD COLUMNS ({definition})"),)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """The neighbours that Spark SQL can say."""
        return takewhile(_is_said, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One statement for all; Spark goes through its columns in order, so ids and places stay the same."""
        definitions = [c.definition() for c in changes if isinstance(c, AddColumn)]
        said = [text for text in definitions if text is not None]
        assert len(said) == len(changes), "only what SQL can say is said together"
        table = table_sql(catalog, changes[0].table)
        return (Sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(said)})"),)

    def definition(self) -> str | None:
        """The field as ``ADD COLUMNS`` takes it; ``None`` where Spark SQL cannot say it."""
        type_ = spark_type(self.field.type)
        defaults = (self.field.initial_default, self.field.write_default)
        if type_ is None or self.field.required or defaults != (None, None):
            return None
        place = " FIRST" if self.first else f" AFTER {quote(self.after)}" if self.after is not None else ""
        return f"{path_sql(self.path)} {type_}{comment_sql(self.field.doc)}{place}"

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        if not self.is_missed:
            return ()
        reason = (
            f"rows that are there already have no value for `{format_path(self.path)}`, which is required"
        )
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        reason = "undoing drops it again; values written meanwhile stay in their files under its field id"
        return Reversal(Reversible.YES, reason)

    def describe(self) -> str:
        required = ", required" if self.field.required else ""
        default = self.field.initial_default
        value = "" if default is None else f", default {default_text(default)}"
        return f"{format_path(self.path)} {format_type(self.field.type)}{required}{value}{self.place_text}"


def _is_said(change: Change) -> bool:
    return isinstance(change, AddColumn) and change.definition() is not None
