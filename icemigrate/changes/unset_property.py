"""A table property is taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Statement, Subject
from icemigrate.changes.set_property import OF_OTHER_KINDS
from icemigrate.changes.statements import of_one_kind, reversible, unset_properties
from icemigrate.frozen import replace
from icemigrate.model.retention import property_text
from icemigrate.model.table import Table


class UnsetProperty(Change):
    """A property is taken away; neighbours are taken away in one statement.

    :param before: the value that it had.
    """

    kind: ClassVar[str] = "unset_property"
    phase: ClassVar[Phase] = Phase.PROPERTIES
    symbol: ClassVar[str] = "-"

    key: str
    before: str | None = None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Properties that are gone, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for key in sorted(before.properties.keys() - after.properties.keys() - OF_OTHER_KINDS):
            yield cls(before.name, key, before.properties[key])

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("properties", self.key)

    def apply(self, table: Table) -> Table:
        """The table without the property."""
        return replace(table, properties={k: v for k, v in table.properties.items() if k != self.key})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``UNSET TBLPROPERTIES``."""
        return (unset_properties(catalog, self.table, [self.key]),)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All neighbours of the kind."""
        return of_one_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``UNSET TBLPROPERTIES`` for all."""
        keys = [c.key for c in changes if isinstance(c, UnsetProperty)]
        return (unset_properties(catalog, changes[0].table, keys),)

    def reversal(self, before: Table) -> Reversal:
        """The property goes back."""
        return reversible("undoing sets the earlier value again")

    def describe(self) -> str:
        """Value before."""
        if self.before is None:
            return f"unset {self.key}"
        return f"unset {self.key} ({property_text(self.key, self.before)} → unset)"
