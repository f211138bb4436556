"""The tables of pending plans, followed back to what they are called in the catalog now."""

from __future__ import annotations

from dataclasses import dataclass, field

from icemigrate.changes.rename_table import RenameTable
from icemigrate.model.names import TableName
from icemigrate.plan import TablePlan


@dataclass(slots=True)
class Followed:
    """Names over the plans of one run, asked in running order."""

    _names: dict[TableName, TableName] = field(default_factory=dict)

    def now(self, table: TablePlan) -> TableName:
        """What a plan's table is called in the catalog before any of the plans is carried out."""
        now = self._names.pop(table.name, table.name)
        renamed = next((c.change for c in table.changes() if isinstance(c.change, RenameTable)), None)
        self._names[table.name if renamed is None else renamed.new] = now
        return now
