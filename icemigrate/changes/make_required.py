"""An optional field that may no longer be null."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Harm,
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
from icemigrate.changes.fields import FieldChange, altered_alike
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom


class MakeRequired(FieldChange):
    """Let a field be null no more; nothing checks the rows that are there."""

    kind: ClassVar[str] = "make_required"
    phase: ClassVar[Phase] = Phase.ALTER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[MakeRequired]:
        for old, new in altered_alike(pair):
            if pair.before is not None and new.field.required and not old.field.required:
                yield cls(pair.before.name, new.field.id, new.path)

    @property
    def subject(self) -> Subject:
        return self.of_column("required")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, required=True))

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``SET NOT NULL`` is refused by Spark, whatever the rows hold."""
        return (MetadataCommit(f"make {format_path(self.path)} required"),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        path = format_path(self.path)
        reason = (
            f"a table with files that lack `{path}` can be read by nobody, and rows whose `{path}` is null "
            "are read wrongly: Spark takes the null for 0"
        )
        return (Hazard(HazardKind.INCOMPATIBLE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[Problem]:
        return self.map_key_problem(before)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.ALL, f"may give no value for `{format_path(self.path)}`, which is required then"),)

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing makes it optional again, which reads every row as before")

    def describe(self) -> str:
        return f"{format_path(self.path)} optional → required"
