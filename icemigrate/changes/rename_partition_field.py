"""Rename of a partition field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    STALE_PARTITIONING_IMPACT,
    Change,
    ChangePhase,
    Reversal,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.partition_terms import (
    existing_field_sql,
    partition_field_named,
    source_path,
    spec_difference,
)
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.iceberg.partition_evolution import rename_partition_field
from icemigrate.iceberg.partitioning import PartitionField
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.expressions import transform_sql
from icemigrate.spark_sql.identifiers import quote


class RenamePartitionField(Change):
    """Rename a partition field, which keeps its id, source and transform.

    No column can have the old name afterwards: Iceberg keeps the earlier spec.
    """

    kind: ClassVar[str] = "rename_partition_field"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"spec"})
    phase: ClassVar[ChangePhase] = ChangePhase.PARTITION
    symbol: ClassVar[str] = "→"

    old: str
    new: str

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Fields with the same source and transform and a different name."""
        for old, new in _in_order({o.name: n.name for o, n in spec_difference(pair).renamed}, pair):
            assert pair.before is not None
            yield cls(pair.before.name, old, new)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("partition_by",)

    def apply(self, table: Table) -> Table:
        """The table with the new name in its spec."""
        return rename_partition_field(table, self.old, self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``REPLACE`` with the same term, which Iceberg treats as a rename that keeps the field's id."""
        field: PartitionField = partition_field_named(before, self.old)
        term = transform_sql(field.transform, source_path(before, field))
        old = existing_field_sql(before, field)
        action = f"REPLACE PARTITION FIELD {old} WITH {term} AS {quote(self.new)}"
        return (alter_table(catalog, self.table, action),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (STALE_PARTITIONING_IMPACT,)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing renames it back")

    def describe(self) -> str:
        return f"rename partition field {self.old} to {self.new}"


def _in_order(renames: dict[str, str], pair: TablePair) -> Iterator[tuple[str, str]]:
    """The renames in an order in which every new name is free; a cycle uses a temporary name."""
    todo = dict(renames)
    while todo:
        free = next((old for old, new in todo.items() if new not in todo), None)
        if free is not None:
            yield free, todo.pop(free)
            continue
        old, new = next(iter(todo.items()))
        passing = _unused(old, pair)
        yield old, passing
        del todo[old]
        todo[passing] = new


def _unused(name: str, pair: TablePair) -> str:
    tables = [t for t in (pair.before, pair.after) if t is not None]
    used = {f.name for t in tables for s in (t.spec, *t.older_specs) for f in s.fields}
    while name in used:
        name += "_"
    return name
