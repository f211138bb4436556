"""The description of a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alteration import Alteration
from icemigrate.changes.base import (
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Subject,
)
from icemigrate.changes.fields import altered_alike, has_no_description
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.table import Table
from icemigrate.sql.literals import string_sql

_SHOWN = 60
"""How much of a description the plan shows, in characters."""


class DescribeColumn(Alteration):
    """Set the description of a field, or take it away (``doc=None``)."""

    kind: ClassVar[str] = "describe_column"
    phase: ClassVar[Phase] = Phase.ALTER

    doc: str | None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[DescribeColumn]:
        for old, new in altered_alike(pair):
            if pair.before is not None and old.field.doc != new.field.doc:
                yield cls(pair.before.name, new.field.id, new.path, new.field.doc)

    @property
    def subject(self) -> Subject:
        return self.of_column("description")

    def apply(self, table: Table) -> Table:
        return self.edit(table, lambda f: replace(f, doc=self.doc))

    def action(self) -> str | None:
        """``COMMENT ''`` leaves an empty text behind, and Spark has no other way to take one away."""
        return None if self.doc is None else f"COMMENT {string_sql(self.doc)}"

    def commit_text(self) -> str:
        return f"take away the description of {format_path(self.path)}"

    def problems(self, before: Table) -> Iterator[Problem]:
        if not has_no_description(before, self.field_id):
            yield from self.map_key_problem(before)
        elif self.doc is not None:
            yield Problem(
                "nowhere-to-describe",
                self.table,
                self.subject,
                f"Iceberg keeps no description of `{format_path(self.path)}`, the {self.path[-1]} of a"
                f" {'list' if self.path[-1] == 'element' else 'map'}",
                f"say it in the description of `{format_path(self.path[:-1])}`",
            )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing sets the earlier description again")

    def describe(self) -> str:
        name = format_path(self.path)
        if self.doc is None:
            return f"{name} without description"
        text = " ".join(self.doc.split())
        short = text if len(text) <= _SHOWN else text[: _SHOWN - 1].rstrip() + "…"
        return f'{name} described as "{short}"'
