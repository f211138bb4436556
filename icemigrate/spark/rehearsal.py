"""Runs a whole plan on copies of its tables, to find statements that would fail, without changing a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icemigrate.changes.change import ChangePhase, SqlStatement
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data_steps.data_step_kind import DataStepStage
from icemigrate.errors import EngineError, NotUnderstood, RefusedDataStep
from icemigrate.events import Event, StatementFinished, StatementStarted
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Plan, Step, TablePlan
from icemigrate.planning.steps import render_statements
from icemigrate.spark.data_step_trial import data_step_errors, touched_by
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import empty_table, run_step
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark.statement_events import Listener, StatementAnnouncer, statement_announcer
from icemigrate.spark.table_copies import TableCopies, copy_differences


class RehearsalResult(Frozen):
    """The result of a rehearsal.

    :param statements: number of statements and metadata commits that ran.
    :param tables: number of copied tables, new ones included.
    """

    statements: int
    tables: int


def rehearse_on_copies(
    engine: SparkEngine, plan: Plan, on_event: Listener = lambda event: None
) -> RehearsalResult:
    """Run a plan's statements on copies, each migration on the result of the one before it.

    Tables are created, renamed and dropped among the copies, too.  Errors that depend on rows, permissions,
    the catalog's own rules or a reference's snapshot do not appear here.

    :raises NotUnderstood: Spark cannot run data steps of a migration; all errors of the first one are
        reported.
    :raises EngineError: the first statement that would fail, and why.
    """
    rehearsal = _Rehearsal(engine, TableCopies(engine), plan, on_event)
    with convert_java_errors():
        try:
            for migration in plan.migrations:
                found = [
                    one for table in migration.tables for one in rehearsal.table(table, migration.version)
                ]
                if found:
                    raise NotUnderstood(migration.version, tuple(found))
        finally:
            rehearsal.copies.close()
    return RehearsalResult(rehearsal.count, len(rehearsal.mentioned))


class _Rehearsal:
    """One call of :func:`rehearse_on_copies`."""

    def __init__(self, engine: SparkEngine, copies: TableCopies, plan: Plan, on_event: Listener) -> None:
        self.copies = copies
        self.count = 0
        self.mentioned: set[TableName] = set()
        self._engine = engine
        self._real = plan.catalog_name
        self._touched = touched_by(plan.migrations)
        self._on_event = on_event
        self._last: StatementStarted | None = None
        self._tables: dict[TableName, Table | None] = {}

    def table(self, plan: TablePlan, version: str) -> Iterator[RefusedDataStep]:
        """Run the plan of one table.

        :returns: Spark's errors about its data steps.
        """
        before = current = self._copied(plan)
        with self._failing(version):
            announcer = statement_announcer(replace(plan, steps=plan.all_steps), version, self._heard)
            if before is not None:
                yield from self._misunderstood(plan, before.name, (DataStepStage.BEFORE,))
            for step in announcer.each(plan.steps):
                current = self._step(plan, step, current, announcer)
            if current is not None:
                yield from self._misunderstood(plan, current.name, (DataStepStage.WRITE, DataStepStage.AFTER))
            for step in announcer.each(plan.finish):
                current = self._step(plan, step, current, announcer)
            if before is not None and current is not None:
                self._compare(before, current)
        self._tables[plan.first_name] = None
        if current is not None:
            self._tables[current.name] = self.copies.engine.table(current.name)

    def _misunderstood(
        self, plan: TablePlan, table: TableName, stages: tuple[DataStepStage, ...]
    ) -> Iterator[RefusedDataStep]:
        return data_step_errors(self.copies, plan, table, stages, self._touched)

    def _copied(self, plan: TablePlan) -> Table | None:
        """The copy of the table, created at its first use."""
        if plan.formerly is None or plan.first_name not in self._tables:
            self.mentioned.add(plan.name)
        return self._copy_of(plan.first_name)

    def _copy_of(self, name: TableName) -> Table | None:
        if name not in self._tables:
            found = self._engine.metadata_json(name)
            self._tables[name] = None if found is None else table_from_json(found, name)
            if found is not None:
                self.copies.add(name, found)
        return self._tables[name]

    def _step(
        self, plan: TablePlan, step: Step, current: Table | None, announcer: StatementAnnouncer
    ) -> Table:
        changes = [planned.change for planned in step.changes]
        if current is not None and changes[0].phase not in (ChangePhase.TABLE, ChangePhase.REMOVE_TABLE):
            return self.copies.run(step, current, announcer)
        whole = current or empty_table(plan)
        if isinstance(other := changes[0], RenameTable) and other.makes_way:
            there = self._copy_of(other.table)
            self._tables |= {
                other.table: None,
                other.new: None if there is None else replace(there, name=other.new),
            }
        for change in changes:
            whole = change.apply(whole)
        for namespace in (plan.name.namespace, whole.name.namespace):
            self.copies.engine.create_namespace(namespace)
        if any(isinstance(statement, SqlStatement) for statement in step.statements):
            here = render_statements(changes, current or empty_table(plan), self.copies.engine.catalog_name)
            step = replace(step, statements=here)
        return run_step(self.copies.engine, plan, step, current, announcer)

    def _compare(self, before: Table, wanted: Table) -> None:
        copy = self.copies.engine.table(wanted.name)
        assert copy is not None, "nothing but this drops a copy"
        if wrong := copy_differences(wanted, before, copy):
            raise EngineError(
                f"Spark would change table `{wanted.name}` in another way than planned: {'; '.join(wrong)}"
            )

    def _heard(self, event: Event) -> None:
        if isinstance(event, (StatementStarted, StatementFinished)):
            event = replace(event, text=self._named(event.text), on_copy=True)
        if isinstance(event, StatementStarted):
            self.count += 1
            self._last = event
        self._on_event(event)

    def _named(self, text: str) -> str:
        return text.replace(self.copies.engine.catalog_name, self._real)

    @contextmanager
    def _failing(self, version: str) -> Iterator[None]:
        """A block whose errors name the migration and the statement."""
        try:
            yield
        except EngineError as error:
            at = self._last.text if self._last is not None else "its first statement"
            raise EngineError(
                f"{self._named(error.message)}\nmigration {version} would fail at: {at}",
                f"{error.hint}; no table was changed" if error.hint else "no table was changed",
            ) from error
