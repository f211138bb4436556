"""A branch or a tag is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Hazard,
    HazardKind,
    Pair,
    Problem,
    Reversal,
    Reversible,
    Statement,
)
from icemigrate.changes.reference_sql import MAIN, ReferenceChange, drop_sql
from icemigrate.frozen import replace
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Table


class DropReference(ReferenceChange):
    """A branch or a tag is dropped; its snapshots lose what kept them.

    :param ref: as it is.
    """

    kind: ClassVar[str] = "drop_reference"
    symbol: ClassVar[str] = "-"

    ref: Ref

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The references that are gone, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(before.refs.keys() - after.refs.keys()):
            yield cls(before.name, name, before.refs[name])

    @property
    def ref_kind(self) -> str:
        """As it is declared."""
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
        return (drop_sql(catalog, self.table, self.name, self.ref.kind),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Its snapshots may go with the next expiry."""
        reason = f"the {self.ref.kind}'s snapshots are no longer kept, and go with the next expiry"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def problems(self, before: Table) -> Iterator[Problem]:
        """The main branch stays."""
        if self.name == MAIN:
            yield Problem(
                "main-branch",
                self.table,
                self.subject,
                "`main` is the table itself, and cannot be dropped",
                "drop the table, or leave the branch out",
            )

    def reversal(self, before: Table) -> Reversal:
        """It is made again, as long as the snapshot is there."""
        # Without a catalog nobody knows which snapshot it is.
        known = self.ref.snapshot_id != CURRENT_SNAPSHOT
        which = f"snapshot {self.ref.snapshot_id}" if known else f"the {self.ref.kind}'s snapshot"
        return Reversal(Reversible.WHILE, f"{which} has not expired")

    def describe(self) -> str:
        """What goes."""
        return f"drop {self.ref.kind} {self.name}"
