"""Change of the write distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, Reversal, Statement, Subject, TablePair, TablePart
from icemigrate.changes.statement_shapes import always_reversible, set_properties, unset_properties
from icemigrate.frozen import replace
from icemigrate.iceberg.table import DISTRIBUTION_PROPERTY, Table


class WriteDistribution(Change):
    """Set the property ``write.distribution-mode`` while the sort order stays.

    If the order changes too, its statement sets both.

    :param mode: ``none``, ``hash`` or ``range``; ``None`` for Iceberg's default.
    """

    kind: ClassVar[str] = "write_distribution"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    phase: ClassVar[ChangePhase] = ChangePhase.PROPERTIES

    mode: str | None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if the modes differ."""
        if pair.both is None:
            return
        before, after = (table.properties.get(DISTRIBUTION_PROPERTY) for table in pair.both)
        if before != after:
            yield cls(pair.both[0].name, after)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("write_distribution",)

    def apply(self, table: Table) -> Table:
        """The table with the property."""
        rest = {k: v for k, v in table.properties.items() if k != DISTRIBUTION_PROPERTY}
        mode = {} if self.mode is None else {DISTRIBUTION_PROPERTY: self.mode}
        return replace(table, properties={**rest, **mode})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A change of the property, because every ``WRITE`` statement would also set the order."""
        if self.mode is None:
            return (unset_properties(catalog, self.table, [DISTRIBUTION_PROPERTY]),)
        return (set_properties(catalog, self.table, {DISTRIBUTION_PROPERTY: self.mode}),)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing restores the earlier distribution")

    def describe(self) -> str:
        return (
            "use Iceberg's default write distribution"
            if self.mode is None
            else f"write distribution {self.mode}"
        )
