"""The end of a refill: the table's own settings again, and what was used on the way is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, MetadataCommit, Pair, Phase, Reversal, Statement
from icemigrate.changes.statements import reversible
from icemigrate.frozen import replace
from icemigrate.model.marks import is_refill_branch
from icemigrate.model.row_modes import MERGE_MODE, MERGE_ON_READ
from icemigrate.model.table import Table

REFILLING = "icemigrate.refilling"
"""On a table while values are brought back to it: the version that is undone.  A run that died meanwhile is
known by it, and gone on with."""
OWN_MERGE_MODE = f"{REFILLING}.{MERGE_MODE}"
"""Beside :data:`REFILLING` where rows are asked for their lineage: the table's own :data:`MERGE_MODE`, empty
where it has none.  Spark finds that in a ``MERGE`` only where it writes by merge-on-read."""


def is_refilling(table: Table) -> bool:
    """Whether a refill of the table was begun and has not ended."""
    return REFILLING in table.properties


def begun(table: Table, version: str, merges_on_read: bool) -> dict[str, str]:
    """The properties that a table bears while it is refilled, which differ from those that it has.

    :param merges_on_read: whether rows are asked for their lineage.
    """
    wanted = {REFILLING: version}
    if merges_on_read and table.properties.get(MERGE_MODE) != MERGE_ON_READ:
        wanted |= {MERGE_MODE: MERGE_ON_READ, OWN_MERGE_MODE: table.properties.get(MERGE_MODE, "")}
    return {key: value for key, value in wanted.items() if table.properties.get(key) != value}


class EndRefill(Change):
    """Take back what a refill has set on the table, see :func:`begun`."""

    kind: ClassVar[str] = "end_refill"
    phase: ClassVar[Phase] = Phase.ROWS
    symbol: ClassVar[str] = "·"

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, as for the refill."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table without the refill's properties and branch."""
        properties = {k: v for k, v in table.properties.items() if k not in (REFILLING, OWN_MERGE_MODE)}
        own = table.properties.get(OWN_MERGE_MODE)
        if own:
            properties[MERGE_MODE] = own
        elif own is not None:
            properties.pop(MERGE_MODE, None)
        refs = {n: r for n, r in table.refs.items() if r.kind != "branch" or not is_refill_branch(n)}
        return replace(table, properties=properties, refs=refs)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One commit."""
        return (MetadataCommit(self.describe()),)

    def reversal(self, before: Table) -> Reversal:
        """It leaves nothing behind."""
        return reversible("it leaves nothing behind")

    def describe(self) -> str:
        """What goes."""
        return "take the refill's branch and settings off the table"
