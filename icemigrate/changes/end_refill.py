"""The end of a refill: the table's original settings, without the refill's branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, MetadataCommit, Reversal, Statement, TablePair
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.ref_names import is_refill_branch
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import MERGE_MODE, MERGE_ON_READ

REFILL_PROPERTY = "icemigrate.refilling"
"""Property of a table during a refill: the version that is undone.  With it, the next run finds an
interrupted refill and continues it."""
ORIGINAL_MERGE_MODE_PROPERTY = f"{REFILL_PROPERTY}.{MERGE_MODE}"
"""Property beside :data:`REFILL_PROPERTY` if the refill reads row lineage: the table's original
:data:`MERGE_MODE`, empty if it has none.  Spark has row lineage in a ``MERGE`` only with merge-on-read."""


def has_open_refill(table: Table) -> bool:
    """Whether a refill of the table has started and not ended."""
    return REFILL_PROPERTY in table.properties


def refill_properties(table: Table, version: str, merges_on_read: bool) -> dict[str, str]:
    """The properties to set on a table before it is refilled.

    :param merges_on_read: whether the refill reads row lineage.
    """
    wanted = {REFILL_PROPERTY: version}
    if merges_on_read and table.properties.get(MERGE_MODE) != MERGE_ON_READ:
        wanted |= {
            MERGE_MODE: MERGE_ON_READ,
            ORIGINAL_MERGE_MODE_PROPERTY: table.properties.get(MERGE_MODE, ""),
        }
    return {key: value for key, value in wanted.items() if table.properties.get(key) != value}


class EndRefill(Change):
    """Remove what a refill has set on the table, see :func:`refill_properties`."""

    kind: ClassVar[str] = "end_refill"
    phase: ClassVar[ChangePhase] = ChangePhase.ROWS
    symbol: ClassVar[str] = "·"

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing; the undo plans it."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table without the refill's properties and branch."""
        properties = {
            k: v
            for k, v in table.properties.items()
            if k not in (REFILL_PROPERTY, ORIGINAL_MERGE_MODE_PROPERTY)
        }
        own = table.properties.get(ORIGINAL_MERGE_MODE_PROPERTY)
        if own:
            properties[MERGE_MODE] = own
        elif own is not None:
            properties.pop(MERGE_MODE, None)
        refs = {n: r for n, r in table.refs.items() if r.kind != "branch" or not is_refill_branch(n)}
        return replace(table, properties=properties, refs=refs)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        return (MetadataCommit(self.describe()),)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("it only removes what the refill added")

    def describe(self) -> str:
        return "remove the refill's branch and settings from the table"
