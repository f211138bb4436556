"""One migration on its way: namespaces, then table by table publish and verify."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from icemigrate.data.base import Stage
from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import Publisher, blank, fold, statement_text
from icemigrate.errors import EngineError
from icemigrate.events import (
    Event,
    FilesRewritten,
    Noted,
    StatementFinished,
    StatementStarted,
    TablePublished,
    TablePublishing,
    TableVerified,
)
from icemigrate.executor.faults import Report
from icemigrate.executor.ground import changed_beside
from icemigrate.executor.rows import Rows
from icemigrate.executor.verify import verify
from icemigrate.frozen import replace
from icemigrate.model.evidence import Publication
from icemigrate.model.names import TableName, format_path
from icemigrate.model.sides import State
from icemigrate.model.table import Snapshot, Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import Direction, MigrationPlan, Step, TablePlan
from icemigrate.plan_file import structure
from icemigrate.plan_rows import RowsPart, running
from icemigrate.planner import settle


@dataclass(slots=True)
class Work:
    """What one migration does to the catalog.

    :param marker: what is left on its tables.
    :param on_event: told of every step.
    :param before_each: called before every statement and commit with what it is in words; may raise.
    :param catalog: the catalog's name in Spark SQL.
    :param undo: the tables as the migration first found them, in the order of its tables; ``None`` where it
        changes no rows.
    :param known: the tables as the plan found them, by name in the catalog; ``None`` where there was none.
    :param is_redo: whether it is applied once more, after it was rolled back.
    :param begun: declared names of tables on which anything may have been done.
    :param after: the tables as they were read back, by the declared name in their plan; ``None`` where gone.
    :param renumbered: declared names of tables whose new fields got other ids than foreseen.
    :param published: the rows on the main branch, by the declared name in the plan of a table that has data
        steps; ``None`` where none had to be written.
    """

    migration: MigrationPlan
    engine: Engine
    publisher: Publisher
    marker: Marker
    on_event: Callable[[Event], None]
    before_each: Callable[[str], None] = lambda text: None
    catalog: str = ""
    undo: UndoRecord | None = None
    known: Mapping[TableName, Table | None] = field(default_factory=dict)
    is_redo: bool = False
    begun: set[TableName] = field(default_factory=set)
    after: dict[TableName, Table | None] = field(default_factory=dict)
    renumbered: set[TableName] = field(default_factory=set)
    published: dict[TableName, Publication | None] = field(default_factory=dict)
    _done: list[str] = field(default_factory=list)
    _copied: dict[int, str] = field(default_factory=dict)
    _number: int = 0
    _at: str = ""
    _base: int = 0
    _todo: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._todo = statements(self.migration, self.catalog)

    def run(self) -> None:
        """Do all of it.

        :raises IcemigrateError: a statement, a commit or the check afterwards failed; see :meth:`report`.
        """
        for table in self.migration.tables:
            self._base = len(self._done)
            self._ask_before(table)
        for namespace in self.migration.create_namespaces:
            self._namespace(namespace)
        for table in self.migration.tables:
            self._base = len(self._done)
            self.after[table.declared] = self._table(table)
        # Files are written again only when nothing else can fail: an undo needs what they hold.
        for table in self.migration.tables:
            if any(planned.work.stage is Stage.SETTLED for planned in table.rows):
                self._settle(table)
        for namespace in self.migration.drop_namespaces:
            self._drop_namespace(namespace)

    def settled(self, state: State) -> State:
        """The declared state after it, with the ids that the catalog gave."""
        for table in self.migration.tables:
            wanted, base = table.wanted, state.tables.get(table.formerly) if table.formerly else None
            # Undoing a baseline changes no table: what it found gone is not what has that name now.
            if wanted is not None and not self.migration.baseline:
                wanted = settle(wanted, self.after[table.declared], base)
            state = state.after(table.declared, table.formerly, wanted)
        now = self.migration.namespaces
        is_undo = self.migration.direction is Direction.ROLLBACK
        return replace(state, namespaces=now if is_undo else state.namespaces | now)

    @property
    def done(self) -> tuple[str, ...]:
        """What was run, in order."""
        return tuple(self._done)

    def report(self) -> Report:
        """How far it came."""
        left = [*self._todo]
        for text in (*self._done, self._at):
            if text in left:
                left.remove(text)
        return Report(
            self.migration.version,
            self.migration.direction,
            self.done,
            self._at,
            tuple(left),
            f"apply --redo {self.migration.version}" if self.is_redo else self.migration.direction.value,
            is_on_copy=bool(self._copied),
        )

    def recording(self) -> None:
        """From here on it is the record in the history that may fail."""
        self._at = "the record in the history"

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        with self._as_statement(_namespace_text(namespace)):
            self.engine.create_namespace(namespace)

    def _drop_namespace(self, namespace: tuple[str, ...]) -> None:
        """Drop it, unless somebody uses it by now; one that stays harms nobody, so nothing fails by it."""
        why = "somebody put something into it meanwhile"
        try:
            with self._as_statement(_drop_text(namespace)):
                is_gone = self.engine.drop_namespace(namespace)
        except EngineError as error:
            is_gone, why = False, error.message
        if not is_gone:
            self._note(None, f"namespace {format_path(namespace)} stays: {why}")

    @contextmanager
    def _as_statement(self, text: str) -> Iterator[None]:
        """Tell of what is done within as of a statement."""
        self._base = len(self._done)
        self._hear(StatementStarted(self.migration.version, None, text, 1, 1))
        clock = time.monotonic()
        yield
        self._hear(StatementFinished(self.migration.version, None, text, time.monotonic() - clock))

    def _table(self, plan: TablePlan) -> Table | None:
        """Do what is to be done to one table; the table that came out of it."""
        self._next(f"reading table `{plan.name}`")
        before = self.engine.table(plan.name)
        for fact in changed_beside(plan, self.known, before):
            self._note(plan.name, f"changed by somebody else meanwhile: {fact}")
        expected = foreseen(plan, before)
        if plan.rows:
            assert expected is not None, "rows are of a table that is there"
            self.begun.add(plan.declared)
            actual = self._with_rows(plan, before, expected.name)
            self._at = f"checking table `{expected.name}`"
            self._verify(plan, before, expected, actual)
            return actual
        rows = before.snapshot if plan.steps and before is not None and before.has_rows else None
        if plan.wanted is not None:
            self._next(f"marking table `{plan.name}`")
        marker = replace(self.marker, before=rows.id if rows else None)
        self.begun.add(plan.declared)
        actual = self.publisher.publish(plan, before, marker, self._hear)
        self._copied.clear()
        if expected is None:
            return None  # gone already, and nothing was planned for it
        self._at = f"checking table `{expected.name}`"
        self._verify(plan, before, expected, actual)
        return actual if plan.wanted is not None else None

    def _ask_before(self, plan: TablePlan) -> None:
        """Ask what must hold before anything is done, unless an earlier run has begun with the table."""
        if not any(work.work.stage is Stage.BEFORE for work in plan.rows):
            return
        self._next(f"reading table `{plan.name}`")
        before, first = self.engine.table(plan.name), self._first(plan)
        if before is None or first is None or structure(before) != structure(first):
            return
        rows = self._rows(plan)
        # Once its rows are out, what held before them need not hold any more.
        if rows.published(before.name) is None:
            rows.ask_before()

    def _rows(self, plan: TablePlan) -> Rows:
        first = self._first(plan)
        since = None if first is None or first.snapshot is None else first.snapshot.id
        return Rows(
            self.engine, plan, self.marker.project, self.marker.version, self.catalog, since, self._hear
        )

    def _with_rows(self, plan: TablePlan, before: Table | None, name: TableName) -> Table | None:
        """What the rows need, the rows, and what is left; the table that came out of it.

        :param name: the table in the catalog afterwards.
        """
        rows = self._rows(plan)
        done = None if before is None else rows.published(before.name)
        on = before.snapshot if done is None and before is not None else None if done is None else done.before
        kept = replace(self.marker, before=_with_values(on), is_begun=True, is_fixed=done is not None)
        self._base = len(self._done)
        self.publisher.publish(plan, before, kept, self._hear)
        self._base = len(self._done)
        if done is None:
            on = rows.publish(name)
        else:
            self._note(name, "its rows were published by an earlier run")
            rows.drop_branch(name)
        self.published[plan.declared] = done or rows.published(name)
        self._base = len(self._done)
        last = replace(self.marker, before=_with_values(on), is_fixed=True)
        return self.publisher.publish(
            replace(plan, name=name, steps=plan.finish, rows=(), finish=()),
            self.engine.table(name),
            last,
            self._hear,
        )

    def _settle(self, plan: TablePlan) -> None:
        """Do what is done on the table itself in the end."""
        found = self.after[plan.declared]
        assert found is not None, "rows are of a table that is there"
        self._base = len(self._done)
        rows = self._rows(plan)
        rows.settle(found.name)
        if self.published[plan.declared] is not None:
            self.published[plan.declared] = rows.published(found.name)  # behind what was rewritten too
        self._at = f"checking table `{found.name}`"
        self.after[plan.declared] = self.engine.table(found.name)
        if self.after[plan.declared] is None:
            raise EngineError(f"table `{found.name}` is not there afterwards")

    def _first(self, plan: TablePlan) -> Table | None:
        """The table as the migration first found it."""
        if self.undo is None:
            return None
        at = self.migration.tables.index(plan)
        return self.undo.tables[at].actual_before

    def _verify(self, plan: TablePlan, before: Table | None, expected: Table, actual: Table | None) -> None:
        if actual is None:
            raise EngineError(f"table `{expected.name}` is not there afterwards")
        if expected.name != plan.name and self.engine.table(plan.name) is not None:
            raise EngineError(f"table `{plan.name}` is still there under its old name")
        own = (self.marker.tag, self.marker.before_tag)
        others = {name: ref for name, ref in actual.refs.items() if name not in own}
        verdict = verify(before, expected, replace(actual, refs=others))
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
            self.renumbered.add(plan.declared)
        self._hear(TableVerified(self.migration.version, expected.name))

    def _hear(self, event: Event) -> None:
        """Keep account of what is done, and pass the event on, statements numbered within the migration."""
        if isinstance(event, StatementStarted):
            self._number = event.number
            # What runs again on a copy, and what came behind it, counts no more as it ran before.
            self._copied = {n: text for n, text in self._copied.items() if n < self._number}
            self._next(event.text)
            event = replace(event, number=self._base + event.number, of=len(self._todo))
        elif isinstance(event, StatementFinished):
            if event.on_copy:
                self._copied[self._number] = event.text
                self.before_each(event.text)  # what comes next may be the commit of them all
            else:
                self._done.append(event.text)
        elif isinstance(event, FilesRewritten):
            self.before_each(f"{self._at}; {event.left} of {event.of} files left")
        elif isinstance(event, TablePublishing):
            self._next(f"the one commit of table `{event.table}`")
        elif isinstance(event, TablePublished):
            self._done += self._copied.values()
            self._copied.clear()
        self.on_event(event)

    def _next(self, text: str) -> None:
        self._at = text
        self.before_each(text)

    def _note(self, table: TableName | None, text: str) -> None:
        self.on_event(Noted(self.migration.version, table, text))


def foreseen(plan: TablePlan, before: Table | None) -> Table | None:
    """The table as the plan's steps will leave it; ``None`` where it is gone and stays so."""
    if not plan.all_steps:
        return before
    return reduce(lambda table, step: fold(step, table), plan.all_steps, before or blank(plan))


def statements(migration: MigrationPlan, catalog: str) -> tuple[str, ...]:
    """All its statements as text, in order.

    :param catalog: the catalog's name in Spark SQL.
    """
    parts = [*running(migration, catalog)]
    asked = [part for part in parts if isinstance(part, RowsPart) and part.is_first]
    return (
        *(text for part in asked for text in _texts(part)),
        *(_namespace_text(n) for n in migration.create_namespaces),
        *(text for part in parts[len(asked) :] for text in _texts(part)),
        *(_drop_text(n) for n in migration.drop_namespaces),
    )


def _texts(part: Step | RowsPart) -> Iterator[str]:
    if isinstance(part, Step):
        return map(statement_text, part.statements)
    return (statement.text for statement in part.statements)


def _with_values(snapshot: Snapshot | None) -> int | None:
    """The id of a snapshot that may have rows."""
    return None if snapshot is None or snapshot.total_records == 0 else snapshot.id


def _drop_text(namespace: tuple[str, ...]) -> str:
    return f"drop namespace {format_path(namespace)}"


def _namespace_text(namespace: tuple[str, ...]) -> str:
    return f"create namespace {format_path(namespace)}"
