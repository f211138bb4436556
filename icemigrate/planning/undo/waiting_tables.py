"""Tables of one migration that exchange their names: one waits under another name until its own is free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import TablePlan
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.undo.inverse import is_renamed_by_migration
from icemigrate.planning.undo.undo_inputs import recorded_uuid


@dataclass(slots=True)
class WaitingTables:
    """The tables that wait while an undo is planned.

    :ivar names: their names in the catalog while they wait, with those before.
    :ivar declared: the same for their declared names.
    """

    names: dict[TableName, TableName] = field(default_factory=dict)
    declared: dict[TableName, TableName] = field(default_factory=dict)

    def with_first_names(self, plan: TablePlan) -> TablePlan:
        """The plan with the names that its table has before the undo."""
        formerly = None if plan.formerly is None else self.declared.get(plan.formerly, plan.formerly)
        if plan.name not in self.names:
            return replace(plan, formerly=formerly)
        return replace(plan, name=self.names[plan.name], temporary_name=plan.name, formerly=formerly)

    def keep_declared(
        self, state: DeclaredState, plan: TablePlan, aside: Callable[[TableName], TableName]
    ) -> DeclaredState:
        """The state with the declared table whose name another one gets back, until it is undone itself."""
        other = state.tables.get(plan.declared)
        if other is None or plan.wanted is None or plan.formerly == plan.declared:
            return state
        self.declared[aside(plan.declared)] = plan.declared
        return state.after(aside(plan.declared), plan.declared, other)

    def move_aside(
        self,
        actual: dict[TableName, Table | None],
        name: TableName,
        record: UndoRecord,
        aside: Callable[[TableName], TableName],
    ) -> tuple[DetectedChange, ...]:
        """The change that moves a table out of the way, if the same undo renames the table later."""
        other = actual.get(name)
        if other is None or not _is_renamed_by(record.tables, other) or actual.get(aside(name)) is not None:
            return ()
        self.names[aside(name)] = name
        actual |= {name: None, aside(name): replace(other, name=aside(name))}
        return (DetectedChange(RenameTable(name, aside(name), makes_way=True), other),)


def in_undo_order(
    tables: Sequence[TableUndo],
    actual: Mapping[TableName, Table | None],
    aside: Callable[[TableName], TableName],
) -> Iterator[TableUndo]:
    """Tables in the order of their undo: the last change first, since it may use a name that one freed.

    A run that ended in the middle of an exchange of names leaves one table under its temporary name, so that
    no other table can move there: then the table that has the name is undone first.

    :param actual: the catalog as the undo of the tables so far leaves it.
    """
    pending = list(reversed(tables))

    def is_blocked(table: TableUndo) -> bool:
        before = table.actual_before
        other = None if before is None else actual.get(before.name)
        if before is None or other is None or not is_renamed_by_migration(table):
            return False
        others = [one for one in pending if one is not table]
        return actual.get(aside(before.name)) is not None and _is_renamed_by(others, other)

    while pending:
        yield pending.pop(next((n for n, table in enumerate(pending) if not is_blocked(table)), 0))


def _is_renamed_by(tables: Iterable[TableUndo], found: Table) -> bool:
    """Whether a table of the catalog is one of these, and the migration renamed it."""
    return found.uuid is not None and any(
        recorded_uuid(table) == found.uuid and is_renamed_by_migration(table) for table in tables
    )
