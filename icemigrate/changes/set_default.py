"""The value that writers put into a field where a row brings none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    MetadataCommit,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Statement,
    Subject,
)
from icemigrate.changes.fields import FieldChange, altered_alike, default_text
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.promotions import promoted_default
from icemigrate.model.table import Table
from icemigrate.model.types import JsonValue


class SetDefault(FieldChange):
    """Set a field's write default, or take it away (``None``); format version 3 has them.

    :param initial_default: what rows older than the field shall read; it must be what it is already.
    """

    kind: ClassVar[str] = "set_default"
    phase: ClassVar[Phase] = Phase.ALTER

    write_default: JsonValue
    initial_default: JsonValue = None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[SetDefault]:
        for old, new in altered_alike(pair):
            a, b = old.field, new.field
            kept = tuple(promoted_default(v, a.type, b.type) for v in (a.write_default, a.initial_default))
            same = kept == (b.write_default, b.initial_default)
            if pair.before is not None and not same:
                yield cls(pair.before.name, b.id, new.path, b.write_default, b.initial_default)

    @property
    def subject(self) -> Subject:
        return self.of_column("default")

    def apply(self, table: Table) -> Table:
        return self.edit(
            table,
            lambda f: replace(f, write_default=self.write_default, initial_default=self.initial_default),
        )

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """Spark's ``ALTER COLUMN … SET DEFAULT`` is not supported on Iceberg's tables."""
        return (MetadataCommit(f"set {self.describe()}"),)

    def problems(self, before: Table) -> Iterator[Problem]:
        yield from self.map_key_problem(before)
        field = before.schema.by_id(self.field_id)
        if field is not None and field.initial_default != self.initial_default:
            yield Problem(
                "initial-default-is-final",
                self.table,
                self.subject,
                f"the initial default of `{format_path(self.path)}` is {default_text(field.initial_default)}"
                " since the column was added, and never changes",
                "change the default for new rows only, or add a new column",
            )

    def reversal(self, before: Table) -> Reversal:
        reason = (
            "undoing sets the earlier default again; rows written meanwhile keep the value they were given"
        )
        return Reversal(Reversible.YES, reason)

    def describe(self) -> str:
        return f"{format_path(self.path)} default {default_text(self.write_default)}"
