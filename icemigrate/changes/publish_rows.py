"""The rows of a migration become those of the table, in the commit that relies on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Sql, Statement
from icemigrate.changes.reference_sql import MAIN
from icemigrate.changes.statements import reversible
from icemigrate.errors import HeadMoved
from icemigrate.frozen import replace
from icemigrate.model.table import Snapshot, Table
from icemigrate.sql.branches import publish_branch_sql


class PublishRows(Change):
    """The main branch becomes what a branch is, and the branch goes; only where nobody wrote meanwhile.

    It is no part of a plan: what it says is told as the statement that the plan has, see
    :class:`~icemigrate.executor.rows.Rows`.

    :param base: the snapshot of main that the rows were written on; ``None`` where the table had none.
    :param rows: what was written; ``None`` where nothing was, so that only nobody may have written.
    :param written_on: the branch itself, where its name is longer than the plan's.
    """

    kind: ClassVar[str] = "publish_rows"
    phase: ClassVar[Phase] = Phase.REFERENCES
    symbol: ClassVar[str] = "·"

    branch: str
    base: int | None
    rows: Snapshot | None
    written_on: str = ""

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table with the rows.

        :raises HeadMoved: its current snapshot is another one.
        """
        if table.snapshot_id != self.base:
            when = "while its rows were written" if self.rows is not None else "since its rows were looked at"
            raise HeadMoved(f"others wrote to table `{table.name}` {when}", "apply again")
        if self.rows is None:
            return table
        refs = {name: ref for name, ref in table.refs.items() if name != (self.written_on or self.branch)}
        refs[MAIN] = replace(refs[MAIN], snapshot_id=self.rows.id)
        return replace(table, refs=refs, snapshot=self.rows)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """What does the same by itself."""
        if self.rows is None:
            return ()
        return (Sql(publish_branch_sql(catalog, self.table, self.branch)),)

    def reversal(self, before: Table) -> Reversal:
        """The data steps say what becomes of their rows."""
        return reversible("the steps that wrote the rows say what becomes of them")

    def describe(self) -> str:
        """What is done."""
        return "publish the rows" if self.rows is not None else "only if no rows are written meanwhile"
