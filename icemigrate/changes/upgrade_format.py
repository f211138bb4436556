"""The table goes to a newer format version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Harm,
    Hazard,
    HazardKind,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Statement,
    Subject,
)
from icemigrate.changes.statements import set_properties
from icemigrate.frozen import replace
from icemigrate.model.table import Table
from icemigrate.model.writers import Whom

LATEST = 3
"""The newest format version that is adopted (specification, "Versioning") and known here."""


class UpgradeFormat(Change):
    """The format version changes, before anything that needs it.

    :param old: the version it has.
    :param new: the version it takes.
    """

    kind: ClassVar[str] = "upgrade_format"
    phase: ClassVar[Phase] = Phase.UPGRADE

    old: int
    new: int

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Whether the versions differ."""
        if pair.both is None:
            return
        before, after = pair.both
        if before.format_version != after.format_version:
            yield cls(before.name, before.format_version, after.format_version)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("format_version",)

    def apply(self, table: Table) -> Table:
        """The table in the version; nothing else of it changes."""
        return replace(table, format_version=self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """The one property that is no property."""
        return (set_properties(catalog, self.table, {"format-version": str(self.new)}),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """There is no way back; and none down, which no consent would change."""
        if self.new < self.old:
            return ()
        reason = f"a table never goes back from format version {self.new}, and readers of older ones lose it"
        return (Hazard(HazardKind.IRREVERSIBLE, reason, self.scope()),)

    def harms(self) -> tuple[Harm, ...]:
        """PyIceberg 0.12 writes no format version 3, and nobody says which library an unnamed writer is."""
        if self.new < 3:
            return ()
        return (Harm(Whom.UNNAMED, f"may not know format version {self.new}, as PyIceberg 0.12 does not"),)

    def problems(self, before: Table) -> Iterator[Problem]:
        """Down, or to a version that does not exist."""
        if self.new < self.old:
            yield Problem(
                "format-downgrade",
                self.table,
                self.subject,
                f"the table has format version {self.old}, and cannot go back to {self.new}",
                f"write `format_version: {self.old}`, or copy the rows into a new table",
            )
        elif self.new > LATEST:
            yield Problem(
                "unknown-format-version",
                self.table,
                self.subject,
                f"there is no format version {self.new}",
                f"the newest is {LATEST}",
            )

    def reversal(self, before: Table) -> Reversal:
        """None."""
        return Reversal(Reversible.NO, "Iceberg refuses to go back to an older format version")

    def describe(self) -> str:
        """Both versions."""
        return f"format version {self.old} → {self.new}"
