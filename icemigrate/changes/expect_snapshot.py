"""The precondition of an undo that no rows are written between its planning and its commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, MetadataCommit, Reversal, Statement, TablePair
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.errors import StalePlan
from icemigrate.iceberg.table import Table


class ExpectSnapshot(Change):
    """Fail the commit unless the table's current snapshot is the one that the undo was planned with.

    An undo that narrows a type or makes a field required plans it, not :meth:`detect`.

    :param snapshot_id: ``None`` if the table had no snapshot.
    """

    kind: ClassVar[str] = "expect_snapshot"
    phase: ClassVar[ChangePhase] = ChangePhase.UPGRADE
    symbol: ClassVar[str] = "·"

    snapshot_id: int | None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The same table.

        :raises StalePlan: its current snapshot is a different one.
        """
        if table.snapshot_id != self.snapshot_id:
            raise StalePlan(
                f"rows were written to `{table.name}` after its files were checked, so it was not changed",
                "run `icemigrate rollback` again to check the new files too",
            )
        return table

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """Part of the commit that needs the precondition."""
        return (MetadataCommit(self.describe()),)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("it changes nothing")

    def describe(self) -> str:
        return "only if no rows are written meanwhile"
