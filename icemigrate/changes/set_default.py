"""Change of a field's write default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    ChangePhase,
    MetadataCommit,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.field_changes import FieldChange, altered_alike, default_text
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import promoted_default
from icemigrate.iceberg.types import JsonValue


class SetDefault(FieldChange):
    """Set a field's write default, or remove it (``None``); format version 3 has defaults.

    :param initial_default: the value of rows older than the field, which must not change.
    """

    kind: ClassVar[str] = "set_default"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ALTER

    write_default: JsonValue
    initial_default: JsonValue = None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[SetDefault]:
        for old, new in altered_alike(pair):
            a, b = old.field, new.field
            kept = tuple(promoted_default(v, a.type, b.type) for v in (a.write_default, a.initial_default))
            same = kept == (b.write_default, b.initial_default)
            if pair.before is not None and not same:
                yield cls(pair.before.name, b.id, new.path, b.write_default, b.initial_default)

    @property
    def subject(self) -> Subject:
        return self.column_subject("default")

    def apply(self, table: Table) -> Table:
        return self.edit(
            table,
            lambda f: replace(f, write_default=self.write_default, initial_default=self.initial_default),
        )

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A metadata commit, because Iceberg does not support Spark's ``ALTER COLUMN … SET DEFAULT``."""
        return (MetadataCommit(f"set {self.describe()}"),)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        yield from self.map_key_problem(before)
        field = before.schema.by_id(self.field_id)
        if field is not None and field.initial_default != self.initial_default:
            yield PlanProblem(
                "initial-default-is-final",
                self.table,
                self.subject,
                f"the initial default of `{format_path(self.path)}` is {default_text(field.initial_default)}"
                " and cannot change after the column was added",
                "change only the default of new rows, or add a new column",
            )

    def reversal(self, before: Table) -> Reversal:
        reason = "undoing restores the earlier default; rows written until then keep their values"
        return Reversal(Reversibility.YES, reason)

    def describe(self) -> str:
        return f"{format_path(self.path)} default {default_text(self.write_default)}"
