"""Follows the tables of pending plans back to their current names in the catalog."""

from __future__ import annotations

from dataclasses import dataclass, field

from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import TablePlan


@dataclass(slots=True)
class RenameTracker:
    """Names of tables during the plans of one run, looked up in running order."""

    _names: dict[TableName, TableName | None] = field(default_factory=dict)

    def now(self, plan: TablePlan) -> TableName | None:
        """The current name in the catalog of a plan's table, before any of the plans runs.

        ``None`` where no current table becomes it: one of the plans creates it, maybe under a name that
        another one has freed.
        """
        later, now = plan.name, self._names.get(plan.name, plan.name)
        for change in (planned.change for planned in plan.changes()):
            if isinstance(change, CreateTable):
                now = None
            elif isinstance(change, (RenameTable, DropTable)):
                self._names[later] = None
                later = change.new if isinstance(change, RenameTable) else change.trash
        self._names[later] = now
        return now
