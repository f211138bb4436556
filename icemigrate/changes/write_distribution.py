"""How rows are distributed over writers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Statement, Subject
from icemigrate.changes.statements import reversible, set_properties, unset_properties
from icemigrate.frozen import replace
from icemigrate.model.table import DISTRIBUTION_PROPERTY, Table


class WriteDistribution(Change):
    """The property ``write.distribution-mode`` changes while the order stays.

    Where the order changes too, its statement takes care of both.

    :param mode: ``none``, ``hash`` or ``range``; ``None`` leaves the choice to Iceberg.
    """

    kind: ClassVar[str] = "write_distribution"
    phase: ClassVar[Phase] = Phase.PROPERTIES

    mode: str | None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the modes differ."""
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
        """The property alone: every ``WRITE`` statement would set the order as well."""
        if self.mode is None:
            return (unset_properties(catalog, self.table, [DISTRIBUTION_PROPERTY]),)
        return (set_properties(catalog, self.table, {DISTRIBUTION_PROPERTY: self.mode}),)

    def reversal(self, before: Table) -> Reversal:
        """The property goes back."""
        return reversible("undoing sets the earlier distribution again")

    def describe(self) -> str:
        """The mode."""
        return (
            "leave the write distribution to Iceberg"
            if self.mode is None
            else f"write distribution {self.mode}"
        )
