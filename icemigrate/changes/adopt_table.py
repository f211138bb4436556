"""Adoption of an existing table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, Reversal, Statement, Subject, TablePair, TablePart
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.iceberg.table import Table


class AdoptTable(Change):
    """Record an existing table in the history without changing it.

    The planner creates it, not :meth:`detect`.
    """

    kind: ClassVar[str] = "adopt_table"
    compares: ClassVar[frozenset[TablePart]] = frozenset()
    phase: ClassVar[ChangePhase] = ChangePhase.TABLE
    symbol: ClassVar[str] = "+"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        return ("adopt",)

    def apply(self, table: Table) -> Table:
        return table

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return ()

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing makes it undeclared again and does not change it")

    def describe(self) -> str:
        return "adopt the existing table"
