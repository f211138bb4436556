"""Removal of a partition field."""

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
    lacking_fields,
    partition_field_named,
    spec_difference,
)
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.iceberg.partition_evolution import drop_partition_field
from icemigrate.iceberg.table import Table


class DropPartitionField(Change):
    """Drop a partition field; existing files keep their partitioning.

    It runs before columns are dropped: a column that the current spec uses cannot be dropped.

    :param name: the partition field's name.
    """

    kind: ClassVar[str] = "drop_partition_field"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"spec"})
    phase: ClassVar[ChangePhase] = ChangePhase.FREE_PARTITIONS
    symbol: ClassVar[str] = "-"

    name: str

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """The dropped fields that no other field replaces."""
        for field in spec_difference(pair).dropped:
            assert pair.before is not None
            yield cls(pair.before.name, field.name)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("partition_by",)

    def lacks(self, table: Table) -> Iterator[str]:
        return lacking_fields(table, (self.name,))

    def apply(self, table: Table) -> Table:
        """The table without the field in its spec."""
        return drop_partition_field(table, self.name)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``DROP PARTITION FIELD``."""
        field = existing_field_sql(before, partition_field_named(before, self.name))
        return (alter_table(catalog, self.table, f"DROP PARTITION FIELD {field}"),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (STALE_PARTITIONING_IMPACT,)

    def reversal(self, before: Table) -> Reversal:
        return always_reversible(
            "undoing restores the earlier partitioning; files written until then are not changed"
        )

    def describe(self) -> str:
        return f"stop partitioning by {self.name}"
