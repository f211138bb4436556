"""The undo of a table whose rows a migration changed; no migration file says so yet, only its record."""

from __future__ import annotations

from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.undo.altered_table import AlteredTableUndo, plan_altered_undo
from icemigrate.planning.undo.undo_inputs import UndoOptions
from tests.support.memory_lake import Lake


def plan_of(lake: Lake, undo: TableUndo, evidence: Evidence, options: UndoOptions) -> AlteredTableUndo:
    """What undoing it does to the table as it is now."""
    there = lake.table()
    return plan_altered_undo(undo, there, there.name, "market", "0002", "local", evidence, options)
