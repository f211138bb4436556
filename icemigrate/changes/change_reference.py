"""A branch or a tag is kept for another time, or points elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    Hazard,
    HazardKind,
    MetadataCommit,
    Pair,
    Problem,
    Reversal,
    Reversible,
    Statement,
)
from icemigrate.changes.reference_sql import (
    ReferenceChange,
    create_sql,
    drop_sql,
    limits,
    limits_text,
    replace_sql,
    unsayable_problem,
)
from icemigrate.frozen import replace
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Table


class ChangeReference(ReferenceChange):
    """The limits of a branch or a tag change, or the snapshot that it names.

    Where only the limits do, the reference stays where it is by then: others may have written to a branch
    since it was looked at.

    :param old: as it is.
    :param new: as it shall be, on the snapshot of ``old`` where it names none.
    """

    kind: ClassVar[str] = "change_reference"

    old: Ref
    new: Ref

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The references that differ, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(after.refs.keys() & before.refs.keys()):
            old, new = before.refs[name], after.refs[name]
            if new.snapshot_id == CURRENT_SNAPSHOT:
                new = replace(new, snapshot_id=old.snapshot_id)
            if old != new:
                yield cls(before.name, name, old, new)

    @property
    def ref_kind(self) -> str:
        """As it is declared."""
        return self.new.kind

    def apply(self, table: Table) -> Table:
        """The table with the reference as it shall be."""
        new, there = self.new, table.refs.get(self.name)
        if there is not None and not self._moves():
            new = replace(new, snapshot_id=there.snapshot_id)
        return replace(table, refs={**table.refs, self.name: new})

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A ``REPLACE``; it cannot take a limit away, so that is a ``DROP`` and a ``CREATE``.

        All of them name a snapshot, so what shall not move is a commit.
        """
        if not self._moves():
            return (MetadataCommit(self.describe()),)
        if self._loses_a_limit():
            return (
                drop_sql(catalog, self.table, self.name, self.old.kind),
                create_sql(catalog, self.table, self.name, self.new),
            )
        return (replace_sql(catalog, self.table, self.name, self.new),)

    def _moves(self) -> bool:
        return self.old.snapshot_id != self.new.snapshot_id

    def _loses_a_limit(self) -> bool:
        pairs = zip(limits(self.old), limits(self.new), strict=True)
        return any(old is not None and new is None for old, new in pairs)

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        """A snapshot that was kept may go."""
        if self._moves():
            reason = f"the snapshot that the {self.old.kind} points at now is no longer kept by it"
        elif self._keeps_less():
            reason = f"the {self.old.kind} keeps its snapshots for a shorter time than before"
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

    def problems(self, before: Table) -> Iterator[Problem]:
        """A branch stays a branch; and what cannot be said."""
        if self.old.kind != self.new.kind:
            yield Problem(
                "reference-kind",
                self.table,
                self.subject,
                f"`{self.name}` is a {self.old.kind}, and cannot become a {self.new.kind}",
                f"choose another name, or drop the {self.old.kind} in a migration before this one",
            )
        yield from unsayable_problem(self.table, self.name, self.new, has_snapshot=True)

    def reversal(self, before: Table) -> Reversal:
        """The earlier limits, or snapshot, again, as long as the snapshots are there."""
        return Reversal(Reversible.WHILE, f"no snapshot of the {self.old.kind} has expired")

    def describe(self) -> str:
        """The limits that it gets."""
        text = limits_text(self.new) or ", kept for ever"
        moved = f" to snapshot {self.new.snapshot_id}" if self._moves() else ""
        return f"change {self.new.kind} {self.name}{moved}{text}"
