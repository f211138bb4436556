"""Which tables of a plan get back a column whose partition values Iceberg lost while the column was dropped.

The commit that restores the column writes manifests again, which only Spark's engine does; see
:mod:`icemigrate.spark.partition_restore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.errors import ConflictError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import MigrationPlan, Plan


def lost_partition_values(catalog: Catalog, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The tables whose partition values are restored, each as a phrase, by the version of the migration.

    :raises CatalogError: the metadata of such a table cannot be read.
    """
    if not any(isinstance(c.change, RestoreColumn) for m in plan.migrations for c in m.changes()):
        return {}
    tables, found = dict(plan.based_on), dict[str, tuple[str, ...]]()
    for migration in plan.migrations:
        pairs = list[tuple[Table, Table]]()
        for before, after in _changed(migration, tables):
            tables[after.name] = after
            pairs.append((before, after))
        parts = tuple(_phrase(after) for before, after in pairs if _has_lost_values(catalog, before, after))
        if parts:
            found[migration.version] = parts
    return found


def _changed(
    migration: MigrationPlan, tables: dict[TableName, Table | None]
) -> Iterator[tuple[Table, Table]]:
    """The tables that exist before a migration, and as it leaves them."""
    from icemigrate.execution.opened_tables import expected_table

    for table in migration.tables:
        before = tables.get(table.first_name)
        if before is None:
            continue
        with suppress(ConflictError):  # the plan has a conflict, and does not run
            after = expected_table(table, before)
            if after is not None:
                yield before, after


def _has_lost_values(catalog: Catalog, before: Table, after: Table) -> bool:
    from icemigrate.spark.partition_entries import lossy_partition_fields
    from icemigrate.spark.partition_restore import returning_columns

    columns = returning_columns(before, after)
    if not columns:
        return False
    json = catalog.metadata_json(before.name)
    return bool(json and _has_rows(json) and lossy_partition_fields(json, columns))


def _has_rows(json: Mapping[str, Any]) -> bool:
    """Whether the main branch has a snapshot."""
    return json.get("current-snapshot-id") not in (None, -1)


def _phrase(after: Table) -> str:
    return f"`{after.name}`: restore the partition values of a column"
