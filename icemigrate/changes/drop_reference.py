"""Removal of a branch or a tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    Hazard,
    HazardKind,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    TablePair,
    TablePart,
)
from icemigrate.changes.reference_sql import MAIN, ReferenceChange, drop_reference_sql
from icemigrate.frozen import replace
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table, differing_keys


class DropReference(ReferenceChange):
    """Drop a branch or a tag, which no longer retains its snapshots then.

    :param ref: the reference before.
    """

    kind: ClassVar[str] = "drop_reference"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"refs"})
    symbol: ClassVar[str] = "-"

    ref: Ref

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The references that are gone, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(differing_keys(before.refs, after.refs)):
            if name not in after.refs:
                yield cls(before.name, name, before.refs[name])

    @property
    def ref_kind(self) -> str:
        return self.ref.kind

    def apply(self, table: Table) -> Table:
        """The table without the reference."""
        return replace(
            table,
            refs={k: v for k, v in table.refs.items() if k != self.name},
            heads={k: v for k, v in table.heads.items() if k != self.name},
        )

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``DROP BRANCH`` or ``DROP TAG``."""
        return (drop_reference_sql(catalog, self.table, self.name, self.ref.kind),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Its snapshots may expire."""
        reason = f"the {self.ref.kind} no longer retains its snapshots, and the next expiry removes them"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """The main branch cannot be dropped."""
        if self.name == MAIN:
            yield PlanProblem(
                "main-branch",
                self.table,
                self.subject,
                "`main` is the table itself and cannot be dropped",
                "drop the table, or remove the branch from the list",
            )

    def reversal(self, before: Table) -> Reversal:
        """Undoing creates it again while the snapshot exists."""
        # Without a catalog the snapshot is not known.
        known = self.ref.snapshot_id != CURRENT_SNAPSHOT
        which = f"snapshot {self.ref.snapshot_id}" if known else f"the {self.ref.kind}'s snapshot"
        return Reversal(Reversibility.WHILE, f"{which} has not expired")

    def describe(self) -> str:
        return f"drop {self.ref.kind} {self.name}"
