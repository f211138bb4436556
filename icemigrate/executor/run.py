"""Carry a plan out: run, read back, mark, record, migration by migration.

Nothing is planned here.  What a migration's steps come to is folded over the table as it was, and the
table that is read back is held against that.
"""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from importlib.metadata import version as installed_version
from typing import Protocol

from icemigrate.changes.base import Sql, Statement
from icemigrate.declare.version import Version
from icemigrate.engine.port import Engine, Marker
from icemigrate.errors import EngineError, IcemigrateError, StalePlan
from icemigrate.events import (
    Event,
    MigrationRecorded,
    MigrationStarted,
    Noted,
    StatementFinished,
    StatementStarted,
    TableMarked,
    TableVerified,
)
from icemigrate.executor.verify import verify
from icemigrate.history.record import Record
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Schema
from icemigrate.model.sides import State
from icemigrate.model.table import DEFAULT_FORMAT_VERSION, Table
from icemigrate.plan import MigrationPlan, Plan, Step, TablePlan
from icemigrate.planner import settle


class Recorder(Protocol):
    """Who keeps the history; see :class:`icemigrate.history.write.HistoryWriter`."""

    def prepare(self) -> None:
        """Make sure that it can be written, before any table is touched."""
        ...

    def record(self, record: Record, state: State) -> None:
        """Keep what was done, and the declared state that it led to."""
        ...


@dataclass(frozen=True, slots=True)
class Operator:
    """Who applies, and from where."""

    user: str
    host: str


def operator() -> Operator:
    """Who runs this process, by the operating system."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return Operator(user, socket.gethostname())


class Interrupted(EngineError):
    """A migration stopped on its way; nothing of it was recorded.

    :param done: what was run before, in order; it stays.
    :param failed: what failed.
    :param left: what was not run.
    """

    def __init__(
        self,
        migration: str,
        done: tuple[str, ...],
        failed: str,
        left: tuple[str, ...],
        cause: IcemigrateError,
    ) -> None:
        parts = [f"migration {migration} stopped at: {failed}", f"because {cause.message}"]
        parts += (
            ["done before it:", *(_indent(text) for text in done)] if done else ["nothing was done before it"]
        )
        parts += ["not done:", *(_indent(text) for text in left)] if left else []
        hint = "mend the cause and run `icemigrate apply` again: it goes on from what is done"
        super().__init__("\n".join(parts), f"{cause.hint}; {hint}" if cause.hint else hint)
        self.done = done
        self.failed = failed
        self.left = left


def apply(
    plan: Plan,
    engine: Engine,
    recorder: Recorder,
    on_event: Callable[[Event], None] = lambda event: None,
    by: Operator | None = None,
    keep: timedelta | None = None,
) -> tuple[Record, ...]:
    """Carry out a plan that is :attr:`~icemigrate.plan.Plan.ready`.

    :param on_event: told of every step.
    :param by: who is recorded; found by itself where left out.
    :param keep: how long the tags are kept; ``None`` for ever.
    :returns: what was recorded, one for each migration.
    :raises Interrupted: a migration failed; those before it are recorded, it and those behind it are not.
    :raises StalePlan: the catalog numbered a new field otherwise than planned, and a later migration
        relies on it.
    """
    assert plan.ready, "a plan with problems, conflicts or missing consents is not carried out"
    if plan.is_empty:
        return ()
    recorder.prepare()
    run = _Run(plan, engine, recorder, on_event, by or operator(), keep, plan.base)
    return tuple(run.migrate(i, m) for i, m in enumerate(plan.migrations, start=1))


@dataclass(slots=True)
class _Run:
    """One call of :func:`apply`.

    :param state: as declared by what is applied so far, with the catalog's own ids.
    :param renumbered: declared names of tables whose new fields got other ids than foreseen.
    """

    plan: Plan
    engine: Engine
    recorder: Recorder
    on_event: Callable[[Event], None]
    by: Operator
    keep: timedelta | None
    state: State
    renumbered: set[TableName] = field(default_factory=set)

    def migrate(self, number: int, migration: MigrationPlan) -> Record:
        for table in migration.tables:
            if table.formerly in self.renumbered:
                raise StalePlan(
                    f"migration {migration.version} was planned for other field ids of `{table.declared}`",
                    "run `icemigrate apply` again: it plans anew what is left",
                )
        self.on_event(
            MigrationStarted(migration.version, migration.description, number, len(self.plan.migrations))
        )
        started_at, clock = datetime.now(timezone.utc), time.monotonic()
        work = _Work(self, migration, _statements(migration))
        state = work.run()
        record = Record(
            version=Version.parse(migration.version),
            description=migration.description,
            checksum=migration.checksum,
            project=self.plan.project,
            environment=self.plan.environment,
            outcome="applied",
            started_at=started_at,
            finished_at=datetime.now(timezone.utc),
            user=self.by.user,
            host=self.by.host,
            tool_version=installed_version("icemigrate"),
            tables=tuple(sorted(str(t.declared) for t in migration.tables)),
            statements=tuple(work.done),
        )
        with work.guard("the record in the history"):
            self.recorder.record(record, state)
        self.state = state
        self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return record


@dataclass(slots=True)
class _Work:
    """One migration on its way.

    :param todo: all its statements as text, in order.
    :param done: those that were run.
    """

    whole: _Run
    migration: MigrationPlan
    todo: tuple[str, ...]
    done: list[str] = field(default_factory=list)

    @property
    def engine(self) -> Engine:
        return self.whole.engine

    def run(self) -> State:
        """Do everything but the record.

        :returns: the declared state after it.
        """
        for namespace in self.migration.create_namespaces:
            with self._statement(None, _namespace_text(namespace)):
                self.engine.create_namespace(namespace)
        state = self.whole.state
        for table in self.migration.tables:
            after = self._table(table)
            wanted = None if table.wanted is None else settle(table.wanted, after)
            state = state.after(table.declared, table.formerly, wanted)
        return replace(state, namespaces=state.namespaces | self.migration.namespaces)

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """When it fails, say what was done and what was not."""
        try:
            yield
        except IcemigrateError as error:
            left = self.todo[len(self.done) :]
            left = left[1:] if left and left[0] == what else left
            raise Interrupted(self.migration.version, tuple(self.done), what, left, error) from error

    @contextmanager
    def _statement(self, table: TableName | None, text: str) -> Iterator[None]:
        tell, version = self.whole.on_event, self.migration.version
        tell(StatementStarted(version, table, text, len(self.done) + 1, len(self.todo)))
        clock = time.monotonic()
        with self.guard(text):
            yield
        self.done.append(text)
        tell(StatementFinished(version, table, text, time.monotonic() - clock))

    def _table(self, plan: TablePlan) -> Table | None:
        """Do what is to be done to one table; the table that came out of it."""
        for note in plan.notes:
            self._note(plan.name, note)
        with self.guard(f"reading table `{plan.name}`"):
            before = self.engine.table(plan.name)
        expected = before
        for step in plan.steps:
            expected = self._step(plan, step, expected)
        if expected is None:
            return None  # gone already, and nothing was planned for it
        with self.guard(f"checking table `{expected.name}`"):
            after = self._verified(plan, before, expected)
        if plan.wanted is not None:
            with self.guard(f"marking table `{expected.name}`"):
                self._mark(plan, before, after)
        return after

    def _step(self, plan: TablePlan, step: Step, current: Table | None) -> Table:
        """Run a step; the table as it is foreseen to be then."""

        def fold(table: Table) -> Table:
            return reduce(lambda t, c: c.change.apply(t), step.changes, table)

        name = plan.name if current is None else current.name
        foreseen = fold(current or _blank(plan))
        for statement in step.statements:
            with self._statement(name, _text(statement)):
                if isinstance(statement, Sql):
                    self.engine.sql(statement.text)
                elif current is None:
                    self.engine.create(foreseen)
                elif foreseen.name != current.name:
                    self.engine.rename(current.name, foreseen.name)
                else:
                    self.engine.commit(name, fold)
        return foreseen

    def _verified(self, plan: TablePlan, before: Table | None, expected: Table) -> Table:
        actual = self.engine.table(expected.name)
        if actual is None:
            raise EngineError(f"table `{expected.name}` is not there afterwards")
        if expected.name != plan.name and self.engine.table(plan.name) is not None:
            raise EngineError(f"table `{plan.name}` is still there under its old name")
        verdict = verify(before, expected, actual)
        if verdict.ignored:
            raise EngineError(
                f"the catalog said yes and did something else: {'; '.join(verdict.ignored)}",
                "see whether this catalog can do it at all",
            )
        for fact in verdict.foreign:
            self._note(expected.name, f"changed by somebody else meanwhile: {fact}")
        if verdict.renumbered:
            fields = ", ".join(verdict.renumbered)
            self._note(expected.name, f"the catalog gave other field ids than foreseen: {fields}")
            self.whole.renumbered.add(plan.declared)
        self.whole.on_event(TableVerified(self.migration.version, expected.name))
        return actual

    def _mark(self, plan: TablePlan, before: Table | None, after: Table) -> None:
        """Tag the table.

        Every table that the migration mentions and leaves standing is tagged, so that one tag reads all of
        them.  A run that finds the table's changes done leaves the tag of the rows before them as it is.
        """
        rows = before.snapshot if plan.steps and before is not None and before.has_rows else None
        marker = Marker(
            project=self.whole.plan.project,
            version=self.migration.version,
            description=self.migration.description,
            checksum=self.migration.checksum,
            before=rows.id if rows else None,
            keep=self.whole.keep,
        )
        self.engine.mark(after.name, marker)
        self.whole.on_event(TableMarked(self.migration.version, after.name, marker.tag))

    def _note(self, table: TableName, text: str) -> None:
        self.whole.on_event(Noted(self.migration.version, table, text))


def _statements(migration: MigrationPlan) -> tuple[str, ...]:
    namespaces = [_namespace_text(n) for n in migration.create_namespaces]
    return (*namespaces, *(_text(s) for t in migration.tables for step in t.steps for s in step.statements))


def _namespace_text(namespace: tuple[str, ...]) -> str:
    return f"create namespace {format_path(namespace)}"


def _text(statement: Statement) -> str:
    return statement.text if isinstance(statement, Sql) else f"metadata commit: {statement.summary}"


def _indent(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _blank(plan: TablePlan) -> Table:
    """What a new table is made from."""
    version = DEFAULT_FORMAT_VERSION if plan.wanted is None else plan.wanted.format_version
    return Table(plan.name, Schema(), format_version=version)
