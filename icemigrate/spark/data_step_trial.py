"""Tries data steps on copies of their tables before a migration changes anything.

Spark plans every statement on the table as it will be then, without a row, and its errors about all tables
are reported together, with every publisher. A table's copy goes from migration to migration, so that an error
in one is found before the migrations before it are applied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import reduce

from icemigrate.changes.change import Change, ChangePhase, Subject
from icemigrate.changes.create_table import CreateTable
from icemigrate.data_steps.data_step_kind import (
    BEFORE_PLACEHOLDER,
    DataStepStage,
    QueryExpectation,
    TableDataStep,
)
from icemigrate.errors import NotUnderstood, RefusedDataStep, spark_condition
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import MigrationPlan, PlannedDataStep, Step, TablePlan
from icemigrate.planning.stages import later_name
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import empty_table
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark.table_copies import TableCopies
from icemigrate.spark_sql.identifiers import table_sql

_NOT_THERE = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN"})
"""Spark's errors for a table or a column that a migration may create first."""


def data_step_errors(
    copies: TableCopies,
    plan: TablePlan,
    table: TableName,
    stages: Container[DataStepStage],
    touched: Iterable[TableName],
) -> Iterator[RefusedDataStep]:
    """Spark's errors about the data steps of a table; no rows exist or are written.

    :param table: the copy, as it is at these stages.
    :param touched: tables that migrations change before, see :func:`touched_by`.  SQL may query them by their
        own names, and so sees their current state: errors about missing objects appear when it runs.
    """
    rows = table_sql(copies.engine.catalog_name, table)
    names = "|".join(re.escape(name.name) for name in touched)
    mentions = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.I)
    for planned in plan.rows:
        work = planned.work
        whole = _fault(copies, work, rows) if work.stage in stages else None
        if whole is None:
            continue
        # An error in a part is reported at the part's position in the file.
        found = dict[Subject, tuple[TableDataStep, _Fault]]()
        for subject, part in work.parts():
            fault = _fault(copies, part, rows)
            if fault is not None:
                found.setdefault(subject, (part, fault))
        for subject, (part, fault) in (found or {work.subject: (work, whole)}).items():
            is_missing = (spark_condition(fault.why) or "").partition(".")[0] in _NOT_THERE
            if not (is_missing and mentions.search(fault.text.replace(rows, ""))):
                yield RefusedDataStep(str(plan.declared), subject, _words(planned, part), fault.why)


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


def _fault(copies: TableCopies, work: TableDataStep, rows: str) -> _Fault | None:
    for statement in work.statements(rows):
        text = statement.text.replace(BEFORE_PLACEHOLDER, rows)
        # Parentheses can only contain a query, whatever else a statement could do.
        why = copies.query_planning_error(
            f"SELECT * FROM (\n{text}\n)" if isinstance(statement, QueryExpectation) else text
        )
        if why is not None:
            return _Fault(text, why)
    return None


def _words(planned: PlannedDataStep, part: TableDataStep) -> str:
    return part.describe() if type(part) is type(planned.work) else planned.text


_SKIPPED_PHASES = (
    ChangePhase.TABLE,
    ChangePhase.FREE_VIEWS,
    ChangePhase.REFERENCES,
    ChangePhase.ROWS,
    ChangePhase.VIEWS,
    ChangePhase.REMOVE_TABLE,
)
"""Phases that a copy skips: it keeps its name, and has neither snapshots nor rows."""


class _TableMoved(Exception):
    """A change does not fit the table any more, since another client changed it after the plan was made."""


class _TableMigration(Frozen):
    """The plan of one table in one migration."""

    version: str
    plan: TablePlan


def require_valid_data_steps(
    engine: SparkEngine, migrations: Sequence[MigrationPlan], begun: Collection[str] = ()
) -> None:
    """Require that Spark can run all data steps of the migrations, in order.

    :param begun: versions that are skipped, because an earlier run has begun them.
    :raises NotUnderstood: it cannot run those of a migration, the first one is reported; no table was
        changed.
    """
    ways = [way for way in _migrations_by_table(migrations) if any(leg.plan.rows for leg in way)]
    if not ways:
        return
    touched = touched_by(migrations)
    copies = TableCopies(engine)
    found: dict[str, list[RefusedDataStep]] = {}
    with convert_java_errors():
        try:
            for way in ways:
                for version, one in _along(engine, copies, way, touched):
                    found.setdefault(version, []).append(one)
        finally:
            copies.close()
    for migration in migrations:
        if migration.version in found and migration.version not in begun:
            raise NotUnderstood(migration.version, tuple(found[migration.version]))


def _migrations_by_table(migrations: Iterable[MigrationPlan]) -> list[list[_TableMigration]]:
    """The plans of each table in order, whatever its name in between."""
    ways = list[list[_TableMigration]]()
    at: dict[TableName, list[_TableMigration]] = {}
    for migration in migrations:
        # A name that one table gives free may be taken by another one of the same migration.
        leaving = {plan.name: at.pop(plan.name, None) for plan in migration.tables if not _is_made(plan)}
        for plan in migration.tables:
            way = None if _is_made(plan) else leaving[plan.name]
            if way is None:
                way = []
                ways.append(way)
            way.append(_TableMigration(migration.version, plan))
            if plan.wanted is not None:
                at[later_name(plan)] = way
    return ways


def _along(
    engine: SparkEngine, copies: TableCopies, way: Sequence[_TableMigration], touched: Collection[TableName]
) -> Iterator[tuple[str, RefusedDataStep]]:
    """Apply the plans to a copy of a table; returns errors with their version."""
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
                for one in data_step_errors(copies, plan, name, (DataStepStage.BEFORE,), touched):
                    yield leg.version, one
                _change(copies, name, plan.steps)
            else:
                copies.engine.create_namespace(name.namespace)
                copies.engine.create(_apply_changes(empty_table(plan), _changes(plan.steps)))
                is_there = True
            for one in data_step_errors(
                copies, plan, name, (DataStepStage.WRITE, DataStepStage.AFTER), touched
            ):
                yield leg.version, one
            if leg is not way[last]:
                _change(copies, name, plan.finish)
    except _TableMoved:
        pass  # the commit on the table itself reports it, or that the lock is lost by then
    copies.remove(name)


def _change(copies: TableCopies, name: TableName, steps: Sequence[Step]) -> None:
    changes = [change for change in _changes(steps) if change.phase not in _SKIPPED_PHASES]
    if changes:
        copies.engine.commit(name, lambda table: _apply_changes(table, changes))


def _changes(steps: Iterable[Step]) -> list[Change]:
    return [planned.change for step in steps for planned in step.changes]


def _apply_changes(table: Table, changes: Iterable[Change]) -> Table:
    try:
        return reduce(lambda t, change: change.apply(t), changes, table)
    except (StopIteration, LookupError, AssertionError) as error:
        raise _TableMoved from error


def _is_made(plan: TablePlan) -> bool:
    """Whether the migration creates the table; another one may have its name until then."""
    return any(isinstance(planned.change, CreateTable) for planned in plan.changes())
