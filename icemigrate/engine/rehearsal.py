"""A whole plan on copies of its tables: which statement would fail, without touching a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icemigrate.changes.base import Phase, Sql
from icemigrate.data.base import Stage
from icemigrate.engine.copies import Copies, otherwise
from icemigrate.engine.explain import explained
from icemigrate.engine.publish import blank, run_step
from icemigrate.engine.spark import SparkEngine
from icemigrate.engine.telling import Listener, Telling, telling
from icemigrate.engine.understanding import misunderstood, touched_by
from icemigrate.errors import EngineError, Misunderstood, NotUnderstood
from icemigrate.events import Event, StatementFinished, StatementStarted
from icemigrate.frozen import Frozen, replace
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.plan import Plan, Step, TablePlan
from icemigrate.steps import rendered


class Rehearsed(Frozen):
    """What was rehearsed.

    :param statements: how many statements and metadata commits ran.
    :param tables: on copies of how many tables, new ones included.
    """

    statements: int
    tables: int


def rehearse(engine: SparkEngine, plan: Plan, on_event: Listener = lambda event: None) -> Rehearsed:
    """Run a plan's statements on copies, one migration on what the one before it has left.

    Tables are made, renamed and dropped among the copies, too.  What hangs on rows, rights, the catalog's own
    rules or a reference's snapshot does not show here.

    :raises NotUnderstood: Spark would not run what the first such migration does to rows; all of it is told.
    :raises EngineError: the first statement that would fail, and why.
    """
    rehearsal = _Rehearsal(engine, Copies(engine), plan, on_event)
    with explained():
        try:
            for migration in plan.migrations:
                found = [
                    one for table in migration.tables for one in rehearsal.table(table, migration.version)
                ]
                if found:
                    raise NotUnderstood(migration.version, tuple(found))
        finally:
            rehearsal.copies.close()
    return Rehearsed(rehearsal.count, len(rehearsal.mentioned))


class _Rehearsal:
    """One call of :func:`rehearse`."""

    def __init__(self, engine: SparkEngine, copies: Copies, plan: Plan, on_event: Listener) -> None:
        self.copies = copies
        self.count = 0
        self.mentioned: set[TableName] = set()
        self._engine = engine
        self._real = plan.catalog_name
        self._touched = touched_by(plan.migrations)
        self._on_event = on_event
        self._last: StatementStarted | None = None
        self._tables: dict[TableName, Table | None] = {}

    def table(self, plan: TablePlan, version: str) -> Iterator[Misunderstood]:
        """Do what one migration does to one table.

        :returns: what Spark would not run of what it does to rows.
        """
        before = current = self._copied(plan)
        with self._failing(version):
            tell = telling(replace(plan, steps=plan.all_steps), version, self._heard)
            if before is not None:
                yield from self._misunderstood(plan, before.name, (Stage.BEFORE,))
            for step in plan.steps:
                current = self._step(plan, step, current, tell)
            if current is not None:
                yield from self._misunderstood(plan, current.name, (Stage.WRITE, Stage.AFTER))
            for step in plan.finish:
                current = self._step(plan, step, current, tell)
            if before is not None and current is not None:
                self._compare(before, current)
        self._tables[plan.name] = None
        if current is not None:
            self._tables[current.name] = self.copies.engine.table(current.name)

    def _misunderstood(
        self, plan: TablePlan, table: TableName, stages: tuple[Stage, ...]
    ) -> Iterator[Misunderstood]:
        return misunderstood(self.copies, plan, table, stages, self._touched)

    def _copied(self, plan: TablePlan) -> Table | None:
        """The copy of the table, made where the plan has not come to it yet."""
        if plan.formerly is None or plan.name not in self._tables:
            self.mentioned.add(plan.name)
        if plan.name not in self._tables:
            found = self._engine.metadata_json(plan.name)
            self._tables[plan.name] = None if found is None else table_from_json(found, plan.name)
            if found is not None:
                self.copies.add(plan.name, found)
        return self._tables[plan.name]

    def _step(self, plan: TablePlan, step: Step, current: Table | None, tell: Telling) -> Table:
        changes = [planned.change for planned in step.changes]
        if current is not None and changes[0].phase not in (Phase.TABLE, Phase.REMOVE_TABLE):
            return self.copies.run(step, current, tell)
        whole = current or blank(plan)
        for change in changes:
            whole = change.apply(whole)
        for namespace in (plan.name.namespace, whole.name.namespace):
            self.copies.engine.create_namespace(namespace)
        if any(isinstance(statement, Sql) for statement in step.statements):
            here = rendered(changes, current or blank(plan), self.copies.engine.catalog_name)
            step = replace(step, statements=here)
        return run_step(self.copies.engine, plan, step, current, tell)

    def _compare(self, before: Table, wanted: Table) -> None:
        copy = self.copies.engine.table(wanted.name)
        assert copy is not None, "nothing but this drops a copy"
        if wrong := otherwise(wanted, before, copy):
            raise EngineError(f"Spark makes something else of table `{wanted.name}`: {'; '.join(wrong)}")

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
        """Whatever fails in the block is told with the migration and the statement."""
        try:
            yield
        except EngineError as error:
            at = self._last.text if self._last is not None else "its first statement"
            raise EngineError(
                f"{self._named(error.message)}\nmigration {version} would stop at: {at}",
                f"{error.hint}; no table was touched" if error.hint else "no table was touched",
            ) from error
