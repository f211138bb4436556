"""Who writes the tables of a plan while it is applied, and what it does to them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.changes.base import Change, Harm
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.positions import FieldInsertion
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.data.base import PAUSE, TRIES, RowWork, Stage
from icemigrate.data.retype import Retype
from icemigrate.following import Followed
from icemigrate.frozen import replace
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import Writer
from icemigrate.plan import LiveWriter, MigrationPlan, TablePlan

BUSY_A_DAY = 24
"""From how many commits of others a day on one has to be expected while rows are written: one an hour."""


def with_writers(
    migrations: Iterable[MigrationPlan], actual: Mapping[TableName, Table | None]
) -> tuple[MigrationPlan, ...]:
    """The plans, each table that is changed with those who write it.

    :param actual: the catalog's tables before the first migration, by their name there.
    """
    followed = Followed()

    def of_table(plan: TablePlan) -> TablePlan:
        now = followed.now(plan)
        there = None if now is None else actual.get(now)
        return plan if there is None else _of_table(plan, there.writers)

    return tuple(replace(m, tables=tuple(map(of_table, m.tables))) for m in migrations)


def _of_table(plan: TablePlan, here: Sequence[Writer]) -> TablePlan:
    changes = [planned.change for planned in plan.changes()]
    works = [planned.work for planned in plan.rows]
    if not (changes or works) or not here:
        return plan
    busy = tuple(_busy(changes, works, here))
    harms = tuple(_harms(changes, works))
    told = (LiveWriter(w, tuple(dict.fromkeys(h.reason for h in harms if w.kind in h.whom))) for w in here)
    return replace(plan, writers=tuple(told), notes=(*plan.notes, *busy))


def _busy(changes: Iterable[Change], works: Iterable[RowWork], writers: Iterable[Writer]) -> Iterator[str]:
    """What rows that are written have to expect of others: any commit of theirs has them written again."""
    a_day = sum(writer.a_day for writer in writers)
    is_written = any(work.stage is Stage.WRITE for work in works)
    if a_day >= BUSY_A_DAY and (is_written or any(isinstance(c, RefillColumns) for c in changes)):
        yield (
            f"others commit about {round(a_day)} times a day, and each commit while its rows are written has "
            f"them written again, {TRIES} times at most: {PAUSE}"
        )


def _harms(changes: Sequence[Change], works: Iterable[RowWork]) -> Iterator[Harm]:
    """What is done to writers; a column that is swapped for another one neither goes nor gets a name."""
    retypes = [work for work in works if isinstance(work, Retype)]
    old, passing = {work.field_id for work in retypes}, {work.temporary for work in retypes}
    gone = {change.path for change in changes if isinstance(change, DropColumn)}
    for change in changes:
        if isinstance(change, DropColumn) and change.field_id in old:
            continue
        if isinstance(change, RenameColumn) and change.path in passing:
            continue
        # One that comes where another goes is no further one.
        if isinstance(change, FieldInsertion) and change.path in passing | gone:
            continue
        yield from change.harms()
    for work in retypes:
        yield from work.harms
