"""Publication of a migration's rows, in the commit of the changes that need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, Reversal, SqlStatement, Statement, TablePair
from icemigrate.changes.reference_sql import MAIN
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.errors import HeadMoved
from icemigrate.frozen import replace
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.spark_sql.branch_statements import publish_branch_sql


class PublishRows(Change):
    """Fast-forward the main branch to a branch and drop the branch, if no one else wrote meanwhile.

    It is not part of a plan, which shows the equivalent statement instead, see
    :class:`~icemigrate.execution.table_rows.MigrationRows`.

    :param base: the snapshot of main before the rows were written; ``None`` if the table had none.
    :param rows: the snapshot with the rows; ``None`` to check only that no one else wrote.
    :param written_on: the branch, if its name is longer than in the plan.
    """

    kind: ClassVar[str] = "publish_rows"
    phase: ClassVar[ChangePhase] = ChangePhase.REFERENCES
    symbol: ClassVar[str] = "·"

    branch: str
    base: int | None
    rows: Snapshot | None
    written_on: str = ""

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table with the rows.

        :raises HeadMoved: its current snapshot is a different one.
        """
        if table.snapshot_id != self.base:
            when = "while its rows were written" if self.rows is not None else "after its rows were checked"
            raise HeadMoved(f"another client wrote to table `{table.name}` {when}", "apply again")
        if self.rows is None:
            return table
        refs = {name: ref for name, ref in table.refs.items() if name != (self.written_on or self.branch)}
        refs[MAIN] = replace(refs[MAIN], snapshot_id=self.rows.id)
        return replace(table, refs=refs, snapshot=self.rows)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """The equivalent statement."""
        if self.rows is None:
            return ()
        return (SqlStatement(publish_branch_sql(catalog, self.table, self.branch)),)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("the data steps that wrote the rows determine how they are undone")

    def describe(self) -> str:
        return "publish the rows" if self.rows is not None else "only if no rows are written meanwhile"
