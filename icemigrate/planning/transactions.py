"""Which migrations one transaction of the catalog can hold: changes of the metadata of tables that exist."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import ChangePhase
from icemigrate.changes.create_table import CreateTable
from icemigrate.data_steps.data_step_kind import DataStepStage
from icemigrate.frozen import Frozen
from icemigrate.planning.plan import Direction, MigrationPlan, TablePlan

NOT_IN_A_COMMIT = (
    ChangePhase.TABLE,
    ChangePhase.FREE_VIEWS,
    ChangePhase.ROWS,
    ChangePhase.VIEWS,
    ChangePhase.REMOVE_TABLE,
)
"""Phases that no commit of a table's metadata makes: a catalog creates, renames and drops tables and views,
and no metadata commit writes rows.
"""


class TableByTable(Frozen):
    """A migration whose tables are committed one after the other, so that readers can see a part of it.

    :param reason: why no transaction holds all of them, as a clause.
    """

    version: str
    reason: str


def transaction_obstacle(migration: MigrationPlan) -> str | None:
    """The first part of a migration that no transaction can hold, as a clause; ``None`` without one."""
    is_undo = migration.direction is not Direction.APPLY
    return next((part for table in migration.tables for part in _obstacles(table, is_undo)), None)


def is_seen_partly(migration: MigrationPlan) -> bool:
    """Whether a reader may see a part of a migration while its tables are committed one after the other.

    No reader knows a table that the migration creates.
    """
    changed = [table for table in migration.tables if table.all_steps or table.rows]
    return len(changed) > 1 and not all(map(_is_created, changed))


def _is_created(table: TablePlan) -> bool:
    return any(isinstance(planned.change, CreateTable) for planned in table.changes())


def _obstacles(table: TablePlan, is_undo: bool) -> Iterator[str]:
    if is_undo and len(table.steps) > 1:
        # The planner splits an undo only where Iceberg's library refuses the whole of it as one commit.
        yield f"`{table.declared}` needs {len(table.steps)} commits"
    for planned in table.rows:
        if planned.work.stage is not DataStepStage.BEFORE:
            yield f"it changes rows of `{table.declared}`"
    for planned_change in table.changes():
        change = planned_change.change
        if change.phase in NOT_IN_A_COMMIT:
            yield f"`{table.declared}`: {change.describe()}"
