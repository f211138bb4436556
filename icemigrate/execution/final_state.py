"""The declared state after a migration, which its record stores."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredChange, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import rebind_by_path, with_catalog_ids
from icemigrate.planning.plan import Direction, MigrationPlan


def final_declared_state(
    migration: MigrationPlan,
    state: DeclaredState,
    tables_after: Mapping[TableName, Table | None],
    committed: Mapping[TableName, Schema],
) -> DeclaredState:
    """The declared state after a migration, with the ids that the catalog assigned.

    :param state: before the migration.
    :param tables_after: as in :class:`~icemigrate.execution.migration_run.MigrationRun`; so is the next one.
    """
    changes = list[DeclaredChange]()
    for table in migration.tables:
        wanted, base = table.wanted, state.tables.get(table.formerly) if table.formerly else None
        # Undoing a baseline changes no table: another one may have the name of one that it recorded as gone.
        if wanted is not None and not migration.baseline:
            after, schema = tables_after[table.declared], committed.get(table.declared)
            if after is not None and schema is not None:
                # Another client may have used a name of these fields for a field of its own.
                gone = [] if base is None else [i for i, _ in schema_index(base.schema).new()]
                wanted = rebind_by_path(wanted, replace(after, schema=schema), kept=gone)
            wanted = with_catalog_ids(wanted, after, base)
        changes.append((table.declared, table.formerly, wanted))
    state = state.after_all(changes)
    now = migration.namespaces
    is_undo = migration.direction is Direction.ROLLBACK
    return replace(state, namespaces=now if is_undo else state.namespaces | now)
