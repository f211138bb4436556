"""The run of one migration: namespaces, then each table is changed, published and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from icemigrate.changes.rename_table import RenameTable
from icemigrate.data_steps.not_null_check import NotNullCheck
from icemigrate.errors import EngineError, IcemigrateError, LockHeld
from icemigrate.events import Event, TableVerified
from icemigrate.execution.final_state import final_declared_state
from icemigrate.execution.opened_tables import (
    OpenedTable,
    expected_table,
    opened_table,
    owner_change,
    require_changed,
)
from icemigrate.execution.released_snapshots import released_snapshots
from icemigrate.execution.row_publication import RowPublisher, UnpublishedTable, with_values
from icemigrate.execution.statement_log import StatementLog
from icemigrate.execution.table_checks import (
    foreign_changes,
    new_fields,
    renumbered_fields_error,
    require_planned_ids,
)
from icemigrate.execution.table_groups import TableGroups
from icemigrate.execution.table_rows import MigrationRows
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import PublishedRows
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import Direction, MigrationPlan, TablePlan
from icemigrate.planning.plan_file import structural_json
from icemigrate.planning.stages import (
    ChangeTable,
    CheckPreconditions,
    CreateNamespaces,
    DropNamespaces,
    PublishTable,
    RecheckRows,
    RewriteFiles,
    Stage,
    StagesOfTables,
    WriteRows,
    create_namespace_text,
    drop_namespace_text,
    migration_stages,
)
from icemigrate.planning.undo import with_committed_fields
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.publish import Publisher


@dataclass(slots=True)
class MigrationRun:
    """Runs one migration.

    :param marker: recorded on its tables.
    :param before_each: called with the text of each statement and commit before it runs; may raise.
    :param catalog: the catalog's name in Spark SQL.
    :param undo: the tables as the migration first found them, in the order of its tables; ``None`` where it
        changes no rows.
    :param correct_undo_record: writes the undo record after a commit.
    :param planned_tables: the tables in the plan, by name in the catalog; ``None`` for a missing one.
    :param is_redo: whether it is applied again after a rollback.
    :param is_resumed: whether an earlier run has begun it.
    :param run_id: id of the lock's acquisition.
    :param started_tables: declared names of tables that may have changed.
    :param tables_after: the tables as they were read back, by the declared name in their plan; ``None`` for a
        dropped one.
    :param renumbered: declared names of tables whose new fields got other ids than predicted.
    :param committed: the schema of the last commit of a table, by the declared name in its plan.
    :param published: the rows on the main branch, by the declared name in the plan of a table with data
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
    correct_undo_record: Callable[[UndoRecord], None] = lambda undo: None
    planned_tables: Mapping[TableName, Table | None] = field(default_factory=dict)
    is_redo: bool = False
    is_resumed: bool = False
    run_id: str = ""
    started_tables: set[TableName] = field(default_factory=set)
    tables_after: dict[TableName, Table | None] = field(default_factory=dict)
    renumbered: set[TableName] = field(default_factory=set)
    committed: dict[TableName, Schema] = field(default_factory=dict)
    published: dict[TableName, PublishedRows | None] = field(default_factory=dict)
    stages: tuple[Stage, ...] = field(init=False)
    log: StatementLog = field(init=False)
    row_publisher: RowPublisher = field(init=False)
    _groups: TableGroups = field(init=False, repr=False)
    _publications: Mapping[TableName, PublishTable] = field(init=False, repr=False)
    _stages_of_tables: StagesOfTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.stages = migration_stages(self.migration, self.catalog, self.marker.project)
        self._stages_of_tables = StagesOfTables(self.stages)
        self.log = StatementLog(self.migration, self.stages, self.on_event, self.before_each, self.is_redo)
        self.row_publisher = RowPublisher(
            self.engine, self.publisher, self.marker, self.log, self.catalog, self._is_committed
        )
        self._groups = TableGroups(self)
        self._publications = {s.table.declared: s for s in self.stages if isinstance(s, PublishTable)}

    def run(self) -> None:
        """Run all stages.

        :raises IcemigrateError: a statement, a commit or the verification failed.
        """
        zone = self.engine.in_time_zone(self.migration.time_zone)
        with zone, self._no_branches_left() as unpublished:
            for stage in self.stages:
                self._run_stage(stage, unpublished)

    def _run_stage(self, stage: Stage, unpublished: list[UnpublishedTable]) -> None:
        """Run one stage.

        :param unpublished: the tables whose rows wait for their publication.
        """
        match stage:
            case CheckPreconditions():
                self._ask_before(stage.table)
            case CreateNamespaces():
                for number, namespace in enumerate(stage.namespaces, stage.first):
                    with self.log.statement(create_namespace_text(namespace), number=number):
                        self.engine.create_namespace(namespace)
            case ChangeTable(table=plan):
                publish = self._publications.get(plan.declared)
                if publish is not None:
                    unpublished.append(self._prepared(stage, publish))
                elif not self._groups.change(stage):
                    self._change_table(stage)
            case WriteRows():
                self.row_publisher.write(unpublished[-1])
            case RecheckRows():
                self.row_publisher.rewrite_overtaken_rows(unpublished)
            case PublishTable(table=plan):
                written = next(table for table in unpublished if table.plan is plan)
                self.tables_after[plan.declared] = self._publish(written)
            case RewriteFiles():
                unpublished.clear()  # their branches are dropped; an undo needs the old files until here
                self._settle(stage.table)
            case DropNamespaces():
                unpublished.clear()
                for number, namespace in enumerate(stage.namespaces, stage.first):
                    self._drop_namespace(namespace, number)

    def final_declared_state(self, state: DeclaredState) -> DeclaredState:
        """The declared state after the migration, with the ids that the catalog assigned."""
        return final_declared_state(self.migration, state, self.tables_after, self.committed)

    def _drop_namespace(self, namespace: tuple[str, ...], number: int) -> None:
        """Drop a namespace that is empty; one that remains is a note, not a failure."""
        why = "another client created something in it"
        try:
            with self.log.statement(drop_namespace_text(namespace), number=number):
                is_gone = self.engine.drop_namespace(namespace)
        except EngineError as error:
            is_gone, why = False, error.message
        if not is_gone:
            self.log.note(None, f"namespace {format_path(namespace)} stays: {why}")

    def _change_table(self, stage: ChangeTable) -> None:
        """Change one table whose rows are not written."""
        found = self.opened(stage)
        self._note_started(found.plan)
        actual = self.row_publisher.run_steps(found.plan, found.before, found.marker, stage.first_of_steps)
        self.log.forget_copies()
        self.check_changed(found, actual)

    def opened(self, stage: ChangeTable) -> OpenedTable:
        """A table before its first change, and the marker that it gets."""
        plan = stage.table
        before = self._found(plan)
        if plan.wanted is not None:
            self.log.start(f"marking table `{plan.name}`")
        return opened_table(stage, before, self.marker)

    def check_changed(self, found: OpenedTable, actual: Table | None) -> None:
        """Verify a table after its changes, and note it.

        :param actual: as it was read back.
        """
        plan, expected = found.plan, found.expected
        if expected is not None:  # else it was gone already, and the plan has no steps for it
            self.log.note_current(f"checking table `{expected.name}`")
            self._verify(plan, found.before, expected, actual)
            self._settle_owner(plan, actual)
        self.tables_after[plan.declared] = None if plan.wanted is None or expected is None else actual

    def _note_started(self, plan: TablePlan) -> None:
        """Note that a table may change from now on, and one that is moved out of its way."""
        moved = {c.change.new for c in plan.changes() if isinstance(c.change, RenameTable)}
        self.started_tables.add(plan.declared)
        if moved:
            self.started_tables |= {t.declared for t in self.migration.tables if t.temporary_name in moved}

    def _settle_owner(self, plan: TablePlan, actual: Table | None) -> None:
        """Claim a table that no commit has claimed, or release one that is no longer declared."""
        change = owner_change(plan, self.migration.direction, actual, self.marker.project)
        if actual is not None and change is not None:
            what, owner = change
            self.log.start(f"{what} table `{actual.name}`")
            self.engine.set_owner(actual.name, owner)

    def _found(self, plan: TablePlan) -> Table | None:
        """The table before its first change."""
        self.log.start(f"reading table `{plan.name}`")
        before = self.engine.table(plan.first_name)
        as_planned = (
            before if plan.temporary_name is None or before is None else replace(before, name=plan.name)
        )
        for fact in foreign_changes(plan, self.planned_tables, as_planned):
            self.log.note(plan.name, f"changed by another client meanwhile: {fact}")
        return before

    def _ask_before(self, plan: TablePlan) -> None:
        """Check the preconditions of a table, unless an earlier run has changed it."""
        self.log.start(f"reading table `{plan.name}`")
        before, first = self.engine.table(plan.name), self._first(plan)
        if before is None or first is None:
            return
        if self.is_resumed and structural_json(before) != structural_json(first):
            return
        # Otherwise another client's change would appear as a query that cannot run.
        foreign_changes(plan, self.planned_tables, before)
        rows = self._rows(plan)
        # Once its rows are published, preconditions need not hold any more.
        if rows.published(before.name) is None:
            rows.check_preconditions()
            if before.snapshot is not None and any(isinstance(p.work, NotNullCheck) for p in plan.rows):
                self.row_publisher.checked_snapshots[plan.declared] = before.snapshot.id

    def _rows(self, plan: TablePlan) -> MigrationRows:
        first = self._first(plan)
        since = None if first is None or first.snapshot is None else first.snapshot.id
        by, hear = self.marker, self.log.record_event
        return MigrationRows(
            self.engine,
            plan,
            by.project,
            by.version,
            self.catalog,
            since,
            hear,
            self.run_id,
            self._stages_of_tables.of(plan),
        )

    @contextmanager
    def _no_branches_left(self) -> Iterator[list[UnpublishedTable]]:
        """Tables with unpublished rows; their branches are dropped where the block fails."""
        waiting: list[UnpublishedTable] = []
        try:
            yield waiting
        except LockHeld:
            raise  # another process may be at work
        except IcemigrateError:
            for written in waiting:
                with suppress(IcemigrateError):  # the next run replaces it
                    written.rows.drop_branch(written.name)
            raise

    def _prepared(self, stage: ChangeTable, publish: PublishTable) -> UnpublishedTable:
        """Make the changes of one table that its rows need."""
        plan = stage.table
        before = self._found(plan)
        require_planned_ids(plan, self.planned_tables, before)
        expected = expected_table(plan, before)
        assert expected is not None, "rows are of a table that is there"
        self._note_started(plan)
        rows = self._rows(plan)
        done = None if before is None else rows.published(before.name)
        on = done.before if done is not None else None if before is None else before.snapshot
        kept = replace(
            self.marker,
            before=with_values(on),
            is_started=True,
            is_fixed=done is not None,
            released=released_snapshots(plan, before),
        )
        self.row_publisher.run_steps(plan, before, kept, stage.first_of_steps)
        if plan.finish:
            self._require_foreseen_ids(plan, before)
        return UnpublishedTable(publish, before, expected, rows, done)

    def _require_foreseen_ids(self, plan: TablePlan, before: Table | None) -> None:
        """Refuse to continue where new fields have other ids than planned, because later steps use their ids.

        :raises StalePlan: another client added fields to the table between the plan and the commit.
        """
        committed = self.committed.get(plan.declared)
        if committed is None or before is None:
            return
        new = new_fields(plan, before).items()
        moved = [path for path, i in new if (there := committed.find(path)) is not None and there.id != i]
        if moved:
            raise renumbered_fields_error(plan, moved)

    def _publish(self, written: UnpublishedTable) -> Table | None:
        """Publish the rows of one table and run its remaining steps; the resulting table."""
        plan, name = written.plan, written.name
        actual = self.row_publisher.publish(written)
        self.published[plan.declared] = written.done or written.rows.published(name)
        self.log.note_current(f"checking table `{name}`")
        self._verify(plan, written.before, written.expected, actual)
        self._settle_owner(plan, actual)
        return actual

    def _settle(self, plan: TablePlan) -> None:
        """Run the statements that work on the published table."""
        found = self.tables_after[plan.declared]
        assert found is not None, "rows are of a table that is there"
        rows = self._rows(plan)
        rows.run_final_statements(found.name)
        if self.published[plan.declared] is not None:
            self.published[plan.declared] = rows.published(found.name)  # also after the rewrite
        self.log.note_current(f"checking table `{found.name}`")
        self.tables_after[plan.declared] = self.engine.table(found.name)
        if self.tables_after[plan.declared] is None:
            raise EngineError(f"table `{found.name}` is missing after the migration")

    def _is_committed(self, plan: TablePlan, before: Schema, committed: Schema) -> None:
        """Correct the undo record after a commit of a table, before any other action.

        If the ids are those of the plan, and the commit's tag proves which fields it added, the record in the
        history is correct already.
        """
        self.committed[plan.declared] = committed
        if self.undo is None or self.migration.direction is not Direction.APPLY:
            return
        at = next(i for i, p in enumerate(self.migration.tables) if p.declared == plan.declared)
        was = self.undo.tables[at]
        if self.is_resumed and was.created is None:
            return  # the fields that the earlier run added are unknown
        now = with_committed_fields(was, before, committed)
        if now == was or was.actual_before is None:
            return
        tables = tuple(now if i == at else table for i, table in enumerate(self.undo.tables))
        self.undo = replace(self.undo, tables=tables)
        if now.after != was.after or not was.is_tagged:
            self.correct_undo_record(self.undo)

    def _first(self, plan: TablePlan) -> Table | None:
        """The table before the migration's first run."""
        if self.undo is None:
            return None
        at = self.migration.tables.index(plan)
        return self.undo.tables[at].actual_before

    def _verify(self, plan: TablePlan, before: Table | None, expected: Table, actual: Table | None) -> None:
        verdict = require_changed(self.engine, plan, before, expected, actual, self.marker)
        for fact in verdict.foreign:
            self.log.note(expected.name, f"changed by another client meanwhile: {fact}")
        if verdict.renumbered:
            fields = ", ".join(verdict.renumbered)
            self.log.note(expected.name, f"the catalog assigned other field ids than planned: {fields}")
            self.renumbered.add(plan.declared)
        self.log.record_event(TableVerified(self.migration.version, expected.name))
