"""Facts for plans from the manifests of tables: old files, and values of restored columns.

Old files are those whose partitioning differs from the table's current or planned one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.changes.add_partition_field import AddPartitionField
from icemigrate.changes.drop_partition_field import DropPartitionField
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.data_steps.rewrite import Rewrite
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import describe_shares
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partition_evolution import (
    FilesBySpec,
    OldSpecFiles,
    has_one_partitioning,
    old_spec_files,
    was_repartitioned,
)
from icemigrate.planning.plan import Direction, MigrationPlan, Plan, TablePlan
from icemigrate.planning.rename_tracker import RenameTracker
from icemigrate.results.command_results import OldSpecTable, PlanResult

if TYPE_CHECKING:
    from icemigrate.catalog.catalog_port import Catalog
    from icemigrate.iceberg.names import TableName
    from icemigrate.iceberg.table import Table

_KINDS = frozenset({AddPartitionField.kind, DropPartitionField.kind})
"""Kinds of change that change the partitioning of new files; a new name does not."""


def with_old_partition_files(plan: Plan, catalog: Catalog) -> Plan:
    """The plan with the old files of its tables, and the number of rows with values of restored columns.

    These are tables that it repartitions or rewrites, and first mentions of tables that were repartitioned
    before. Manifest lists are read only for these tables.
    """
    walk = _OldFilesFinder(plan, catalog)
    return replace(plan, migrations=tuple(map(walk.migration, plan.migrations)))


def find_old_partition_files(table: Table, catalog: Catalog) -> OldSpecFiles | None:
    """The old files of a table; ``None`` where there are none, or where that is unknown.

    The catalog is read only where files can be old.
    """
    if table.snapshot is None or has_one_partitioning(table):
        return None
    layout = catalog.layout(table.name)
    share = None if layout is None else old_spec_files(layout, table, table.spec)
    return share if share is not None and share.files else None


MAX_INSPECTED_TABLES = 20
"""The number of unplanned tables whose old files are counted: each takes two or three requests."""


def with_unplanned_tables(
    result: PlanResult, catalog: Catalog, physical: Callable[[TableName], TableName]
) -> PlanResult:
    """The result with the old files of unplanned tables that were repartitioned before, according to the
    history.

    The catalog is read only for these.

    :param physical: a declared table name → the name in the catalog.
    """
    plan = result.plan
    spoken_of = {n for m in plan.migrations for t in m.tables for n in (t.declared, t.formerly)}
    others = (n for n, table in plan.base.tables.items() if n not in spoken_of and was_repartitioned(table))
    names = {physical(name): name for name in sorted(others)}
    asked = [*names][:MAX_INSPECTED_TABLES]
    found = catalog.load(asked) if asked else {}
    shares = (
        (n, find_old_partition_files(table, catalog)) for n, table in found.items() if table is not None
    )
    tables = (OldSpecTable(str(names[n]), str(n), share) for n, share in shares if share is not None)
    return replace(result, old_partition_tables=tuple(tables), uncounted_tables=len(names) - len(asked))


@dataclass(slots=True)
class _OldFilesFinder:
    """A plan's tables, each followed back to its name in the catalog as it is now."""

    plan: Plan
    catalog: Catalog
    followed: RenameTracker = field(default_factory=RenameTracker)
    layouts: dict[TableName, FilesBySpec | None] = field(default_factory=dict)

    def migration(self, migration: MigrationPlan) -> MigrationPlan:
        return replace(migration, tables=tuple(map(self._table, migration.tables)))

    def _table(self, table: TablePlan) -> TablePlan:
        now = self.followed.now(table)
        there = None if now is None else self.plan.based_on.get(now)
        wanted = table.wanted
        if now is None or there is None or there.snapshot is None or wanted is None:
            return table
        if self.plan.direction is Direction.APPLY:
            # An undo has searched for values already, also in older versions.
            table = replace(table, notes=(*table.notes, *self._values_back(table, wanted, there)))
        is_told = now in self.layouts or has_one_partitioning(there)
        if is_told and not _repartitions(table):
            return table
        if now not in self.layouts:
            self.layouts[now] = self.catalog.layout(now)
        layout = self.layouts[now]
        if layout is None:
            return table
        share = old_spec_files(layout, there, wanted.spec)
        return replace(table, old_files=share) if share.files or _rewrites(table) else table

    def _values_back(self, table: TablePlan, wanted: Table, there: Table) -> Iterator[str]:
        """The number of rows with values of the restored columns."""
        changes = [c.change for c in table.changes()]
        back = {
            change.field.id: change.path
            for change in changes
            if isinstance(change, RestoreColumn) and there.schema.by_id(change.field.id) is None
            # A column being retyped has another name while it is filled, and is reported there.
            if wanted.schema.find(change.path) is not None
        }
        if not back:
            return
        found = self.catalog.rows_with_values(there.name, {i: wanted.schema.leaves(i) for i in back})
        refilled = {f.path for change in changes if isinstance(change, RefillColumns) for f in change.fields}
        if found is None:
            names = ", ".join(map(format_path, back.values()))
            yield f"cannot quickly count the rows that have values of {names} in their files"
            return
        for text, share, paths in describe_shares({path: found[i] for i, path in back.items()}):
            lacking = [format_path(path) for path in paths if path not in refilled]
            if share.held < share.total and lacking and self.plan.redo is None:
                which = f"`{{name: {lacking[0]}, refill: true}}`{' and so on' if lacking[1:] else ''}"
                text += f"; {which} restores the values that a tag or a snapshot still has"
            yield text


def _repartitions(table: TablePlan) -> bool:
    return _rewrites(table) or any(c.change.kind in _KINDS for c in table.changes())


def _rewrites(table: TablePlan) -> bool:
    return any(isinstance(planned.work, Rewrite) for planned in table.rows)
