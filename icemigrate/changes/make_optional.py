"""A required field that may be null from now on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alteration import Alteration
from icemigrate.changes.base import Pair, Phase, Problem, Reversal, Reversible, Subject
from icemigrate.changes.fields import altered_alike
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.table import Table


class MakeOptional(Alteration):
    """Let a field be null."""

    kind: ClassVar[str] = "make_optional"
    phase: ClassVar[Phase] = Phase.ALTER

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[MakeOptional]:
        for old, new in altered_alike(pair):
            if pair.before is not None and old.field.required and not new.field.required:
                yield cls(pair.before.name, new.field.id, new.path)

    @property
    def subject(self) -> Subject:
        return self.of_column("required")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, required=False))

    def action(self) -> str:
        return "DROP NOT NULL"

    def problems(self, before: Table) -> Iterator[Problem]:
        return self.map_key_problem(before)

    def reversal(self, before: Table) -> Reversal:
        """Under ``required`` again, Spark reads a null that was written meanwhile as 0."""
        return Reversal(Reversible.WHILE, "no null was written into it since")

    def describe(self) -> str:
        return f"{format_path(self.path)} required → optional"
