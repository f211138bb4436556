"""What Spark does not understand of what is done to rows, as it says on copies of the tables."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

from icemigrate.changes.base import Subject
from icemigrate.data.base import BEFORE_MARK, Ask, RowWork, Stage
from icemigrate.engine.copies import Copies
from icemigrate.errors import Misunderstood
from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName
from icemigrate.plan import MigrationPlan, PlannedWork, TablePlan
from icemigrate.sql.names import table_sql

_NOT_THERE = ("[TABLE_OR_VIEW_NOT_FOUND]", "[UNRESOLVED_COLUMN")
"""What Spark says of a table or a column that a migration may be about to make."""


def misunderstood(
    copies: Copies, plan: TablePlan, table: TableName, stages: Container[Stage], touched: Iterable[TableName]
) -> Iterator[Misunderstood]:
    """What Spark does not understand of what is done to the rows of a table; none are there or written.

    :param table: the copy, as it is at these stages.
    :param touched: tables that migrations change before, see :func:`touched_by`.  SQL may ask them by their
        own names, and so finds them as they are now: what it misses there, the run tells.
    """
    rows = table_sql(copies.engine.catalog_name, table)
    names = "|".join(re.escape(name.name) for name in touched)
    mentions = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.I)
    for planned in plan.rows:
        work = planned.work
        whole = _fault(copies, work, rows) if work.stage in stages else None
        if whole is None:
            continue
        # What is wrong with a part is said of the part, where it stands in the file.
        found = dict[Subject, tuple[RowWork, _Fault]]()
        for subject, part in work.parts():
            fault = _fault(copies, part, rows)
            if fault is not None:
                found.setdefault(subject, (part, fault))
        for subject, (part, fault) in (found or {work.subject: (work, whole)}).items():
            if not (fault.why.startswith(_NOT_THERE) and mentions.search(fault.text.replace(rows, ""))):
                yield Misunderstood(str(plan.declared), subject, _words(planned, part), fault.why)


def touched_by(migrations: Iterable[MigrationPlan]) -> frozenset[TableName]:
    """The tables that migrations make or change, by their names before and after."""
    return frozenset(
        name
        for migration in migrations
        for table in migration.tables
        for name in (table.name, table.declared, table.formerly)
        if name is not None
    )


class _Fault(Frozen):
    """A statement that Spark would not run, and why."""

    text: str
    why: str


def _fault(copies: Copies, work: RowWork, rows: str) -> _Fault | None:
    for statement in work.statements(rows):
        text = statement.text.replace(BEFORE_MARK, rows)
        # Only a query stands in brackets, whatever else a statement could do.
        why = copies.not_planned(f"SELECT * FROM (\n{text}\n)" if isinstance(statement, Ask) else text)
        if why is not None:
            return _Fault(text, why)
    return None


def _words(planned: PlannedWork, part: RowWork) -> str:
    return part.describe() if type(part) is type(planned.work) else planned.text
