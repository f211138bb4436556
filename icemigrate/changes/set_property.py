"""A table property is set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Phase, Reversal, Statement, Subject
from icemigrate.changes.statements import of_one_kind, reversible, set_properties
from icemigrate.frozen import replace
from icemigrate.model.retention import property_text
from icemigrate.model.table import DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY, Table

OF_OTHER_KINDS = frozenset({DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY})
"""Properties that a kind of their own looks after."""


class SetProperty(Change):
    """A property is set; neighbours are set in one statement.

    :param before: the value that it had; ``None`` where it had none.
    """

    kind: ClassVar[str] = "set_property"
    phase: ClassVar[Phase] = Phase.PROPERTIES

    key: str
    value: str
    before: str | None = None

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Properties that are new or have another value, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for key, value in sorted(after.properties.items() - before.properties.items()):
            if key not in OF_OTHER_KINDS:
                yield cls(before.name, key, value, before.properties.get(key))

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("properties", self.key)

    def apply(self, table: Table) -> Table:
        """The table with the property."""
        return replace(table, properties={**table.properties, self.key: self.value})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``SET TBLPROPERTIES``."""
        return (set_properties(catalog, self.table, {self.key: self.value}),)

    @classmethod
    def alike(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All neighbours of the kind."""
        return of_one_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``SET TBLPROPERTIES`` for all."""
        values = {c.key: c.value for c in changes if isinstance(c, SetProperty)}
        return (set_properties(catalog, changes[0].table, values),)

    def reversal(self, before: Table) -> Reversal:
        """The property goes back."""
        if self.before is None:
            return reversible("undoing takes the property away again")
        return reversible("undoing sets the earlier value again")

    def describe(self) -> str:
        """Value before and after."""
        before = "unset" if self.before is None else property_text(self.key, self.before)
        return f"set {self.key} ({before} → {property_text(self.key, self.value)})"
