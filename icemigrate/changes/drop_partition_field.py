"""The table is no longer partitioned by a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import (
    OTHER_PARTITIONING,
    Change,
    Harm,
    Pair,
    Phase,
    Reversal,
    Statement,
    Subject,
)
from icemigrate.changes.partition_terms import existing_field_sql, named, spec_difference
from icemigrate.changes.statements import alter_table, reversible
from icemigrate.model.spec_update import drop_partition_field
from icemigrate.model.table import Table


class DropPartitionField(Change):
    """A partition field goes; files written under it stay as they are.

    It goes before any column does: a column that the current spec uses cannot be dropped.

    :param name: the partition field's name.
    """

    kind: ClassVar[str] = "drop_partition_field"
    phase: ClassVar[Phase] = Phase.FREE_PARTITIONS
    symbol: ClassVar[str] = "-"

    name: str

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """The fields that nothing replaces."""
        for field in spec_difference(pair).dropped:
            assert pair.before is not None
            yield cls(pair.before.name, field.name)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("partition_by",)

    def apply(self, table: Table) -> Table:
        """The table under the spec without it."""
        return drop_partition_field(table, self.name)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``DROP PARTITION FIELD``."""
        field = existing_field_sql(before, named(before, self.name))
        return (alter_table(catalog, self.table, f"DROP PARTITION FIELD {field}"),)

    def harms(self) -> tuple[Harm, ...]:
        return (OTHER_PARTITIONING,)

    def reversal(self, before: Table) -> Reversal:
        """The earlier spec is set again."""
        return reversible(
            "undoing sets the earlier partitioning again; files written meanwhile stay as they are"
        )

    def describe(self) -> str:
        """Which one."""
        return f"stop partitioning by {self.name}"
