"""The undo of a table whose rows a migration changed; no migration file says so yet, only its record."""

from __future__ import annotations

from icemigrate.model.evidence import Evidence
from icemigrate.model.undo_record import TableUndo
from icemigrate.undo.altered import Altered, undo_altered
from icemigrate.undo.values import Options
from tests.undoing import Lake


def plan_of(lake: Lake, undo: TableUndo, evidence: Evidence, options: Options) -> Altered:
    """What undoing it does to the table as it is now."""
    there = lake.table()
    return undo_altered(undo, there, there.name, "market", "0002", "local", evidence, options)
