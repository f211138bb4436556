"""Creation of a branch or a tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    MetadataCommit,
    PlanProblem,
    Reversal,
    Reversibility,
    Statement,
    TablePair,
    TablePart,
)
from icemigrate.changes.reference_sql import (
    MAIN,
    ReferenceChange,
    create_reference_sql,
    is_on_empty_snapshot,
    limits_text,
    reference_sql_problems,
    snapshot_text,
)
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, BranchHead, Ref, Snapshot, Table, differing_keys


class CreateReference(ReferenceChange):
    """Create a branch or a tag on the snapshot that it names or on the current one.

    This includes the main branch of a table without rows, if its entry has limits.

    :param time: the time of the snapshot that it names, as text after its id.
    """

    kind: ClassVar[str] = "create_reference"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"refs"})
    symbol: ClassVar[str] = "+"

    ref: Ref
    time: str = ""

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The references that are new, in alphabetical order."""
        if pair.both is None:
            return
        before, after = pair.both
        for name in sorted(differing_keys(before.refs, after.refs)):
            if name in before.refs:
                continue
            if name != MAIN or after.refs[name].is_limited:
                ref, log = after.refs[name], before.snapshot_log
                yield cls(before.name, name, ref, "" if log is None else log.time_text(ref.snapshot_id))

    @property
    def ref_kind(self) -> str:
        return self.ref.kind

    def apply(self, table: Table) -> Table:
        """The table with the reference; that of a table without a snapshot gets an empty one of its own."""
        ref, heads = self.ref, dict(table.heads)
        if ref.snapshot_id == CURRENT_SNAPSHOT and table.snapshot is not None:
            ref = replace(ref, snapshot_id=table.snapshot.id)
        if ref.kind == "branch" and self.name != MAIN and ref.snapshot_id != CURRENT_SNAPSHOT:
            heads[self.name] = _head(ref.snapshot_id, table)
        return replace(table, refs={**table.refs, self.name: ref}, heads=heads)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``CREATE BRANCH`` or ``CREATE TAG``; or one metadata commit."""
        if is_on_empty_snapshot(self.ref, before):
            return (MetadataCommit(f"{self.describe()} (a table without a snapshot gets an empty one)"),)
        return (create_reference_sql(catalog, self.table, self.name, self.ref),)

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """References that cannot be created."""
        return reference_sql_problems(self.table, self.name, self.ref)

    def reversal(self, before: Table) -> Reversal:
        """Undoing drops it, unless rows would be lost."""
        if self.name == MAIN:
            return always_reversible("undoing removes its limits")
        if self.ref.kind == "branch":
            return Reversal(Reversibility.WHILE, "no rows are written to the branch")
        return always_reversible("undoing drops the tag")

    def describe(self) -> str:
        where = "" if self.ref.snapshot_id == CURRENT_SNAPSHOT else snapshot_text(self.ref.snapshot_id)
        at = f" at {where}{self.time}" if where else ""
        return f"create {self.ref.kind} {self.name}{at}{limits_text(self.ref)}"


def _head(snapshot_id: int, table: Table) -> BranchHead:
    """The head of a new branch on a snapshot: until it is written to, its files have no later fields."""
    if table.snapshot is not None and table.snapshot.id == snapshot_id:
        return BranchHead(table.snapshot, table.schema, is_behind=True)
    return BranchHead(Snapshot(snapshot_id, 0))
