"""A new column, or a new field of a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, takewhile
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Hazard,
    HazardKind,
    MetadataCommit,
    Reversal,
    Reversibility,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.column_positions import FieldInsertion
from icemigrate.changes.field_changes import default_text
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import renumber_fields
from icemigrate.spark_sql.identifiers import path_sql, quote, table_sql
from icemigrate.spark_sql.type_sql import comment_sql, spark_type


class AddColumn(FieldInsertion):
    """Add a field with its nested fields.

    Its name, type and default are validated with the resulting table.
    """

    kind: ClassVar[str] = "add_column"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ADD
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[AddColumn]:
        return cls.insertions(pair, lambda field_id: field_id < 0)

    @property
    def subject(self) -> Subject:
        return ("columns", format_path(self.path))

    def apply(self, table: Table) -> Table:
        """Ids as ``SchemaUpdate.addColumn`` gives them: the field's own first, then all below it."""
        ids = count(table.last_column_id + 1)
        field = replace(self.field, id=next(ids))
        field = replace(field, type=renumber_fields(field.type, lambda: next(ids)))
        return replace(table, schema=self.inserted(table, field), last_column_id=next(ids) - 1)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        definition = self.definition()
        if definition is None:
            return (MetadataCommit(f"add {self.describe()}"),)
        return (SqlStatement(f"ALTER TABLE {table_sql(catalog, self.table)} ADD COLUMNS ({definition})"),)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """The leading additions that Spark SQL can express."""
        return takewhile(lambda c: isinstance(c, AddColumn) and c.definition() is not None, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One statement for all; Spark adds its columns in order, so ids and positions stay the same."""
        definitions = [c.definition() for c in changes if isinstance(c, AddColumn)]
        texts = [text for text in definitions if text is not None]
        assert len(texts) == len(changes), "only additions that Spark SQL can express are combined"
        table = table_sql(catalog, changes[0].table)
        return (SqlStatement(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(texts)})"),)

    def definition(self) -> str | None:
        """The field as in ``ADD COLUMNS``; ``None`` if Spark SQL cannot express it."""
        type_ = spark_type(self.field.type)
        defaults = (self.field.initial_default, self.field.write_default)
        if type_ is None or self.field.required or defaults != (None, None):
            return None
        position = " FIRST" if self.first else f" AFTER {quote(self.after)}" if self.after is not None else ""
        return f"{path_sql(self.path)} {type_}{comment_sql(self.field.doc)}{position}"

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        if not self.is_missing_in_rows:
            return ()
        reason = f"existing rows have no value for the required column `{format_path(self.path)}`"
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        reason = "undoing drops it; values written until then stay in their files under its field id"
        return Reversal(Reversibility.YES, reason)

    def describe(self) -> str:
        required = ", required" if self.field.required else ""
        default = self.field.initial_default
        value = "" if default is None else f", default {default_text(default)}"
        return f"{format_path(self.path)} {format_type(self.field.type)}{required}{value}{self.position_text}"
