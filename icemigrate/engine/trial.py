"""What migrations do to rows, tried on copies of their tables before anything of the first one is done.

Spark plans every statement on the table as it will be then, without a row: what it does not understand is
told of all tables at once, whichever way changes come to tables.  A table is led from migration to migration,
so that one which is wrong is known before those ahead of it are applied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce

from icemigrate.changes.base import Change, Phase
from icemigrate.changes.create_table import CreateTable
from icemigrate.data.base import Stage
from icemigrate.engine.copies import Copies
from icemigrate.engine.explain import explained
from icemigrate.engine.publish import blank
from icemigrate.engine.spark import SparkEngine
from icemigrate.engine.understanding import misunderstood, touched_by
from icemigrate.errors import Misunderstood, NotUnderstood
from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan, Step, TablePlan
from icemigrate.plan_rows import later_name

_ELSEWHERE = (Phase.TABLE, Phase.REFERENCES, Phase.ROWS, Phase.REMOVE_TABLE)
"""A copy keeps its name, and has neither snapshots nor rows."""


class _TableMoved(Exception):
    """A change does not fit the table any more, since another client changed it after the plan was made."""


class _Leg(Frozen):
    """What one migration does to a table."""

    version: str
    plan: TablePlan


def require_understood(
    engine: SparkEngine, migrations: Sequence[MigrationPlan], begun: Collection[str] = ()
) -> None:
    """See that Spark would run all that migrations do to rows, in order.

    :param begun: versions of which nothing is asked, since an earlier run has begun with them.
    :raises NotUnderstood: it would not run the first such migration; no table was touched.
    """
    ways = [way for way in _ways(migrations) if any(leg.plan.rows for leg in way)]
    if not ways:
        return
    touched = touched_by(migrations)
    copies = Copies(engine)
    found: dict[str, list[Misunderstood]] = {}
    with explained():
        try:
            for way in ways:
                for version, one in _along(engine, copies, way, touched):
                    found.setdefault(version, []).append(one)
        finally:
            copies.close()
    for migration in migrations:
        if migration.version in found and migration.version not in begun:
            raise NotUnderstood(migration.version, tuple(found[migration.version]))


def _ways(migrations: Iterable[MigrationPlan]) -> list[list[_Leg]]:
    """What migrations do one after another to the same table, whatever it is called meanwhile."""
    ways = list[list[_Leg]]()
    at: dict[TableName, list[_Leg]] = {}
    for migration in migrations:
        # A name that one table gives free may be taken by another one of the same migration.
        leaving = {plan.name: at.pop(plan.name, None) for plan in migration.tables if not _is_made(plan)}
        for plan in migration.tables:
            way = None if _is_made(plan) else leaving[plan.name]
            if way is None:
                way = []
                ways.append(way)
            way.append(_Leg(migration.version, plan))
            if plan.wanted is not None:
                at[later_name(plan)] = way
    return ways


def _along(
    engine: SparkEngine, copies: Copies, way: Sequence[_Leg], touched: Collection[TableName]
) -> Iterator[tuple[str, Misunderstood]]:
    """Lead a copy of a table along; what is not understood, with its version."""
    name = way[0].plan.name
    metadata = None if _is_made(way[0].plan) else engine.metadata_json(name)
    is_there = metadata is not None
    if metadata is not None:
        copies.add(name, metadata)
    last = max(i for i, leg in enumerate(way) if leg.plan.rows)
    try:
        for leg in way[: last + 1]:
            plan = leg.plan
            if is_there:
                for one in misunderstood(copies, plan, name, (Stage.BEFORE,), touched):
                    yield leg.version, one
                _change(copies, name, plan.steps)
            else:
                copies.engine.create_namespace(name.namespace)
                copies.engine.create(_folded(blank(plan), _changes(plan.steps)))
                is_there = True
            for one in misunderstood(copies, plan, name, (Stage.WRITE, Stage.AFTER), touched):
                yield leg.version, one
            if leg is not way[last]:
                _change(copies, name, plan.finish)
    except _TableMoved:
        pass  # the commit on the table itself reports it, or the lock that is lost by then
    copies.remove(name)


def _change(copies: Copies, name: TableName, steps: Sequence[Step]) -> None:
    changes = [change for change in _changes(steps) if change.phase not in _ELSEWHERE]
    if changes:
        copies.engine.commit(name, lambda table: _folded(table, changes))


def _changes(steps: Iterable[Step]) -> list[Change]:
    return [planned.change for step in steps for planned in step.changes]


def _folded(table: Table, changes: Iterable[Change]) -> Table:
    try:
        return reduce(lambda t, change: change.apply(t), changes, table)
    except (StopIteration, LookupError, AssertionError) as error:
        raise _TableMoved from error


def _is_made(plan: TablePlan) -> bool:
    """Whether the migration makes the table; another one of its name may be there until then."""
    return any(isinstance(planned.change, CreateTable) for planned in plan.changes())
