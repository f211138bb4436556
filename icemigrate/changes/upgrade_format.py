"""Upgrade of a table's format version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Hazard,
    HazardKind,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.statement_shapes import set_properties
from icemigrate.frozen import replace
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table

NEWEST_FORMAT_VERSION = 3
"""The newest format version that the specification has adopted ("Versioning") and that is supported."""


class UpgradeFormat(Change):
    """Set the format version, before changes that need it."""

    kind: ClassVar[str] = "upgrade_format"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"format_version"})
    phase: ClassVar[ChangePhase] = ChangePhase.UPGRADE

    old: int
    new: int

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """One change, if the versions differ."""
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
        """The table with the new version."""
        return replace(table, format_version=self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``SET TBLPROPERTIES`` of ``format-version``, which is not stored as a property."""
        return (set_properties(catalog, self.table, {"format-version": str(self.new)}),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """An upgrade cannot be undone; a downgrade is a problem, not a hazard."""
        if self.new < self.old:
            return ()
        reason = (
            f"an upgrade to format version {self.new} is permanent, and older readers cannot read the table"
        )
        return (Hazard(HazardKind.IRREVERSIBLE, reason, self.scope()),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        """PyIceberg 0.12 does not write format version 3, and an unnamed writer may use it."""
        if self.new < 3:
            return ()
        return (
            WriterImpact(
                WriterKind.UNNAMED, f"may not support format version {self.new}; PyIceberg 0.12 does not"
            ),
        )

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """A downgrade, or a version that does not exist."""
        if self.new < self.old:
            yield PlanProblem(
                "format-downgrade",
                self.table,
                self.subject,
                f"the table has format version {self.old} and cannot be downgraded to {self.new}",
                f"write `format_version: {self.old}`, or copy the rows into a new table",
            )
        elif self.new > NEWEST_FORMAT_VERSION:
            yield PlanProblem(
                "unknown-format-version",
                self.table,
                self.subject,
                f"there is no format version {self.new}",
                f"the newest is {NEWEST_FORMAT_VERSION}",
            )

    def reversal(self, before: Table) -> Reversal:
        return Reversal(Reversibility.NO, "Iceberg cannot downgrade a format version")

    def describe(self) -> str:
        return f"format version {self.old} → {self.new}"
