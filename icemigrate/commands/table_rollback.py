"""``table rollback``: a rollback of one table to a snapshot."""

from __future__ import annotations

from icemigrate.errors import ConflictError
from icemigrate.project import Project
from icemigrate.results.snapshot_results import RollbackTableResult
from icemigrate.table_data.snapshot_rollback import plan_rollback_of_table, rollback_table
from icemigrate.table_data.table_session import open_tables
from icemigrate.table_data.writable_tables import load_for_snapshots


def plan_table_rollback(
    project: Project, environment: str | None, table: str, snapshot: str
) -> RollbackTableResult:
    """Where the main branch of a table is, and where it would go.

    :param snapshot: an id, a tag, a branch or a time.
    :raises UsageError: there is no such environment, table or snapshot, or main cannot go there.
    :raises CatalogError: the catalog cannot be read.
    """
    with open_tables(project, environment) as tables:
        return plan_rollback_of_table(load_for_snapshots(tables, table), snapshot)


def table_rollback(
    project: Project, environment: str | None, plan: RollbackTableResult
) -> RollbackTableResult:
    """Carry out the result of :func:`plan_table_rollback`.

    :raises ConflictError: another writer moved main since, or commits first; nothing was changed.
    """
    with open_tables(project, environment) as tables:
        current = plan_rollback_of_table(tables.load(plan.table), plan.after.snapshot_id)
        if current.before != plan.before:
            raise ConflictError(
                f"another client moved the main branch of table `{plan.table}` after the plan was shown",
                "run the command again",
            )
        return rollback_table(tables, plan.table, plan.after.snapshot_id)
