"""A partition field takes another name."""

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
from icemigrate.changes.partition_terms import existing_field_sql, named, source_path, spec_difference
from icemigrate.changes.statements import alter_table, reversible
from icemigrate.model.partitioning import PartitionField
from icemigrate.model.spec_update import rename_partition_field
from icemigrate.model.table import Table
from icemigrate.sql.names import quote
from icemigrate.sql.terms import transform_sql


class RenamePartitionField(Change):
    """A partition field keeps its id, source and transform under another name.

    The old name is not free for a column afterwards: Iceberg keeps the earlier spec.

    :param old: the name it has.
    :param new: the name it takes.
    """

    kind: ClassVar[str] = "rename_partition_field"
    phase: ClassVar[Phase] = Phase.PARTITION
    symbol: ClassVar[str] = "→"

    old: str
    new: str

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Fields of one source and transform that are named differently."""
        for old, new in _in_order({o.name: n.name for o, n in spec_difference(pair).renamed}, pair):
            assert pair.before is not None
            yield cls(pair.before.name, old, new)

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return ("partition_by",)

    def apply(self, table: Table) -> Table:
        """The table under the spec with the new name."""
        return rename_partition_field(table, self.old, self.new)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A replacement by the same term: Iceberg makes a rename of it, and the field keeps its id."""
        field: PartitionField = named(before, self.old)
        term = transform_sql(field.transform, source_path(before, field))
        old = existing_field_sql(before, field)
        action = f"REPLACE PARTITION FIELD {old} WITH {term} AS {quote(self.new)}"
        return (alter_table(catalog, self.table, action),)

    def harms(self) -> tuple[Harm, ...]:
        return (OTHER_PARTITIONING,)

    def reversal(self, before: Table) -> Reversal:
        """It is renamed back."""
        return reversible("undoing renames it back")

    def describe(self) -> str:
        """Both names."""
        return f"rename partition field {self.old} to {self.new}"


def _in_order(renames: dict[str, str], pair: Pair) -> Iterator[tuple[str, str]]:
    """The renames in an order in which every new name is free; a circle goes over a third name."""
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


def _unused(name: str, pair: Pair) -> str:
    tables = [t for t in (pair.before, pair.after) if t is not None]
    used = {f.name for t in tables for s in (t.spec, *t.older_specs) for f in s.fields}
    while name in used:
        name += "_"
    return name
