"""A table takes another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Harm, Pair, Phase, Reversal, Statement, Subject
from icemigrate.changes.statements import alter_table, reversible
from icemigrate.frozen import replace
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom
from icemigrate.sql.names import path_sql


class RenameTable(Change):
    """A table is renamed, perhaps into another namespace of the catalog; its files stay where they are.

    Found by the planner, not by :meth:`detect`: two states of a table match by identity, not by name.

    :param new: the name it takes.
    """

    kind: ClassVar[str] = "rename_table"
    phase: ClassVar[Phase] = Phase.TABLE
    symbol: ClassVar[str] = "→"

    new: TableName

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        """The word that asks for it."""
        return ("renamed_from",)

    def apply(self, table: Table) -> Table:
        """The table under its new name."""
        return replace(table, name=self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``RENAME``; Spark wants the new name without the catalog."""
        new = path_sql((*self.new.namespace, self.new.name))
        return (alter_table(catalog, self.table, f"RENAME TO {new}"),)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.ALL, f"finds no table `{self.table}` then"),)

    def reversal(self, before: Table) -> Reversal:
        """It is renamed back."""
        return reversible("undoing renames it back")

    def describe(self) -> str:
        """Both names."""
        return f"rename table to {self.new}"
