"""A table that exists and is as declared is taken in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Statement, Subject
from icemigrate.changes.statements import reversible
from icemigrate.model.table import Table


class AdoptTable(Change):
    """The history takes note of a table; the table itself is left as it is.

    Found by the planner, not by :meth:`detect`.
    """

    kind: ClassVar[str] = "adopt_table"
    phase: ClassVar[Phase] = Phase.TABLE
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        """The word that asks for it."""
        return ("adopt",)

    def apply(self, table: Table) -> Table:
        """The table, as it is."""
        return table

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """None."""
        return ()

    def reversal(self, before: Table) -> Reversal:
        """The history forgets it."""
        return reversible("undoing leaves it as it is, undeclared again")

    def describe(self) -> str:
        """What is done."""
        return "adopt the existing table"
