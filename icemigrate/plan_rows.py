"""What is run for the rows of one table: the data steps' own statements, and the branch around them."""

from __future__ import annotations

from icemigrate.changes.rename_table import RenameTable
from icemigrate.data.base import Stage
from icemigrate.model.marks import branch_name
from icemigrate.model.names import TableName
from icemigrate.plan import TablePlan
from icemigrate.sql.branches import create_branch_sql, publish_branch_sql


def later_name(plan: TablePlan) -> TableName:
    """The table's name in the catalog when its rows are written."""
    renames = [c.change for c in plan.changes() if isinstance(c.change, RenameTable)]
    return renames[-1].new if renames else plan.name


def row_statements(plan: TablePlan, catalog: str, version: str) -> tuple[str, ...]:
    """All that is run for the rows as text, in order, as it is told when it runs.

    :param catalog: the catalog's name in Spark SQL.
    """
    name = later_name(plan)
    by_stage = {
        stage: [s.text for work in plan.rows if work.work.stage is stage for s in work.statements]
        for stage in Stage
    }
    writes = by_stage[Stage.WRITE]
    branch = branch_name(version)
    around = (
        (create_branch_sql(catalog, name, branch), publish_branch_sql(catalog, name, branch))
        if writes
        else ()
    )
    return (
        *by_stage[Stage.BEFORE],
        *around[:1],
        *writes,
        *by_stage[Stage.AFTER],
        *around[1:],
        *by_stage[Stage.SETTLED],
    )
