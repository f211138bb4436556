"""What a table's manifests tell a plan, asked where it matters.

How many files lie otherwise than it is, or will be, partitioned; and how many rows still have values of a
column that comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.changes.add_partition_field import AddPartitionField
from icemigrate.changes.drop_partition_field import DropPartitionField
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.data.rewrite import Rewrite
from icemigrate.following import Followed
from icemigrate.frozen import replace
from icemigrate.model.evidence import told_shares
from icemigrate.model.layout import Layout, OldShare, is_one_way, old_share, was_another_way
from icemigrate.model.names import format_path
from icemigrate.plan import Direction, MigrationPlan, Plan, TablePlan
from icemigrate.results import LyingOld, PlanResult

if TYPE_CHECKING:
    from icemigrate.catalog.port import Catalog
    from icemigrate.model.names import TableName
    from icemigrate.model.table import Table

_KINDS = frozenset({AddPartitionField.kind, DropPartitionField.kind})
"""Kinds of change after which new files lie otherwise; under another name they lie as before."""


def with_old_files(plan: Plan, catalog: Catalog) -> Plan:
    """The plan, and with each table that it partitions otherwise, or rewrites, the files of the old way, and
    with the first mention of one that was partitioned otherwise before; with one to which it brings columns
    back, how many rows have values of them.

    Manifest lists are read for these tables, and none for the others.
    """
    walk = _Walk(plan, catalog)
    return replace(plan, migrations=tuple(map(walk.migration, plan.migrations)))


def old_files_of(table: Table, catalog: Catalog) -> OldShare | None:
    """What lies otherwise than a table is partitioned now.

    ``None`` where nothing can, or nobody can tell; the catalog is asked only where files can.
    """
    if table.snapshot is None or is_one_way(table):
        return None
    layout = catalog.layout(table.name)
    share = None if layout is None else old_share(layout, table, table.spec)
    return share if share is not None and share.files else None


MOST_ASKED = 20
"""Of how many tables that a plan leaves alone the files are asked for: each takes two or three requests."""


def with_left_alone(
    result: PlanResult, catalog: Catalog, physical: Callable[[TableName], TableName]
) -> PlanResult:
    """The result, and how the files lie of tables that the plan leaves alone and that were partitioned
    otherwise before, as the history knows; the catalog is asked about these only.

    :param physical: a declared table name → the name in the catalog.
    """
    plan = result.plan
    spoken_of = {n for m in plan.migrations for t in m.tables for n in (t.declared, t.formerly)}
    others = (n for n, table in plan.base.tables.items() if n not in spoken_of and was_another_way(table))
    names = {physical(name): name for name in sorted(others)}
    asked = [*names][:MOST_ASKED]
    found = catalog.load(asked) if asked else {}
    shares = ((n, old_files_of(table, catalog)) for n, table in found.items() if table is not None)
    lying = (LyingOld(str(names[n]), str(n), share) for n, share in shares if share is not None)
    return replace(result, lying_old=tuple(lying), lying_unasked=len(names) - len(asked))


@dataclass(slots=True)
class _Walk:
    """A plan's tables, each followed back to its name in the catalog as it is now."""

    plan: Plan
    catalog: Catalog
    followed: Followed = field(default_factory=Followed)
    layouts: dict[TableName, Layout | None] = field(default_factory=dict)

    def migration(self, migration: MigrationPlan) -> MigrationPlan:
        return replace(migration, tables=tuple(map(self._table, migration.tables)))

    def _table(self, table: TablePlan) -> TablePlan:
        now = self.followed.now(table)
        there = None if now is None else self.plan.based_on.get(now)
        wanted = table.wanted
        if now is None or there is None or there.snapshot is None or wanted is None:
            return table
        if self.plan.direction is Direction.APPLY:
            # An undo has looked for values by itself, in the versions that keep them too.
            table = replace(table, notes=(*table.notes, *self._values_back(table, wanted, there)))
        is_told = now in self.layouts or is_one_way(there)
        if is_told and not _repartitions(table):
            return table
        if now not in self.layouts:
            self.layouts[now] = self.catalog.layout(now)
        layout = self.layouts[now]
        if layout is None:
            return table
        share = old_share(layout, there, wanted.spec)
        return replace(table, old_files=share) if share.files or _rewrites(table) else table

    def _values_back(self, table: TablePlan, wanted: Table, there: Table) -> Iterator[str]:
        """How many rows have values of the columns that come back."""
        changes = [c.change for c in table.changes()]
        back = {
            change.field.id: change.path
            for change in changes
            if isinstance(change, RestoreColumn) and there.schema.by_id(change.field.id) is None
            # One that is retyped has another name while it is filled, and is told of there.
            if wanted.schema.find(change.path) is not None
        }
        if not back:
            return
        found = self.catalog.held(there.name, {i: wanted.schema.leaves(i) for i in back})
        refilled = {f.path for change in changes if isinstance(change, RefillColumns) for f in change.fields}
        if found is None:
            names = ", ".join(map(format_path, back.values()))
            yield f"how many rows have values of {names} in their files, its manifests do not tell quickly"
            return
        for text, share, paths in told_shares({path: found[i] for i, path in back.items()}):
            lacking = [format_path(path) for path in paths if path not in refilled]
            if share.held < share.total and lacking and self.plan.redo is None:
                which = f"`{{name: {lacking[0]}, refill: true}}`{' and so on' if lacking[1:] else ''}"
                text += f"; {which} brings back what a tag or a snapshot keeps"
            yield text


def _repartitions(table: TablePlan) -> bool:
    return _rewrites(table) or any(c.change.kind in _KINDS for c in table.changes())


def _rewrites(table: TablePlan) -> bool:
    return any(isinstance(planned.work, Rewrite) for planned in table.rows)
