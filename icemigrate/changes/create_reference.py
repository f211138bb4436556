"""A branch or a tag is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Pair, Problem, Reversal, Reversible, Statement
from icemigrate.changes.reference_sql import (
    MAIN,
    ReferenceChange,
    create_sql,
    limits_text,
    unsayable_problem,
)
from icemigrate.changes.statements import reversible
from icemigrate.frozen import replace
from icemigrate.model.table import CURRENT_SNAPSHOT, Head, Ref, Snapshot, Table


class CreateReference(ReferenceChange):
    """A branch or a tag is made, on the snapshot that it names or on the current one.

    The main branch of a table without rows too, where it has limits of its own.
    """

    kind: ClassVar[str] = "create_reference"
    symbol: ClassVar[str] = "+"

    ref: Ref

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The references that are new, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(after.refs.keys() - before.refs.keys()):
            if name != MAIN or after.refs[name].is_limited:
                yield cls(before.name, name, after.refs[name])

    @property
    def ref_kind(self) -> str:
        """As it is declared."""
        return self.ref.kind

    def apply(self, table: Table) -> Table:
        """The table with the reference; a branch of a table without snapshots starts with one of its own."""
        ref, heads = self.ref, dict(table.heads)
        if ref.snapshot_id == CURRENT_SNAPSHOT and table.snapshot is not None:
            ref = replace(ref, snapshot_id=table.snapshot.id)
        if ref.kind == "branch" and self.name != MAIN and ref.snapshot_id != CURRENT_SNAPSHOT:
            heads[self.name] = _head(ref.snapshot_id, table)
        return replace(table, refs={**table.refs, self.name: ref}, heads=heads)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``CREATE BRANCH`` or ``CREATE TAG``."""
        return (create_sql(catalog, self.table, self.name, self.ref),)

    def problems(self, before: Table) -> Iterator[Problem]:
        """What cannot be made."""
        return unsayable_problem(self.table, self.name, self.ref, before.snapshot is not None)

    def reversal(self, before: Table) -> Reversal:
        """It is dropped, unless that would take rows away."""
        if self.name == MAIN:
            return reversible("undoing takes its limits away again")
        if self.ref.kind == "branch":
            return Reversal(Reversible.WHILE, "nobody has written to the branch since")
        return reversible("undoing drops the tag again")

    def describe(self) -> str:
        """What is made."""
        return f"create {self.ref.kind} {self.name}{limits_text(self.ref)}"


def _head(snapshot_id: int, table: Table) -> Head:
    """What is known of a branch that is made on a snapshot: as long as nobody writes to it, no field of later
    is in its files."""
    if table.snapshot is not None and table.snapshot.id == snapshot_id:
        return Head(table.snapshot, table.schema, is_behind=True)
    return Head(Snapshot(snapshot_id, 0))
