"""A field that changes its place among its siblings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alteration import Alteration
from icemigrate.changes.base import Harm, Pair, Phase, Problem, Reversal, Reversible, Subject
from icemigrate.changes.positions import all_siblings
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.schema_edits import edit_fields_of, place_field
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom
from icemigrate.sql.names import quote


class MoveColumn(Alteration):
    """Put a field behind a sibling, or first (``after=None``)."""

    kind: ClassVar[str] = "move_column"
    phase: ClassVar[Phase] = Phase.MOVE

    after: str | None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[MoveColumn]:
        """As few moves as lead to the wanted order."""
        if pair.both is None:
            return
        table = pair.both[0].name
        for siblings in all_siblings(pair):
            for field, behind in siblings.moves():
                after = None if behind is None else pair.new[behind].field.name
                yield cls(table, field.id, (*siblings.path, field.name), after)

    @property
    def subject(self) -> Subject:
        return self.of_column("first" if self.after is None else "after")

    def apply(self, table: Table) -> Table:
        schema = edit_fields_of(
            table.schema,
            table.schema.parent_of(self.field_id),
            lambda fields: place_field(fields, self.path[-1], self.after),
        )
        return replace(table, schema=schema)

    def action(self) -> str:
        return "FIRST" if self.after is None else f"AFTER {quote(self.after)}"

    def problems(self, before: Table) -> Iterator[Problem]:
        return self.map_key_problem(before)

    def harms(self) -> tuple[Harm, ...]:
        """Fields of structs too are given by position, unless an ``INSERT`` is ``BY NAME``."""
        if len(self.path) == 1:
            wrong = "columns if it gives values by position: the columns stand otherwise then"
        else:
            struct = format_path(self.path[:1])
            wrong = f"fields of `{struct}` if it is an `INSERT` without `BY NAME`: they stand otherwise then"
        return (
            Harm(Whom.JOBS, f"fails, or writes into wrong {wrong}"),
            Harm(
                Whom.SPARK_STREAM, "gives columns in the order of before, which Spark refuses when it starts"
            ),
        )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversible.YES, "undoing moves it back; only the order of the columns changes")

    def describe(self) -> str:
        place = "first" if self.after is None else f"after {self.after}"
        return f"{format_path(self.path)}, moved {place}"
