"""One migration on its way: namespaces, then table by table publish and verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce

from icemigrate.data.base import Stage
from icemigrate.data.every_value import EveryValue
from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import Publisher, blank, fold
from icemigrate.errors import EngineError, IcemigrateError, LockHeld
from icemigrate.events import Event, TableVerified
from icemigrate.executor.account import Account, dropping_text, making_text
from icemigrate.executor.ground import changed_beside, new_fields, renumbered, require_planned_ids
from icemigrate.executor.publishing import Publishing, Written, with_values
from icemigrate.executor.rows import Rows
from icemigrate.executor.verify import verify
from icemigrate.frozen import replace
from icemigrate.merge import rebind_by_path
from icemigrate.model.evidence import Publication
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Schema, index
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import Direction, MigrationPlan, TablePlan
from icemigrate.plan_file import structure
from icemigrate.planner import settle
from icemigrate.undo import with_commit


@dataclass(slots=True)
class Work:
    """What one migration does to the catalog.

    :param marker: what is left on its tables.
    :param on_event: told of every step.
    :param before_each: called before every statement and commit with what it is in words; may raise.
    :param catalog: the catalog's name in Spark SQL.
    :param undo: the tables as the migration first found them, in the order of its tables; ``None`` where it
        changes no rows.
    :param correct: writes the undo record, once it is known what a commit has made.
    :param known: the tables as the plan found them, by name in the catalog; ``None`` where there was none.
    :param is_redo: whether it is applied once more, after it was rolled back.
    :param is_resumed: whether an earlier run has begun with it.
    :param run_id: of the lock under which it runs.
    :param begun: declared names of tables on which anything may have been done.
    :param after: the tables as they were read back, by the declared name in their plan; ``None`` where gone.
    :param renumbered: declared names of tables whose new fields got other ids than foreseen.
    :param committed: the schema that the last commit of a table produced, by the declared name in its plan.
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
    correct: Callable[[UndoRecord], None] = lambda undo: None
    known: Mapping[TableName, Table | None] = field(default_factory=dict)
    is_redo: bool = False
    is_resumed: bool = False
    run_id: str = ""
    begun: set[TableName] = field(default_factory=set)
    after: dict[TableName, Table | None] = field(default_factory=dict)
    renumbered: set[TableName] = field(default_factory=set)
    committed: dict[TableName, Schema] = field(default_factory=dict)
    published: dict[TableName, Publication | None] = field(default_factory=dict)
    account: Account = field(init=False)
    publishing: Publishing = field(init=False)

    def __post_init__(self) -> None:
        self.account = Account(
            self.migration, self.catalog, self.on_event, self.before_each, self.is_redo, self.marker.project
        )
        self.publishing = Publishing(
            self.engine, self.publisher, self.marker, self.account, self.catalog, self._is_committed
        )

    def run(self) -> None:
        """Do all of it.

        :raises IcemigrateError: a statement, a commit or the check afterwards failed; see :meth:`report`.
        """
        for table in self.migration.tables:
            self._ask_before(table)
        for namespace in self.migration.create_namespaces:
            self._namespace(namespace)
        with self._no_branches_left() as waiting:
            for table in self.migration.tables:
                if any(planned.work.stage is not Stage.BEFORE for planned in table.rows):
                    waiting.append(self._prepared(table))
                    self.publishing.write(waiting[-1])
                else:
                    self.after[table.declared] = self._table(table)
            self.publishing.catch_up(waiting)
            for written in waiting:
                self.after[written.plan.declared] = self._publish(written)
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
                after, committed = self.after[table.declared], self.committed.get(table.declared)
                if after is not None and committed is not None:
                    # By now another client may have given a name of these fields to a field of its own.
                    gone = [] if base is None else [i for i, _ in index(base.schema).new()]
                    wanted = rebind_by_path(wanted, replace(after, schema=committed), kept=gone)
                wanted = settle(wanted, after, base)
            state = state.after(table.declared, table.formerly, wanted)
        now = self.migration.namespaces
        is_undo = self.migration.direction is Direction.ROLLBACK
        return replace(state, namespaces=now if is_undo else state.namespaces | now)

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        with self.account.statement(making_text(namespace)):
            self.engine.create_namespace(namespace)

    def _drop_namespace(self, namespace: tuple[str, ...]) -> None:
        """Drop it, unless somebody uses it by now; one that stays harms nobody, so nothing fails by it."""
        why = "somebody put something into it meanwhile"
        try:
            with self.account.statement(dropping_text(namespace)):
                is_gone = self.engine.drop_namespace(namespace)
        except EngineError as error:
            is_gone, why = False, error.message
        if not is_gone:
            self.account.note(None, f"namespace {format_path(namespace)} stays: {why}")

    def _table(self, plan: TablePlan) -> Table | None:
        """Do what is to be done to one table whose rows are asked at most; the table that came out of it."""
        before = self._found(plan)
        expected = foreseen(plan, before)
        rows = before.snapshot if plan.steps and before is not None and before.has_rows else None
        if plan.wanted is not None:
            self.account.next(f"marking table `{plan.name}`")
        marker = replace(self.marker, before=rows.id if rows else None)
        self.begun.add(plan.declared)
        actual = self.publishing.land(plan, before, marker)
        self.account.forget_copies()
        if expected is None:
            return None  # gone already, and nothing was planned for it
        self.account.at = f"checking table `{expected.name}`"
        self._verify(plan, before, expected, actual)
        self._settle_owner(plan, actual)
        return actual if plan.wanted is not None else None

    def _settle_owner(self, plan: TablePlan, actual: Table | None) -> None:
        """Claim a table that no commit has claimed yet, or give one free that is declared no more."""
        if actual is None:
            return
        project, direction = self.marker.project, self.migration.direction
        if direction is Direction.APPLY and plan.wanted is not None and actual.owner is None:
            self.account.next(f"claiming table `{actual.name}`")
            self.engine.set_owner(actual.name, project)
        is_forgotten = direction is Direction.ROLLBACK and plan.wanted is None and not plan.all_steps
        if is_forgotten and actual.owner == project:
            self.account.next(f"releasing table `{actual.name}`")
            self.engine.set_owner(actual.name, None)

    def _found(self, plan: TablePlan) -> Table | None:
        """The table before anything is done to it."""
        self.account.next(f"reading table `{plan.name}`")
        before = self.engine.table(plan.name)
        for fact in changed_beside(plan, self.known, before):
            self.account.note(plan.name, f"changed by somebody else meanwhile: {fact}")
        return before

    def _ask_before(self, plan: TablePlan) -> None:
        """Ask what must hold before anything is done, unless an earlier run has begun with the table."""
        if not any(work.work.stage is Stage.BEFORE for work in plan.rows):
            return
        self.account.next(f"reading table `{plan.name}`")
        before, first = self.engine.table(plan.name), self._first(plan)
        if before is None or first is None:
            return
        if self.is_resumed and structure(before) != structure(first):
            return
        # What others changed would be told as a query that cannot run.
        changed_beside(plan, self.known, before)
        rows = self._rows(plan)
        # Once its rows are out, what held before them need not hold any more.
        if rows.published(before.name) is None:
            rows.ask_before()
            if before.snapshot is not None and any(isinstance(p.work, EveryValue) for p in plan.rows):
                self.publishing.asked[plan.declared] = before.snapshot.id

    def _rows(self, plan: TablePlan) -> Rows:
        first = self._first(plan)
        since = None if first is None or first.snapshot is None else first.snapshot.id
        by, hear = self.marker, self.account.hear
        return Rows(self.engine, plan, by.project, by.version, self.catalog, since, hear, self.run_id)

    @contextmanager
    def _no_branches_left(self) -> Iterator[list[Written]]:
        """Tables whose rows wait to be published; their branches go where something fails within."""
        waiting: list[Written] = []
        try:
            yield waiting
        except LockHeld:
            raise  # somebody else may be at work by now
        except IcemigrateError:
            for written in waiting:
                with suppress(IcemigrateError):  # the next run replaces it
                    written.rows.drop_branch(written.name)
            raise

    def _prepared(self, plan: TablePlan) -> Written:
        """One table with what its rows need."""
        before = self._found(plan)
        require_planned_ids(plan, self.known, before)
        expected = foreseen(plan, before)
        assert expected is not None, "rows are of a table that is there"
        self.begun.add(plan.declared)
        rows = self._rows(plan)
        done = None if before is None else rows.published(before.name)
        on = done.before if done is not None else None if before is None else before.snapshot
        kept = replace(self.marker, before=with_values(on), is_begun=True, is_fixed=done is not None)
        self.publishing.land(plan, before, kept)
        if plan.finish:
            self._require_foreseen_ids(plan, before)
        return Written(plan, before, expected, rows, done)

    def _require_foreseen_ids(self, plan: TablePlan, before: Table | None) -> None:
        """Refuse to go on where new fields have other ids than planned, since the other steps name their ids.

        :raises StalePlan: another client added fields to the table between the plan and the commit.
        """
        committed = self.committed.get(plan.declared)
        if committed is None or before is None:
            return
        new = new_fields(plan, before).items()
        moved = [path for path, i in new if (there := committed.find(path)) is not None and there.id != i]
        if moved:
            raise renumbered(plan, moved)

    def _publish(self, written: Written) -> Table | None:
        """The rows of one table for all to see, and what is left; the table that came out of it."""
        plan, name = written.plan, written.name
        actual = self.publishing.publish(written)
        self.published[plan.declared] = written.done or written.rows.published(name)
        self.account.at = f"checking table `{name}`"
        self._verify(plan, written.before, written.expected, actual)
        self._settle_owner(plan, actual)
        return actual

    def _settle(self, plan: TablePlan) -> None:
        """Do what is done on the table itself in the end."""
        found = self.after[plan.declared]
        assert found is not None, "rows are of a table that is there"
        rows = self._rows(plan)
        rows.settle(found.name)
        if self.published[plan.declared] is not None:
            self.published[plan.declared] = rows.published(found.name)  # behind what was rewritten too
        self.account.at = f"checking table `{found.name}`"
        self.after[plan.declared] = self.engine.table(found.name)
        if self.after[plan.declared] is None:
            raise EngineError(f"table `{found.name}` is not there afterwards")

    def _is_committed(self, plan: TablePlan, before: Schema, committed: Schema) -> None:
        """Correct the undo record by what a commit has made of a table, before anything else is done.

        Where the ids are those that the plan foresaw, and the commit's tag proves which fields it added, the
        record in the history says so already.
        """
        self.committed[plan.declared] = committed
        if self.undo is None or self.migration.direction is not Direction.APPLY:
            return
        at = next(i for i, p in enumerate(self.migration.tables) if p.declared == plan.declared)
        was = self.undo.tables[at]
        if self.is_resumed and was.created is None:
            return  # what the earlier run has added is not known
        now = with_commit(was, before, committed)
        if now == was or was.actual_before is None:
            return
        tables = tuple(now if i == at else table for i, table in enumerate(self.undo.tables))
        self.undo = replace(self.undo, tables=tables)
        if now.after != was.after or not was.is_tagged:
            self.correct(self.undo)

    def _first(self, plan: TablePlan) -> Table | None:
        """The table as the migration first found it."""
        if self.undo is None:
            return None
        at = self.migration.tables.index(plan)
        return self.undo.tables[at].actual_before

    def _verify(self, plan: TablePlan, before: Table | None, expected: Table, actual: Table | None) -> None:
        if actual is None:
            raise EngineError(f"table `{expected.name}` is not there afterwards")
        old = None if expected.name == plan.name else self.engine.table(plan.name)
        # Another table of the migration may have got the name.
        if old is not None and old.uuid == actual.uuid:
            raise EngineError(f"table `{plan.name}` is still there under its old name")
        own = self.marker.own_tags(actual.refs)
        others = {name: ref for name, ref in actual.refs.items() if name not in own}
        verdict = verify(before, expected, replace(actual, refs=others))
        if verdict.ignored:
            raise EngineError(
                f"the catalog said yes and did something else: {'; '.join(verdict.ignored)}",
                "see whether this catalog can do it at all",
            )
        for fact in verdict.foreign:
            self.account.note(expected.name, f"changed by somebody else meanwhile: {fact}")
        if verdict.renumbered:
            fields = ", ".join(verdict.renumbered)
            self.account.note(expected.name, f"the catalog gave other field ids than foreseen: {fields}")
            self.renumbered.add(plan.declared)
        self.account.hear(TableVerified(self.migration.version, expected.name))


def foreseen(plan: TablePlan, before: Table | None) -> Table | None:
    """The table as the plan's steps will leave it; ``None`` where it is gone and stays so."""
    if not plan.all_steps:
        return before
    return reduce(lambda table, step: fold(step, table), plan.all_steps, before or blank(plan))
