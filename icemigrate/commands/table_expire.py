"""``table expire``: removes old snapshots of a table, and the files that only they need."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.snapshot_results import ExpireResult
from icemigrate.table_data.snapshot_expiry import expire_snapshots, plan_expiry
from icemigrate.table_data.table_session import open_tables
from icemigrate.table_data.writable_tables import load_for_snapshots


def plan_table_expire(
    project: Project, environment: str | None, table: str, older_than_days: float
) -> ExpireResult:
    """The snapshots that would expire; changes nothing.

    :raises UsageError: there is no such environment or table.
    :raises IcemigrateError: files of the table may not be deleted, or cannot be found.
    """
    with open_tables(project, environment) as tables:
        return plan_expiry(tables, load_for_snapshots(tables, table), older_than_days)


def table_expire(
    project: Project, environment: str | None, older_than_days: float, plan: ExpireResult
) -> ExpireResult:
    """Carry out the result of :func:`plan_table_expire`, for the time of it.

    :raises IcemigrateError: more would expire than was shown, or another writer commits first; nothing was
        changed.
    """
    from datetime import timedelta

    at = plan.older_than + timedelta(days=older_than_days)
    with open_tables(project, environment) as tables:
        return expire_snapshots(tables, plan.table, older_than_days, at=at, shown=plan)
