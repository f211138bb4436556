"""Changes of table properties."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, Reversal, Statement, Subject, TablePair, TablePart
from icemigrate.changes.statement_shapes import (
    always_reversible,
    leading_of_kind,
    set_properties,
    unset_properties,
)
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.retention import property_text
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY, Table, differing_keys

_PROPERTIES_OF_OTHER_CHANGES = frozenset({DESCRIPTION_PROPERTY, DISTRIBUTION_PROPERTY})


def is_property_of_other_change(key: str) -> bool:
    """Whether a different kind of change sets a property."""
    return key in _PROPERTIES_OF_OTHER_CHANGES or is_kept_view_key(key)


class SetProperty(Change):
    """Set a property; one statement sets several.

    :param before: the earlier value; ``None`` if there was none.
    """

    kind: ClassVar[str] = "set_property"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    phase: ClassVar[ChangePhase] = ChangePhase.PROPERTIES

    key: str
    value: str
    before: str | None = None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Properties that are new or have a new value, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for key in sorted(differing_keys(before.properties, after.properties)):
            if key in after.properties and not is_property_of_other_change(key):
                yield cls(before.name, key, after.properties[key], before.properties.get(key))

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("properties", self.key)

    def apply(self, table: Table) -> Table:
        """The table with the property."""
        return replace(table, properties={**table.properties, self.key: self.value})

    @classmethod
    def apply_all(cls, changes: Sequence[Change], table: Table) -> Iterator[Table]:
        """No change of a property depends on another, and a table may have thousands of them."""
        yield from itertools.repeat(table, len(changes))
        new = {change.key: change.value for change in changes if isinstance(change, SetProperty)}
        yield replace(table, properties={**table.properties, **new})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``SET TBLPROPERTIES``."""
        return (set_properties(catalog, self.table, {self.key: self.value}),)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All leading changes of the kind."""
        return leading_of_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``SET TBLPROPERTIES`` for all."""
        values = {c.key: c.value for c in changes if isinstance(c, SetProperty)}
        return (set_properties(catalog, changes[0].table, values),)

    def reversal(self, before: Table) -> Reversal:
        if self.before is None:
            return always_reversible("undoing removes the property")
        return always_reversible("undoing restores the earlier value")

    def describe(self) -> str:
        """The values before and after."""
        before = "unset" if self.before is None else property_text(self.key, self.before)
        return f"set {self.key} ({before} → {property_text(self.key, self.value)})"


class UnsetProperty(Change):
    """Remove a property; one statement removes several.

    :param before: the earlier value.
    """

    kind: ClassVar[str] = "unset_property"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"properties"})
    phase: ClassVar[ChangePhase] = ChangePhase.PROPERTIES
    symbol: ClassVar[str] = "-"

    key: str
    before: str | None = None

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Properties that are gone, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for key in sorted(differing_keys(before.properties, after.properties)):
            if key in after.properties or is_property_of_other_change(key):
                continue
            yield cls(before.name, key, before.properties[key])

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("properties", self.key)

    def apply(self, table: Table) -> Table:
        """The table without the property."""
        return replace(table, properties={k: v for k, v in table.properties.items() if k != self.key})

    @classmethod
    def apply_all(cls, changes: Sequence[Change], table: Table) -> Iterator[Table]:
        """As for properties that are set."""
        yield from itertools.repeat(table, len(changes))
        gone = {change.key for change in changes if isinstance(change, UnsetProperty)}
        yield replace(table, properties={k: v for k, v in table.properties.items() if k not in gone})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``UNSET TBLPROPERTIES``."""
        return (unset_properties(catalog, self.table, [self.key]),)

    @classmethod
    def combinable(cls, changes: Iterator[Change]) -> Iterator[Change]:
        """All leading changes of the kind."""
        return leading_of_kind(cls, changes)

    @classmethod
    def combine(cls, changes: Sequence[Change], before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``UNSET TBLPROPERTIES`` for all."""
        keys = [c.key for c in changes if isinstance(c, UnsetProperty)]
        return (unset_properties(catalog, changes[0].table, keys),)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing restores the earlier value")

    def describe(self) -> str:
        if self.before is None:
            return f"unset {self.key}"
        return f"unset {self.key} ({property_text(self.key, self.before)} → unset)"
