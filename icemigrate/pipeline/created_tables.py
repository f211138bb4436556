"""Tables that are created for the tenants of a batch, and what becomes of the entries that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from icemigrate.frozen import Frozen, field, replace
from icemigrate.pipeline.batch_commit import TableBatch


class CreatedTables(Frozen):
    """What became of the missing tables of a batch.

    :param names: declared names of the new tables, also of kinds without an entry.
    :param reasons: why a table is missing still, by its declared name.
    """

    names: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def with_reasons(self, tables: Iterable[TableBatch]) -> tuple[TableBatch, ...]:
        """The tables of the batch, each missing one with the reason why it cannot be created."""
        return tuple(
            replace(table, problem=f"{table.problem}, and it cannot be created: {self.reasons[table.table]}")
            if table.problem is not None and table.table in self.reasons
            else table
            for table in tables
        )

    def waited_for(self, tables: Iterable[TableBatch]) -> tuple[TableBatch, ...]:
        """The tables of the batch that are there now, so that their entries can be tried again."""
        return tuple(table for table in tables if table.problem is not None and table.table in self.names)


CreateTables: TypeAlias = Callable[[Sequence[TableBatch]], CreatedTables]
"""Creates the missing ones of the tables that took no entries."""


def without_paused(
    tables: Iterable[TableBatch], paused: Container[tuple[str | None, str | None]]
) -> tuple[TableBatch, ...]:
    """The tables that were tried: the others are looked for when their pauses end.

    :param paused: tenants and kinds.
    """
    return tuple(table for table in tables if (table.tenant, table.kind) not in paused)


def create_none(_failed: Sequence[TableBatch]) -> CreatedTables:
    """Leave missing tables missing."""
    return CreatedTables()
