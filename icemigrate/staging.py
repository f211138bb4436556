"""The changes of a table that has its rows changed too: what the rows need goes before them, the rest behind.

A column that the migration drops can still be read while rows are written, and goes when they are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from icemigrate.changes import KINDS
from icemigrate.changes.base import Problem
from icemigrate.data.base import Ground, RowWork, Stage, branch_name
from icemigrate.diff import Difference, difference, unproved
from icemigrate.merge import rebind_by_path
from icemigrate.model.table import Table
from icemigrate.model.types import Field
from icemigrate.plan import PlannedWork, TablePlan
from icemigrate.sql.branches import branch_sql
from icemigrate.sql.names import table_sql


@dataclass(frozen=True, slots=True)
class Staged:
    """A table's difference in two parts.

    :param first: what comes before the rows.
    :param last: what comes behind them; nothing where no rows are written.
    """

    first: Difference
    last: Difference

    @property
    def target(self) -> Table:
        """What was asked for, new fields under the ids they got."""
        return self.last.target

    @property
    def left(self) -> tuple[str, ...]:
        """What the two do not lead to; see :func:`icemigrate.diff.unproved`."""
        return tuple(dict.fromkeys((*unproved(self.first, KINDS), *unproved(self.last, KINDS))))


def staged(there: Table, target: Table, works: Sequence[RowWork]) -> Staged:
    """The difference in two parts, or all of it in the first where no rows are written."""
    if not any(work.stage is Stage.WRITE for work in works):
        whole = difference(there, target, KINDS)
        return Staged(whole, Difference((), whole.after, whole.target))
    first = difference(there, _expanded(there, target), KINDS)
    last = difference(first.after, rebind_by_path(target, first.after, above=there.last_column_id), KINDS)
    return Staged(first, last)


def _expanded(there: Table, target: Table) -> Table:
    """The target with the columns that are there and shall go, each behind the one that it stands behind."""
    ids, names = {f.id for f in target.schema.fields}, {f.name for f in target.schema.fields}
    fields: list[Field] = list(target.schema.fields)
    at = 0
    for field in there.schema.fields:
        where = next((i for i, f in enumerate(fields) if f.id == field.id), None)
        if where is not None:
            at = where + 1
        elif field.id not in ids and field.name not in names:
            fields.insert(at, field)
            at += 1
    return replace(target, schema=replace(target.schema, fields=tuple(fields)))


def with_works(
    plan: TablePlan, works: Sequence[RowWork], ground: Ground, catalog: str, version: str, is_resumed: bool
) -> TablePlan:
    """The plan with the data steps, and what is to be known of them.

    :param catalog: the catalog's name in Spark SQL.
    :param is_resumed: an earlier run of the migration was cut short.
    """
    before, after = table_sql(catalog, plan.name), table_sql(catalog, ground.table.name)
    branch = branch_sql(catalog, ground.table.name, branch_name(version))
    places = {
        Stage.BEFORE: before,
        Stage.WRITE: branch,
        Stage.AFTER: branch if any(work.stage is Stage.WRITE for work in works) else after,
        Stage.SETTLED: after,
    }
    rows = tuple(
        PlannedWork(
            work,
            work.describe(),
            work.statements(places[work.stage]),
            work.hazards(ground),
            work.reversal(ground),
            work.overwrites(ground),
        )
        for work in works
    )
    note = "rows that an earlier run has published already are not written again"
    return replace(plan, rows=rows, notes=(*plan.notes, *([note] if is_resumed else [])))


def work_problems(works: Sequence[RowWork], ground: Ground, has_branches: bool) -> Iterator[Problem]:
    """Why the data steps must not be done."""
    for work in works:
        if work.stage is Stage.WRITE and not has_branches:
            yield Problem(
                "no-branches",
                ground.declared,
                work.subject,
                "rows are written on a branch and published when the checks hold, and this catalog has no "
                "branches, or is harmed by them",
                "change the rows by a job of your own, between two migrations",
            )
        yield from work.problems(ground)
