"""Reset of a table's rows to an earlier snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Hazard,
    HazardKind,
    MetadataCommit,
    Reversal,
    Reversibility,
    Statement,
    TablePair,
)
from icemigrate.changes.reference_sql import MAIN
from icemigrate.frozen import replace
from icemigrate.iceberg.table import Ref, Snapshot, Table


class RewindRows(Change):
    """Set the main branch to an earlier snapshot.

    An undo of a migration that changed rows plans it, not :meth:`detect`.

    :param snapshot: the snapshot that becomes current; ``None`` if the table had none.
    :param discarded: whether rows that were written later are lost.
    """

    kind: ClassVar[str] = "rewind_rows"
    phase: ClassVar[ChangePhase] = ChangePhase.REFERENCES

    snapshot: Snapshot | None
    discarded: bool = False

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
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
        """One commit, together with the other changes of the undo."""
        return (MetadataCommit(self.describe()),)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Loss of newer rows, if there are any."""
        if not self.discarded:
            return ()
        reason = "rows that were written after the migration can no longer be read"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def reversal(self, before: Table) -> Reversal:
        """Undoing sets the later snapshot again, until it expires."""
        now = "the current snapshot" if before.snapshot is None else f"snapshot {before.snapshot.id}"
        return Reversal(Reversibility.WHILE, f"{now} has not expired")

    def describe(self) -> str:
        if self.snapshot is None:
            return "reset the rows to none, as before the migration"
        return f"reset the rows to snapshot {self.snapshot.id}, as before the migration"
