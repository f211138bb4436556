"""The rows of a table go back to an earlier snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Hazard,
    HazardKind,
    MetadataCommit,
    Pair,
    Phase,
    Reversal,
    Reversible,
    Statement,
)
from icemigrate.changes.reference_sql import MAIN
from icemigrate.frozen import replace
from icemigrate.model.table import Ref, Snapshot, Table


class RewindRows(Change):
    """The main branch points at an earlier snapshot again.

    Found when a migration that changed rows is undone, not by :meth:`detect`.

    :param snapshot: the one that becomes current; ``None`` where the table had none.
    :param discarded: rows are lost that were written since.
    """

    kind: ClassVar[str] = "rewind_rows"
    phase: ClassVar[Phase] = Phase.REFERENCES

    snapshot: Snapshot | None
    discarded: bool = False

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table with the snapshot as its current one."""
        refs = {name: ref for name, ref in table.refs.items() if name != MAIN}
        if self.snapshot is not None:
            old = table.refs.get(MAIN) or Ref("branch", self.snapshot.id)
            refs[MAIN] = replace(old, snapshot_id=self.snapshot.id)
        return replace(table, refs=refs, snapshot=self.snapshot)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One commit, together with the rest of the undo."""
        return (MetadataCommit(self.describe()),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Newer rows are lost, where there are any."""
        if not self.discarded:
            return ()
        reason = "rows that were written since the migration can no longer be read"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        """The later snapshot stays until it expires."""
        now = "the snapshot of now" if before.snapshot is None else f"snapshot {before.snapshot.id}"
        return Reversal(Reversible.WHILE, f"{now} has not expired")

    def describe(self) -> str:
        """Where the rows go back to."""
        if self.snapshot is None:
            return "the rows go back to none, as before the migration"
        return f"the rows go back to snapshot {self.snapshot.id}, as before the migration"
