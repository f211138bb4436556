"""Removal of a table, into the trash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    Hazard,
    HazardKind,
    Reversal,
    Reversibility,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.statement_shapes import alter_table
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.identifiers import namespace_sql, path_sql


class DropTable(Change):
    """Rename a table into the trash namespace, which ``maintain`` empties later.

    ``DROP TABLE`` is never used: on some catalogs it deletes the metadata and could not be undone.
    The planner creates this change, not :meth:`detect`.

    :param trash: the table's name in the trash.
    """

    kind: ClassVar[str] = "drop_table"
    compares: ClassVar[frozenset[TablePart]] = frozenset()
    phase: ClassVar[ChangePhase] = ChangePhase.REMOVE_TABLE
    symbol: ClassVar[str] = "-"

    trash: TableName

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        return ("drop",)

    def apply(self, table: Table) -> Table:
        """The table under its name in the trash."""
        return replace(table, name=self.trash)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``CREATE NAMESPACE`` for the trash and ``RENAME`` into it."""
        name = path_sql((*self.trash.namespace, self.trash.name))
        return (
            SqlStatement(f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(catalog, self.trash.namespace)}"),
            alter_table(catalog, self.table, f"RENAME TO {name}"),
        )

    def hazards(self, before: Table) -> tuple[Hazard, ...]:
        reason = "the table can no longer be read under its name, and is lost when the trash is emptied"
        return (Hazard(HazardKind.DESTRUCTIVE, reason, self.scope()),)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (WriterImpact(WriterKind.ALL, f"writes `{self.table}`, which this migration drops"),)

    def reversal(self, before: Table) -> Reversal:
        """Undoing renames it back while it is in the trash."""
        return Reversal(Reversibility.WHILE, f"the trash contains the table as {self.trash}")

    def describe(self) -> str:
        return f"drop table (into the trash, as {self.trash})"
