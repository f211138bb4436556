"""What a migration does to rows, tried on copies of its tables before anything of it is done.

Spark plans every statement on the table as it will be then, without a row: what it does not understand is
told of all tables at once, whichever way changes come to tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import reduce

from icemigrate.changes.base import Change, Phase
from icemigrate.data.base import Stage
from icemigrate.engine.copies import Copies
from icemigrate.engine.publish import blank
from icemigrate.engine.spark import SparkEngine, explained
from icemigrate.engine.understanding import misunderstood, touched_by
from icemigrate.errors import Misunderstood, NotUnderstood
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan, TablePlan

_ELSEWHERE = (Phase.TABLE, Phase.REFERENCES, Phase.ROWS, Phase.REMOVE_TABLE)
"""A copy keeps its name, and has neither snapshots nor rows."""


def require_understood(engine: SparkEngine, migration: MigrationPlan) -> None:
    """See that Spark would run all that a migration does to rows.

    :raises NotUnderstood: it would not; no table was touched.
    """
    plans = [plan for plan in migration.tables if plan.rows]
    if not plans:
        return
    copies = Copies(engine)
    with explained():
        try:
            touched = touched_by([migration])
            found = tuple(one for plan in plans for one in _of_table(engine, copies, plan, touched))
        finally:
            copies.close()
    if found:
        raise NotUnderstood(migration.version, found)


def _of_table(
    engine: SparkEngine, copies: Copies, plan: TablePlan, touched: Collection[TableName]
) -> Iterator[Misunderstood]:
    metadata, name = engine.metadata_json(plan.name), plan.name
    changes = [c.change for step in plan.steps for c in step.changes]
    if metadata is None:
        copies.engine.create_namespace(name.namespace)
        copies.engine.create(_folded(blank(plan), changes))
    else:
        copies.add(name, metadata)
        yield from misunderstood(copies, plan, name, (Stage.BEFORE,), touched)
        copies.engine.commit(
            name, lambda table: _folded(table, [c for c in changes if c.phase not in _ELSEWHERE])
        )
    yield from misunderstood(copies, plan, name, (Stage.WRITE, Stage.AFTER), touched)
    copies.remove(name)


def _folded(table: Table, changes: list[Change]) -> Table:
    return reduce(lambda t, change: change.apply(t), changes, table)
