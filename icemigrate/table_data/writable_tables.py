"""Which tables the commands of ``table``, ``generate --insert``, ``ingest`` and the Python API may write.

Rows of every table may change, except in those that only icemigrate writes: histories, and tables in the
trash.  A history is valid only as icemigrate wrote it, and a snapshot of another client invalidates it.

Snapshots belong to the project that owns a table, because its history knows which ones a rollback needs.
"""

from __future__ import annotations

from icemigrate.errors import UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import TRASH_NAMESPACE, recorded_owner
from icemigrate.iceberg.table_properties import is_history
from icemigrate.planning.planning_context import ReservedNames
from icemigrate.project.reserved_tables import reserved_names
from icemigrate.table_data.table_session import CurrentTable, TableSession


def load_for_rows(tables: TableSession, name: str) -> CurrentTable:
    """The current table of a name, whose rows may change.

    :param name: as migration files write it.
    :raises UsageError: there is no such table, or only icemigrate writes it.
    """
    table = tables.load(name)
    reason = reason_against_rows(reserved_of(tables.environment), table)
    if reason is not None:
        raise UsageError(f"table `{name}` {reason}: only icemigrate writes it", "choose another table")
    return table


def load_for_snapshots(tables: TableSession, name: str) -> CurrentTable:
    """The current table of a name, whose snapshots may expire, and whose main branch may be set back.

    :param name: as migration files write it.
    :raises UsageError: there is no such table, only icemigrate writes it, or another project owns it.
    """
    table = load_for_rows(tables, name)
    require_owner(name, recorded_owner(table.metadata["properties"]), tables.project_name)
    return table


def require_owner(table: str, owner: str | None, project: str | None) -> None:
    """Refuse a table that another project owns.

    :param project: that makes the change; ``None`` for a catalog that is open without a project.
    :raises UsageError: another one owns it.
    """
    if owner in (None, project):
        return
    where = "the catalog is open without a project" if project is None else f"this is project `{project}`"
    raise UsageError(
        f"table `{table}` belongs to project `{owner}`, and {where}",
        f"run it in project `{owner}`, whose history knows what a rollback needs",
    )


def require_free_name(environment: EnvironmentSession, declared: TableName) -> None:
    """Refuse the name of a new table that only icemigrate may use.

    :raises UsageError: it is the name of the history, or one in the trash.
    """
    reason = _reserved_reason(reserved_of(environment), declared, environment.names.table(declared))
    if reason is not None:
        raise UsageError(f"`{declared}` {reason}", "choose another name")


def reserved_of(environment: EnvironmentSession) -> ReservedNames:
    """The names of an environment that only icemigrate may use."""
    return reserved_names(environment.project, (environment.environment,))


def reason_against_rows(reserved: ReservedNames, table: CurrentTable) -> str | None:
    """Why only icemigrate writes a table, as a predicate that follows its name; ``None`` for other tables."""
    if is_history(table.stored.json.get("properties") or {}):
        return "holds a project's history"
    return _reserved_reason(reserved, table.declared, table.name)


def _reserved_reason(reserved: ReservedNames, declared: TableName, name: TableName) -> str | None:
    """The reason against a declared name, or against the name that it has in the catalog."""
    if name.namespace[:1] == (TRASH_NAMESPACE,):
        declared = name
    return reserved.reason(declared)
