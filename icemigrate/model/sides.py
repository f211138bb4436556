"""The declared state between two migrations, and what a migration wants of it."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.frozen import Frozen, field, replace
from icemigrate.model.data_step import DataStep
from icemigrate.model.names import TableName
from icemigrate.model.table import Table


class Position(Frozen):
    """An asserted position: the field stands right behind ``after``, or first where that is ``None``.

    Both are field ids of siblings.  Positions that nobody asserted are left as they are.
    """

    field_id: int
    after: int | None


class State(Frozen):
    """All tables as declared at one version, with field ids; only what files have declared.

    The base of a plan (read from the history) and the result of every fold are of this type.

    :param tables: by declared name.
    :param namespaces: namespaces that files have declared or that declared tables stand in.
    :param former: names that tables once had (dropped or renamed away); a new table under one of
        them gets a location of its own.
    """

    tables: Mapping[TableName, Table] = field(default_factory=dict)
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    former: frozenset[TableName] = frozenset()

    def after(self, name: TableName, formerly: TableName | None, table: Table | None) -> State:
        """The state after a migration of one table.

        :param name: the table's declared name after the migration (before it, where it is dropped).
        :param formerly: its name before; ``None`` where the migration is its first mention.
        :param table: the table as declared now; ``None`` where it is gone.
        """
        tables, former = dict(self.tables), self.former
        if formerly is not None:
            tables.pop(formerly, None)
            if table is None or formerly != name:
                former |= {formerly}
        if table is not None:
            tables[name] = table
        return replace(self, tables=tables, former=former)


EMPTY_STATE = State()


class Wanted(Frozen):
    """What one migration makes of one table.

    :param name: the table's declared name after the migration (before it, where it is dropped).
    :param table: the table as it shall be, or ``None`` where it shall be gone.  Fields and partition
        fields that are new have negative ids; every other id is the one in the state before.
    :param formerly: the table's name in the state before; ``None`` where the migration is its first mention.
    :param positions: positions that the migration asserts, in the order of the file.
    :param adopt: a table that exists and is not known yet is taken in rather than refused.
    :param unsaid: of a table's first mention, the keys that the file does not write, of those which a table
        always has a value for (``identifier``, ``partition_by``, …): a table that is adopted keeps its own.
    :param refilled: fields that come back, and whose values are brought back to rows that lost them.
    :param made: the table as this very version had made it before it was rolled back; ``None`` where it
        was not, or did not make it.
    :param data: what it does to the rows, in running order.
    """

    name: TableName
    table: Table | None
    formerly: TableName | None
    positions: tuple[Position, ...] = ()
    adopt: bool = False
    unsaid: frozenset[str] = frozenset()
    made: Table | None = None
    data: tuple[DataStep, ...] = ()
    refilled: frozenset[int] = frozenset()
