"""The tables of pending plans, followed back to what they are called in the catalog now."""

from __future__ import annotations

from dataclasses import dataclass, field

from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.model.names import TableName
from icemigrate.plan import TablePlan


@dataclass(slots=True)
class Followed:
    """Names over the plans of one run, asked in running order."""

    _names: dict[TableName, TableName | None] = field(default_factory=dict)

    def now(self, plan: TablePlan) -> TableName | None:
        """What a plan's table is called in the catalog before any of the plans is carried out.

        ``None`` where none of the tables there becomes it: one of the plans makes it, maybe under a name that
        another one has given free.
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
