"""Change of the limits or the snapshot of a branch or a tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    Hazard,
    HazardKind,
    MetadataCommit,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    TablePair,
    TablePart,
)
from icemigrate.changes.reference_sql import (
    ReferenceChange,
    create_reference_sql,
    drop_reference_sql,
    limits_text,
    reference_limits,
    reference_sql_problems,
    replace_reference_sql,
    snapshot_text,
)
from icemigrate.errors import ConflictError
from icemigrate.frozen import replace
from icemigrate.iceberg.snapshot_pins import SnapshotLog
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table, differing_keys


class ChangeReference(ReferenceChange):
    """Change the limits of a branch or a tag, or its snapshot.

    If only the limits change, the reference keeps its current snapshot: clients may have written to the
    branch since the plan was made.

    :param old: the reference before.
    :param new: the reference after, on the snapshot of ``old`` unless it names one.
    :param times: the times of both snapshots, as text after their ids.
    """

    kind: ClassVar[str] = "change_reference"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"refs"})

    old: Ref
    new: Ref
    times: tuple[str, str] = ("", "")

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The references that differ, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(differing_keys(before.refs, after.refs)):
            if name not in before.refs or name not in after.refs:
                continue
            old, new = before.refs[name], after.refs[name]
            if new.snapshot_id == CURRENT_SNAPSHOT:
                new = replace(new, snapshot_id=old.snapshot_id)
            if old != new:
                log = before.snapshot_log or SnapshotLog({})
                times = (log.time_text(old.snapshot_id), log.time_text(new.snapshot_id))
                is_moved = old.snapshot_id != new.snapshot_id
                yield cls(before.name, name, old, new, times if is_moved else ("", ""))

    @property
    def ref_kind(self) -> str:
        return self.new.kind

    def apply(self, table: Table) -> Table:
        """The table with the new reference.

        :raises ConflictError: it moves, and another client has moved it or written to the branch.
        """
        new, there = self.new, table.refs.get(self.name)
        if there is not None and not self.is_moving:
            new = replace(new, snapshot_id=there.snapshot_id)
        elif there is not None and there.snapshot_id not in (self.old.snapshot_id, new.snapshot_id):
            raise ConflictError(
                f"{there.kind} `{self.name}` of table `{table.name}` is at snapshot {there.snapshot_id} now, "
                f"not at {self.old.snapshot_id}",
                "`icemigrate plan` shows what is left to do",
            )
        return replace(table, refs={**table.refs, self.name: new})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``REPLACE``; to remove a limit, which that cannot do, ``DROP`` and ``CREATE``.

        All of them set a snapshot, so a reference that must keep its own is changed by a metadata commit.
        """
        if not self.is_moving:
            return (MetadataCommit(self.describe()),)
        if self._loses_a_limit():
            return (
                drop_reference_sql(catalog, self.table, self.name, self.old.kind),
                create_reference_sql(catalog, self.table, self.name, self.new),
            )
        return (replace_reference_sql(catalog, self.table, self.name, self.new),)

    @property
    def is_moving(self) -> bool:
        """Whether it points to another snapshot afterwards."""
        return self.old.snapshot_id != self.new.snapshot_id

    def _loses_a_limit(self) -> bool:
        pairs = zip(reference_limits(self.old), reference_limits(self.new), strict=True)
        return any(old is not None and new is None for old, new in pairs)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """Snapshots that the reference retained may expire."""
        if self.is_moving:
            reason = f"the {self.old.kind} no longer retains the snapshot that it refers to now"
        elif self._keeps_less():
            reason = f"the {self.old.kind} retains its snapshots for less time than before"
        else:
            return ()
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def _keeps_less(self) -> bool:
        old, new = (
            [float("inf") if a is None else a for a in (r.max_ref_age_ms, r.max_snapshot_age_ms)]
            for r in (self.old, self.new)
        )
        fewer = (self.new.min_snapshots_to_keep or 0) < (self.old.min_snapshots_to_keep or 0)
        return fewer or any(n < o for o, n in zip(old, new, strict=True))

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """A change of kind, and limits that Spark SQL cannot express."""
        if self.old.kind != self.new.kind:
            yield PlanProblem(
                "reference-kind",
                self.table,
                self.subject,
                f"`{self.name}` is a {self.old.kind} and cannot become a {self.new.kind}",
                f"choose another name, or drop the {self.old.kind} in an earlier migration",
            )
        yield from reference_sql_problems(self.table, self.name, self.new)

    def reversal(self, before: Table) -> Reversal:
        """Undoing restores the limits or the snapshot while the snapshots exist."""
        return Reversal(Reversibility.WHILE, f"no snapshot of the {self.old.kind} has expired")

    def describe(self) -> str:
        """The move, and the new limits."""
        if not self.is_moving:
            return f"change {self.new.kind} {self.name}{limits_text(self.new) or ', kept forever'}"
        old, new = (
            f"{snapshot_text(ref.snapshot_id)}{time}"
            for ref, time in zip((self.old, self.new), self.times, strict=True)
        )
        is_same = reference_limits(self.old) == reference_limits(self.new)
        limits = "" if is_same else limits_text(self.new) or ", kept forever"
        return f"move {self.new.kind} {self.name} from {old} to {new}{limits}"
