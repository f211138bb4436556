"""Rows that others write while a migration is at work on their table.

A column that becomes required must have a value in them too: a null is read as 0, and a file that lacks the
column is read by nobody.  So what is asked of rows is asked of the very snapshot that the commit is made on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from icemigrate.changes.make_required import MakeRequired
from icemigrate.data.backfill import Backfill
from icemigrate.data.base import PAUSE, Ask, DataStatement
from icemigrate.data.every_value import EveryValue
from icemigrate.data.publication import LATE_NOTE
from icemigrate.data.retype import TEMPORARY, Retype
from icemigrate.errors import EngineError
from icemigrate.executor.rows import Rows
from icemigrate.frozen import replace
from icemigrate.model.names import Path, TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.plan import Step, TablePlan
from icemigrate.sql.nulls import null_sql
from icemigrate.sql.types import spark_loads


@dataclass(slots=True)
class LateRows(Rows):
    """What rows need that others wrote behind the migration's own, before columns are swapped.

    They are none of the migration's: an undo does not take them back.

    :param seen: the snapshot up to which all rows have what they need.
    """

    note: ClassVar[str] = LATE_NOTE
    seen: int | None = field(default=None, init=False)

    @classmethod
    def behind(cls, rows: Rows, seen: int | None) -> LateRows:
        """Those behind rows that are out."""
        late = cls(
            rows.engine,
            rows.plan,
            rows.project,
            rows.version,
            rows.catalog,
            rows.since,
            rows.on_event,
            rows.run,
        )
        late.seen = seen
        return late

    def _statements(
        self, name: TableName, table: Table
    ) -> tuple[Sequence[DataStatement], Sequence[DataStatement]]:
        """What gives them their values, and whether they have all; nothing where none came.

        :raises EngineError: which rows these are cannot be told.
        """
        if table.snapshot_id == self.seen:
            return [], []
        branch = self._planned(name)
        writes = [*_values(self.plan, table, branch)]
        if writes:
            self._note(name, "others wrote behind its rows: what they wrote gets its values too")
        return writes, [*without_value(self.plan.finish, table, branch)]


def _values(plan: TablePlan, table: Table, branch: str) -> Iterator[DataStatement]:
    """What the data steps give to rows that came behind them."""
    works = [planned.work for planned in plan.rows]
    paths: tuple[Path, ...] = tuple(
        index(table.schema)[c.field_id].path for c in _made_required(plan.finish, table)
    )
    # What several steps fill one after another, another order or other conditions may fill otherwise.
    fills = sum(isinstance(work, Backfill) for work in works)
    for work in works:
        if isinstance(work, Retype):
            old, new = table.schema.find(work.path), table.schema.find(work.temporary)
            if old is None or new is None:
                continue  # they are swapped already
            if new.initial_default is not None:
                raise EngineError(
                    f"others wrote to table `{table.name}` behind its rows, and which lack a value of "
                    f"{work.column} cannot be told, since they read its default",
                    f"{PAUSE}, and begin anew: `icemigrate rollback` undoes what was done",
                )
        yield from work.late(branch, paths if fills == 1 else ())


def without_value(steps: Sequence[Step], table: Table, rows: str) -> Iterator[Ask]:
    """Whether rows are without a value of a column that steps make required.

    :param rows: the table or its branch, as SQL names it.
    """
    made = _made_required(steps, table)
    if not made:
        return
    names = {c.field_id: format_path((*c.path[:-1], c.path[-1].removesuffix(TEMPORARY))) for c in made}
    conditions = tuple(null_sql(table.schema, field_id) for field_id in names)
    for ask in EveryValue(tuple(names.values()), conditions).statements(rows):
        assert isinstance(ask, Ask), "it does nothing but ask"
        yield replace(ask, hint=f"give these rows a value, or {PAUSE}; then apply again")


def _made_required(steps: Sequence[Step], table: Table) -> tuple[MakeRequired, ...]:
    """The changes that make fields of a table required; none where Spark cannot ask its rows."""
    if not spark_loads(table.schema):
        return ()
    optional = {field_id for field_id, entry in index(table.schema).items() if not entry.field.required}
    changes = (planned.change for step in steps for planned in step.changes)
    return tuple(c for c in changes if isinstance(c, MakeRequired) and c.field_id in optional)
