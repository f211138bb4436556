"""Rename of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Reversal,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table
from icemigrate.spark_sql.identifiers import path_sql


class RenameTable(Change):
    """Rename a table, perhaps into another namespace of the catalog, without moving its files.

    The planner creates it, not :meth:`detect`: two states of a table match by identity, not by name.

    :param new: the new name.
    :param formerly: the table's name before the migration, if another one was needed in between.
    :param makes_way: whether it renames another table than the plan's, which gives up the plan's new name.
    """

    kind: ClassVar[str] = "rename_table"
    compares: ClassVar[frozenset[TablePart]] = frozenset()
    phase: ClassVar[ChangePhase] = ChangePhase.TABLE
    symbol: ClassVar[str] = "→"

    new: TableName
    formerly: TableName | None = None
    makes_way: bool = False

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        return ("renamed_from",)

    def apply(self, table: Table) -> Table:
        """The table under its new name; another table than the renamed one stays as it is."""
        return table if self.makes_way else replace(table, name=self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """One ``RENAME``; Spark expects the new name without the catalog."""
        new = path_sql((*self.new.namespace, self.new.name))
        return (alter_table(catalog, self.table, f"RENAME TO {new}"),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        if self.makes_way or self.table.namespace == (TRASH_NAMESPACE,):
            return ()  # shown with its own rename; no client writes a table in the trash
        old = self.formerly or self.table
        return (
            WriterImpact(WriterKind.ALL, f"writes `{old}`, which this migration renames to `{self.new}`"),
        )

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("undoing renames it back")

    def describe(self) -> str:
        if self.makes_way:
            return f"rename table {self.table} to {self.new} until its new name is free"
        return f"rename table to {self.new}"
