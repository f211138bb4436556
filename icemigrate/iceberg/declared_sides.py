"""The declared state between two migrations, and the target of a migration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, TypeAlias

from icemigrate.frozen import AbstractFrozen, Frozen, field, replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table


class DataStep(AbstractFrozen):
    """One data step of a migration file, which no difference of metadata shows.

    Its kinds and their interface are in :mod:`icemigrate.data_steps`.
    """

    kind: ClassVar[str]
    """Permanent name of the kind in plan files."""


class FieldPosition(Frozen):
    """An asserted position: the field comes directly after ``after``, or first where that is ``None``.

    Both are field ids of siblings.  Other fields keep their positions.
    """

    field_id: int
    after: int | None


class DeclaredState(Frozen):
    """All declared tables at one version, with field ids and only declared facts.

    The recorded state (from the history) and the result of every replay are of this type.

    :param tables: by declared name.
    :param namespaces: declared namespaces, and those of declared tables.
    :param former: earlier names of tables (dropped or renamed); a new table under one of them gets a location
        of its own.
    """

    tables: Mapping[TableName, Table] = field(default_factory=dict)
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    former: frozenset[TableName] = frozenset()

    def after(self, name: TableName, formerly: TableName | None, table: Table | None) -> DeclaredState:
        """The state after a migration of one table.

        :param name: the table's declared name after the migration (before it, where it is dropped).
        :param formerly: its name before; ``None`` where the migration is its first mention.
        :param table: the declared table; ``None`` where it is dropped.
        """
        return self.after_all([(name, formerly, table)])

    def after_all(self, changes: Iterable[DeclaredChange]) -> DeclaredState:
        """The state after the changes of one migration, whose tables may exchange their names."""
        tables, changes = dict(self.tables), tuple(changes)
        return replace(self, tables=tables, former=self.former | put_declared_tables(tables, changes))


DeclaredChange: TypeAlias = "tuple[TableName, TableName | None, Table | None]"
"""The arguments of :meth:`DeclaredState.after`."""


def put_declared_tables(
    tables: dict[TableName, Table], changes: Collection[DeclaredChange]
) -> frozenset[TableName]:
    """Apply the changes of one migration to a dictionary; returns the names that become free.

    All names are freed before one is taken.
    """
    for _, formerly, _ in changes:
        if formerly is not None:
            tables.pop(formerly, None)
    tables |= {name: table for name, _, table in changes if table is not None}
    return frozenset(
        formerly
        for name, formerly, table in changes
        if formerly is not None and (table is None or formerly != name)
    )


EMPTY_STATE = DeclaredState()


class TableTarget(Frozen):
    """The result of one migration for one table.

    :param name: the table's declared name after the migration (before it, where it is dropped).
    :param table: the target table, or ``None`` where it is dropped.  New fields and partition fields have
        negative ids; every other id is the one in the state before.
    :param formerly: the table's name in the state before; ``None`` where the migration is its first mention.
    :param positions: positions that the migration asserts, in the order of the file.
    :param adopt: whether an existing, unknown table is adopted rather than refused.
    :param unsaid: at a first mention, the keys that the file omits, of those for which a table always has a
        value (``identifier``, ``partition_by``, …): an adopted table keeps its own.
    :param refilled: restored fields whose values are written back to rows that lost them.
    :param made: the table as this version had created it before its rollback; ``None`` where it was not
        rolled back, or did not create the table.
    :param data: its data steps, in running order.
    :param time_zone: the zone in which its data steps run, as the file sets it.
    :param waits: whether it exchanges names with other tables, and gets its new name last of them.
    """

    name: TableName
    table: Table | None
    formerly: TableName | None
    positions: tuple[FieldPosition, ...] = ()
    adopt: bool = False
    unsaid: frozenset[str] = frozenset()
    made: Table | None = None
    data: tuple[DataStep, ...] = ()
    refilled: frozenset[int] = frozenset()
    time_zone: str | None = None
    waits: bool = False
