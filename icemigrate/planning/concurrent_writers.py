"""Writers of a plan's tables while it is applied, and its effects on them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.changes.change import Change, WriterImpact
from icemigrate.changes.column_positions import FieldInsertion
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.data_steps.data_step_kind import (
    MAX_WRITE_ATTEMPTS,
    PAUSE_WRITERS_HINT,
    DataStepStage,
    TableDataStep,
)
from icemigrate.data_steps.retype import Retype
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import AffectedWriter, MigrationPlan, TablePlan
from icemigrate.planning.rename_tracker import RenameTracker

BUSY_A_DAY = 24
"""The number of commits by others in a day from which one is likely while rows are written: one an hour."""


def with_affected_writers(
    migrations: Iterable[MigrationPlan], actual: Mapping[TableName, Table | None]
) -> tuple[MigrationPlan, ...]:
    """The plans with the writers of each table that changes.

    :param actual: the catalog's tables before the first migration, by their name there.
    """
    followed = RenameTracker()

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
    impacts = tuple(_writer_impacts(changes, works))
    affected = (
        AffectedWriter(w, tuple(dict.fromkeys(h.reason for h in impacts if w.kind in h.writer_kind)))
        for w in here
    )
    return replace(plan, writers=tuple(affected), notes=(*plan.notes, *busy))


def _busy(
    changes: Iterable[Change], works: Iterable[TableDataStep], writers: Iterable[Writer]
) -> Iterator[str]:
    """A note where writing rows is likely to be repeated, since other clients commit often."""
    a_day = sum(writer.a_day for writer in writers)
    is_written = any(work.stage is DataStepStage.WRITE for work in works)
    if a_day >= BUSY_A_DAY and (is_written or any(isinstance(c, RefillColumns) for c in changes)):
        yield (
            f"other clients commit about {round(a_day)} times a day, and each commit during the write "
            f"repeats it, {MAX_WRITE_ATTEMPTS} times at most: {PAUSE_WRITERS_HINT}"
        )


def _writer_impacts(changes: Sequence[Change], works: Iterable[TableDataStep]) -> Iterator[WriterImpact]:
    """The effects on writers; a column that is swapped for another one is neither dropped nor renamed."""
    retypes = [work for work in works if isinstance(work, Retype)]
    old, passing = {work.field_id for work in retypes}, {work.temporary for work in retypes}
    gone = {change.path for change in changes if isinstance(change, DropColumn)}
    for change in changes:
        if isinstance(change, DropColumn) and change.field_id in old:
            continue
        if isinstance(change, RenameColumn) and change.path in passing:
            continue
        # An added column that replaces a dropped one is not reported as well.
        if isinstance(change, FieldInsertion) and change.path in passing | gone:
            continue
        yield from change.writer_impacts()
    for work in retypes:
        yield from work.writer_impacts
