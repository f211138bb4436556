"""The snapshots that a migration's tags keep for its undo."""

from __future__ import annotations

from icemigrate.changes.change_reference import ChangeReference
from icemigrate.changes.drop_reference import DropReference
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import TablePlan


def released_snapshots(plan: TablePlan, before: Table | None) -> tuple[int, ...]:
    """The snapshots of the branches and tags that a plan moves or drops."""
    changes = (c.change for step in plan.all_steps for c in step.changes)
    names = (
        change.name
        for change in changes
        if isinstance(change, DropReference) or (isinstance(change, ChangeReference) and change.is_moving)
    )
    refs = {} if before is None else before.refs
    return tuple(dict.fromkeys(refs[name].snapshot_id for name in names if name in refs))
