"""What an undo relies on: that no rows are written between the look at the files and the commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, MetadataCommit, Pair, Phase, Reversal, Statement
from icemigrate.changes.statements import reversible
from icemigrate.errors import StalePlan
from icemigrate.model.table import Table


class ExpectSnapshot(Change):
    """The commit is made only where the table's current snapshot is the one that was looked at.

    Found when a type is narrowed again or a field is required again, not by :meth:`detect`.

    :param snapshot_id: ``None`` where the table had no snapshot.
    """

    kind: ClassVar[str] = "expect_snapshot"
    phase: ClassVar[Phase] = Phase.UPGRADE
    symbol: ClassVar[str] = "·"

    snapshot_id: int | None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table as it is.

        :raises StalePlan: its current snapshot is another one.
        """
        if table.snapshot_id != self.snapshot_id:
            raise StalePlan(
                f"rows were written to `{table.name}` since its files were looked at; it was not undone",
                "run `icemigrate rollback` again: it looks at the new files too",
            )
        return table

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """Part of the commit that relies on it."""
        return (MetadataCommit(self.describe()),)

    def reversal(self, before: Table) -> Reversal:
        """It changes nothing."""
        return reversible("it changes nothing")

    def describe(self) -> str:
        """The condition."""
        return "only if no rows are written meanwhile"
