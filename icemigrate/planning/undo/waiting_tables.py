"""Tables of one migration that exchange their names: one waits under another name until its own is free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.diff import DetectedChange
from icemigrate.planning.plan import TablePlan
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
        if other is None:
            return ()
        waits = any(
            other.uuid is not None and recorded_uuid(table) == other.uuid and is_renamed_by_migration(table)
            for table in record.tables
        )
        if not waits or actual.get(aside(name)) is not None:
            return ()
        self.names[aside(name)] = name
        actual |= {name: None, aside(name): replace(other, name=aside(name))}
        return (DetectedChange(RenameTable(name, aside(name), makes_way=True), other),)
