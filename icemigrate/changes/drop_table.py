"""A table goes, into the trash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Harm,
    Hazard,
    HazardKind,
    Pair,
    Phase,
    Reversal,
    Reversible,
    Sql,
    Statement,
    Subject,
)
from icemigrate.changes.statements import alter_table
from icemigrate.frozen import replace
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom
from icemigrate.sql.names import namespace_sql, path_sql


class DropTable(Change):
    """A table is renamed into the trash namespace, where it waits until ``maintain`` empties that.

    ``DROP TABLE`` is never used: on some catalogs it deletes the metadata, and nothing could undo it.
    Found by the planner, not by :meth:`detect`.

    :param trash: its name there.
    """

    kind: ClassVar[str] = "drop_table"
    phase: ClassVar[Phase] = Phase.REMOVE_TABLE
    symbol: ClassVar[str] = "-"

    trash: TableName

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        """The word that asks for it."""
        return ("drop",)

    def apply(self, table: Table) -> Table:
        """The table as it lies in the trash."""
        return replace(table, name=self.trash)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """The trash is made where there is none, and the table renamed into it."""
        name = path_sql((*self.trash.namespace, self.trash.name))
        return (
            Sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(catalog, self.trash.namespace)}"),
            alter_table(catalog, self.table, f"RENAME TO {name}"),
        )

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Its readers lose it."""
        reason = "the table can no longer be read under its name, and goes for good when the trash is emptied"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.ALL, f"finds no table `{self.table}` then"),)

    def reversal(self, before: Table) -> Reversal:
        """It is renamed back, as long as it is there."""
        return Reversal(Reversible.WHILE, f"the trash still holds the table as {self.trash}")

    def describe(self) -> str:
        """Where it goes."""
        return f"drop table (into the trash, as {self.trash})"
