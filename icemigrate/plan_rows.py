"""The order in which a plan's parts run: told, shown and compared alike, whoever asks.

What must hold is asked first, of all tables; then come the metadata that the rows need, the rows on their
branch, and what is left of the metadata.  What is done on the table itself in the end waits for all tables of
the migration, so that a later one that fails finds files of which nothing was written away.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.base import Sql
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data.base import DataStatement, Stage
from icemigrate.frozen import Frozen
from icemigrate.model.marks import branch_name
from icemigrate.model.names import TableName
from icemigrate.plan import MigrationPlan, PlannedWork, Step, TablePlan
from icemigrate.sql.branches import create_branch_sql, publish_branch_sql


class RowsPart(Frozen):
    """Data steps of one table that run together.

    :param statements: in running order, the branch's own among them.
    :param stage: of the first of them.
    """

    works: tuple[PlannedWork, ...]
    statements: tuple[DataStatement, ...]
    stage: Stage

    @property
    def is_first(self) -> bool:
        """Whether they run ahead of all else of the migration."""
        return self.stage is Stage.BEFORE

    @property
    def waits(self) -> bool:
        """Whether they run behind all tables of the migration."""
        return self.stage is Stage.SETTLED


def later_name(plan: TablePlan) -> TableName:
    """The table's name in the catalog when its rows are written."""
    renames = [c.change for c in plan.changes() if isinstance(c.change, RenameTable)]
    return renames[-1].new if renames else plan.name


def table_parts(plan: TablePlan, catalog: str, version: str) -> Iterator[Step | RowsPart]:
    """All that is done to one table, in running order.

    :param catalog: the catalog's name in Spark SQL.
    """
    yield from _rows(plan, Stage.BEFORE)
    yield from plan.steps
    yield from _on_branch(plan, catalog, version)
    yield from plan.finish
    yield from _rows(plan, Stage.SETTLED)


def running(migration: MigrationPlan, catalog: str) -> Iterator[Step | RowsPart]:
    """All that a migration does to its tables, in running order."""
    parts = [p for table in migration.tables for p in table_parts(table, catalog, migration.version)]
    ends = (Stage.BEFORE, Stage.SETTLED)
    for at in (Stage.BEFORE, None, Stage.SETTLED):
        for part in parts:
            stage = part.stage if isinstance(part, RowsPart) and part.stage in ends else None
            if stage is at:
                yield part


def _rows(plan: TablePlan, stage: Stage) -> Iterator[RowsPart]:
    works = _of(plan, stage)
    if works:
        yield RowsPart(works, tuple(_statements(works)), stage)


def _on_branch(plan: TablePlan, catalog: str, version: str) -> Iterator[RowsPart]:
    """What is written and asked there; the checks alone ask the table itself."""
    writes, checks = _of(plan, Stage.WRITE), _of(plan, Stage.AFTER)
    if not writes:
        yield from _rows(plan, Stage.AFTER)
        return
    name, branch = later_name(plan), branch_name(version)
    statements = (
        Sql(create_branch_sql(catalog, name, branch)),
        *_statements((*writes, *checks)),
        Sql(publish_branch_sql(catalog, name, branch)),
    )
    yield RowsPart((*writes, *checks), statements, Stage.WRITE)


def _of(plan: TablePlan, stage: Stage) -> tuple[PlannedWork, ...]:
    return tuple(work for work in plan.rows if work.work.stage is stage)


def _statements(works: tuple[PlannedWork, ...]) -> Iterator[DataStatement]:
    return (statement for work in works for statement in work.statements)
