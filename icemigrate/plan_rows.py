"""The order in which a plan's parts run: told, shown and compared alike, whoever asks.

What must hold is asked first, of all tables; then come the metadata that the rows need and the rows on their
branches.  Rows are published, and what is left of the metadata lands, when all tables have got so far: nobody
has seen rows of a migration of which a check does not hold.  What is done on the table itself in the end
waits for all tables too, so that a later one that fails finds files of which nothing was written away.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import TypeAlias

from icemigrate.changes.base import Sql
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data.base import DataStatement, Stage
from icemigrate.frozen import Frozen
from icemigrate.model.marks import branch_name
from icemigrate.model.names import TableName
from icemigrate.plan import MigrationPlan, PlannedWork, Step, TablePlan
from icemigrate.sql.branches import create_branch_sql, publish_branch_sql


class When(Enum):
    """What of a table runs apart from the rest of it."""

    FIRST = "ahead of all else of the migration"
    CHECKED = "when the checks of all tables hold"
    LAST = "behind all tables of the migration"


class RowsPart(Frozen):
    """Data steps of one table that run together.

    :param statements: in running order, the branch's own among them.
    :param when: how they stand to other tables of the migration, where they do not run right behind what
        comes before them.
    """

    works: tuple[PlannedWork, ...]
    statements: tuple[DataStatement, ...]
    when: When | None = None


def later_name(plan: TablePlan) -> TableName:
    """The table's name in the catalog when its rows are written."""
    renames = [c.change for c in plan.changes() if isinstance(c.change, RenameTable)]
    return renames[-1].new if renames else plan.name


def table_parts(plan: TablePlan, catalog: str, project: str, version: str) -> Iterator[Step | RowsPart]:
    """All that is done to one table, in running order.

    :param catalog: the catalog's name in Spark SQL.
    :param project: whose migration it is.
    """
    return chain.from_iterable(_groups(plan, catalog, project, version))


def running(migration: MigrationPlan, catalog: str, project: str) -> Iterator[Step | RowsPart]:
    """All that a migration does to its tables, in running order."""
    of_tables = [_groups(table, catalog, project, migration.version) for table in migration.tables]
    for together in zip(*of_tables, strict=True):
        yield from chain.from_iterable(together)


_Group: TypeAlias = "tuple[Step | RowsPart, ...]"


def _groups(
    plan: TablePlan, catalog: str, project: str, version: str
) -> tuple[_Group, _Group, _Group, _Group]:
    """What is done to one table; a group runs when those before it have run of all tables."""
    branch = branch_name(project, version)
    return (
        _rows(plan, Stage.BEFORE, When.FIRST),
        (*plan.steps, *_on_branch(plan, catalog, branch)),
        (*_publication(plan, catalog, branch), *plan.finish),
        _rows(plan, Stage.SETTLED, When.LAST),
    )


def _on_branch(plan: TablePlan, catalog: str, branch: str) -> _Group:
    """What is written and asked there; the checks alone ask the table itself."""
    writes, checks = _of(plan, Stage.WRITE), _of(plan, Stage.AFTER)
    if not writes:
        return _rows(plan, Stage.AFTER)
    made = Sql(create_branch_sql(catalog, later_name(plan), branch))
    return (RowsPart((*writes, *checks), (made, *_statements((*writes, *checks)))),)


def _publication(plan: TablePlan, catalog: str, branch: str) -> _Group:
    if not _of(plan, Stage.WRITE):
        return ()
    out = Sql(publish_branch_sql(catalog, later_name(plan), branch))
    return (RowsPart((), (out,), When.CHECKED),)


def _rows(plan: TablePlan, stage: Stage, when: When | None = None) -> _Group:
    works = _of(plan, stage)
    return (RowsPart(works, tuple(_statements(works)), when),) if works else ()


def _of(plan: TablePlan, stage: Stage) -> tuple[PlannedWork, ...]:
    return tuple(work for work in plan.rows if work.work.stage is stage)


def _statements(works: tuple[PlannedWork, ...]) -> Iterator[DataStatement]:
    return (statement for work in works for statement in work.statements)
