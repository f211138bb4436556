"""Who writes the tables of a plan while it is applied, and what it does to them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from icemigrate.changes.base import Change
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.writers import Writer
from icemigrate.plan import LiveWriter, MigrationPlan, TablePlan

Writers = dict[TableName, tuple[Writer, ...]]


def with_writers(
    migrations: Iterable[MigrationPlan], actual: Mapping[TableName, Table | None]
) -> tuple[MigrationPlan, ...]:
    """The plans, each table that is changed with those who write it.

    :param actual: the catalog's tables before the first migration, by their name there.
    """
    writers = {name: table.writers for name, table in actual.items() if table is not None}
    return tuple(replace(m, tables=tuple(_of_table(t, writers) for t in m.tables)) for m in migrations)


def _of_table(plan: TablePlan, writers: Writers) -> TablePlan:
    changes = [planned.change for planned in plan.changes()]
    here = writers.get(plan.name, ())
    for change in changes:
        if isinstance(change, (RenameTable, DropTable)) and change.table in writers:
            moved = writers.pop(change.table)
            writers[change.new if isinstance(change, RenameTable) else change.trash] = moved
    if not changes or not here:
        return plan
    told = (LiveWriter(w, tuple(dict.fromkeys(_breaks(w, changes)))) for w in here)
    return replace(plan, writers=tuple(told))


def _breaks(writer: Writer, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        harm = change.harm()
        if harm is not None and writer.is_among(harm.whom):
            yield harm.reason
