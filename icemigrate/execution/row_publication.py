"""Publishes a migration's rows while other clients write to the same table.

Other clients take no lock.  So every publication is an attempt on a known snapshot: if another client was
faster, nothing is published, and the rows are written and checked again.  A column that becomes required must
have a value in the other client's rows too: Spark reads a null as 0, and no reader can read a file without
the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeVar

from icemigrate.changes.make_required import MakeRequired
from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.data_step_kind import PAUSE_WRITERS_HINT, DataStepStage, QueryExpectation
from icemigrate.data_steps.not_null_check import NotNullCheck
from icemigrate.data_steps.publication_state import LATE_SUMMARY_PROPERTY
from icemigrate.data_steps.retype import Retype
from icemigrate.diagnostics import format_count
from icemigrate.errors import EngineError, HeadMoved
from icemigrate.execution.opened_tables import OpenedTable
from icemigrate.execution.statement_log import StatementLog
from icemigrate.execution.table_rows import MigrationRows, NumberedStatement
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.file_evidence_values import PublishedRows
from icemigrate.iceberg.names import RETYPE_SUFFIX, FieldPath, TableName, format_path
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.planning.plan import Direction, Step, TablePlan
from icemigrate.planning.stages import CheckPreconditions, PublishTable, WriteRows
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.publish import Publisher
from icemigrate.spark.publish_together import TableOfTransaction
from icemigrate.spark.row_branches import require_table
from icemigrate.spark_sql.expressions import null_sql
from icemigrate.spark_sql.identifiers import table_sql
from icemigrate.spark_sql.type_sql import spark_loads


@dataclass(slots=True)
class ConcurrentRows(MigrationRows):
    """The statements for rows that other clients wrote after the migration's own, before columns are swapped.

    They are not the migration's rows: its undo does not remove them.

    :param seen: the newest snapshot whose rows are complete.
    """

    note: ClassVar[str] = LATE_SUMMARY_PROPERTY
    seen: int | None = field(default=None, init=False)

    @classmethod
    def after_rows(cls, rows: MigrationRows, seen: int | None) -> ConcurrentRows:
        """The statements for rows that came after published rows."""
        late = cls(
            rows.engine,
            rows.plan,
            rows.project,
            rows.version,
            rows.catalog,
            rows.since,
            rows.on_event,
            rows.run,
            rows.stages,
        )
        late.seen = seen
        return late

    def _statements(
        self, name: TableName, table: Table
    ) -> tuple[Sequence[NumberedStatement], Sequence[NumberedStatement]]:
        """The statements that complete these rows, and the check of them; none without such rows.

        :raises EngineError: these rows cannot be identified.
        """
        if table.snapshot_id == self.seen:
            return [], []
        branch = self._planned(name)
        written = next((stage for stage in self.stages if isinstance(stage, WriteRows)), None)
        if written is None:
            return [], []
        writes = [*_values(written, table, branch)]
        if writes:
            self._note(name, "another client added rows meanwhile; they are filled too")
        checks = missing_value_checks(self.plan.finish, table, branch)
        # They repeat the queries after the data steps that filled the columns.
        fills = [n for n, s in written.numbered_data_steps() if s.work.stage is DataStepStage.WRITE]
        return writes, [(max(fills, default=0), check) for check in checks]


def _values(stage: WriteRows, table: Table, branch: str) -> Iterator[NumberedStatement]:
    """The values of the data steps for later rows."""
    works = [planned.work for planned in stage.data_steps]
    paths: tuple[FieldPath, ...] = tuple(
        schema_index(table.schema)[c.field_id].path for c in _made_required(stage.table.finish, table)
    )
    # If several steps fill one column, another order or other conditions may give other values.
    fills = sum(isinstance(work, Backfill) for work in works)
    for number, planned in stage.numbered_data_steps():
        work = planned.work
        if isinstance(work, Retype):
            old, new = table.schema.find(work.path), table.schema.find(work.temporary)
            if old is None or new is None:
                continue  # they are swapped already
            if new.initial_default is not None:
                raise EngineError(
                    f"another client wrote rows to table `{table.name}` meanwhile; rows without a value "
                    f"of {work.column} cannot be found, since they read its default",
                    f"{PAUSE_WRITERS_HINT}; then run `icemigrate rollback` and apply again",
                )
        for statement in work.late_row_statements(branch, paths if fills == 1 else ()):
            yield number, statement


def missing_value_checks(steps: Sequence[Step], table: Table, rows: str) -> Iterator[QueryExpectation]:
    """Whether rows are without a value of a column that steps make required.

    :param rows: the table or its branch, as SQL names it.
    """
    made = _made_required(steps, table)
    if not made:
        return
    names = {c.field_id: format_path((*c.path[:-1], c.path[-1].removesuffix(RETYPE_SUFFIX))) for c in made}
    conditions = tuple(null_sql(table.schema, field_id) for field_id in names)
    for ask in NotNullCheck(tuple(names.values()), conditions).statements(rows):
        assert isinstance(ask, QueryExpectation), "it does nothing but ask"
        yield replace(ask, hint=f"give these rows a value, or {PAUSE_WRITERS_HINT}; then apply again")


def _made_required(steps: Sequence[Step], table: Table) -> tuple[MakeRequired, ...]:
    """The changes that make fields of a table required; none where Spark cannot ask its rows."""
    if not spark_loads(table.schema):
        return ()
    optional = {
        field_id for field_id, entry in schema_index(table.schema).items() if not entry.field.required
    }
    changes = (planned.change for step in steps for planned in step.changes)
    return tuple(c for c in changes if isinstance(c, MakeRequired) and c.field_id in optional)


_T = TypeVar("_T")


class UnpublishedTable(Frozen):
    """A table whose rows are not published yet.

    :param before: the table before the migration.
    :param expected: the table after it.
    :param done: the part that an earlier run has published already.
    """

    stage: PublishTable
    before: Table | None
    expected: Table
    rows: MigrationRows
    done: PublishedRows | None

    @property
    def plan(self) -> TablePlan:
        """What the migration does to the table."""
        return self.stage.table

    @property
    def name(self) -> TableName:
        """The table in the catalog by now."""
        return self.expected.name


@dataclass(slots=True)
class RowPublisher:
    """Publishes one migration's changes of tables while others may write to them.

    :param on_commit: called right after a commit of a table that may have added fields, see
        :data:`~icemigrate.spark.publish.OnCommit`.
    :param checked_snapshots: the snapshot of each table whose rows have values for columns that become
        required, by declared name.
    :param published_tables: the tables with published rows, under all their names.
    """

    engine: Engine
    publisher: Publisher
    marker: Marker
    log: StatementLog
    catalog: str
    on_commit: Callable[[TablePlan, Schema, Schema], None]
    checked_snapshots: dict[TableName, int | None] = field(default_factory=dict)
    published_tables: set[TableName] = field(default_factory=set)

    def run_steps(self, plan: TablePlan, before: Table | None, marker: Marker, first: int) -> Table | None:
        """Run the steps of a table.

        :param before: the table as last read.
        :param first: the number of the first statement of these steps.
        :returns: the resulting table; ``None`` where it is dropped.
        :raises CheckFailed: a row has no value for a column that becomes required.
        """
        if before is not None and self.log.migration.direction is Direction.APPLY:
            before = self._looked_at(plan, before)
        return self._published(plan, before, marker, first)

    def of_transaction(self, found: OpenedTable) -> TableOfTransaction:
        """A table that one transaction changes together with the others; see :meth:`run_steps`.

        :param found: a table that exists.
        """
        plan, before = found.plan, found.before
        assert before is not None, "a transaction creates no table"
        if self.log.migration.direction is Direction.APPLY:
            before = self._looked_at(plan, before)
        listener = self.log.publisher_listener(found.stage.first_of_steps)
        return TableOfTransaction(plan, before, found.marker, listener, partial(self.on_commit, plan))

    def _published(self, plan: TablePlan, before: Table | None, marker: Marker, first: int) -> Table | None:
        listener = self.log.publisher_listener(first)
        return self.publisher.publish(plan, before, marker, listener, partial(self.on_commit, plan))

    def _looked_at(self, plan: TablePlan, before: Table) -> Table:
        """The table with rows that have values for columns that become required.

        A commit after other writes is refused
        (:func:`~icemigrate.spark.conflict_check.require_checked_rows`).  These rows were checked before
        everything else, which may be hours ago: rows that came since are checked now.
        """
        questions = [*missing_value_checks(plan.steps, before, table_sql(self.catalog, before.name))]
        if not questions:
            return before
        now = require_table(self.engine, before.name).snapshot
        if now is not None and self.checked_snapshots.get(plan.declared) != now.id:
            number = self._null_check_number(plan)
            for ask in questions:
                with self.log.statement(ask.text, before.name, number):
                    ask.require(self.engine.ask(ask.text))
        return replace(before, snapshot=now)

    def _null_check_number(self, plan: TablePlan) -> int:
        """The number of the check that ran before the migration; 0 if the plan has none."""
        checks = (
            number
            for stage in self.log.stages
            if isinstance(stage, CheckPreconditions) and stage.table.declared == plan.declared
            for number, planned in stage.numbered_data_steps()
            if isinstance(planned.work, NotNullCheck)
        )
        return next(checks, 0)

    def write(self, written: UnpublishedTable) -> None:
        """Write the rows of a table; rows that an earlier run has published are not written again."""
        if written.done is None:
            written.rows.write(written.name, self.published_tables)
        else:
            self.log.note(written.name, "its rows were published by an earlier run")
            written.rows.drop_branch(written.name)
            self._is_out(written)

    def rewrite_overtaken_rows(self, waiting: Sequence[UnpublishedTable]) -> None:
        """Write rows again on tables that others wrote to, until all of them are current.

        Their rows may fail a check, and no rows may be published then.  Between this check and the last
        publication that is still possible, because no catalog publishes two tables at once.
        """
        while behind := [w for w in waiting if w.done is None and not w.rows.is_current(w.name)]:
            for written in behind:
                written.rows.write(written.name, self.published_tables)

    def publish(self, written: UnpublishedTable) -> Table | None:
        """Publish the rows of one table and run its remaining steps; returns the resulting table."""
        if written.plan.finish and self.publisher.is_single_commit:
            actual = self._at_once(written)
        else:
            actual = self._one_by_one(written)
        self._is_out(written)
        return actual

    def _at_once(self, written: UnpublishedTable) -> Table | None:
        """Publish the rows and the remaining steps in one commit.

        Rows written before it cause another attempt; rows written after it have the new schema.
        """
        rows, name = written.rows, written.name
        if written.done is not None:
            rows = ConcurrentRows.after_rows(rows, written.done.last.id)
            rows.write(name, self.published_tables)

        def attempt() -> Table | None:
            there = require_table(self.engine, name)
            publication = rows.publication(there)
            published = as_steps([DetectedChange(publication, there)], self.catalog)
            actual = self._finish(written, (*published, *written.plan.finish))
            if publication.rows is not None:
                rows.require_published(name, publication.rows.id)
            return actual

        return self._until_out(rows, name, attempt)

    def _one_by_one(self, written: UnpublishedTable) -> Table | None:
        """Run the remaining steps where the rows are published already; later rows of others are completed
        first.
        """
        rows, name, finish = written.rows, written.name, written.plan.finish
        if written.done is None:
            seen = self._until_out(rows, name, partial(rows.publish, name))
        else:
            seen = written.done.last.id
        if not finish:
            return self._finish(written, ())
        self._is_out(written)
        late = ConcurrentRows.after_rows(rows, seen)
        late.write(name, self.published_tables)
        while late.is_on_branch:
            late.seen = self._until_out(late, name, partial(late.publish, name))
            late.write(name, self.published_tables)
        last = late.base
        self.checked_snapshots[written.plan.declared] = None if last is None else last.id
        actual = self._finish(written, finish)
        now = None if actual is None else actual.snapshot
        if now is not None and (last is None or now.id != last.id):
            came = "rows" if last is None else _more(now.total_records, last.total_records)
            self.log.note(
                name,
                f"another client wrote {came} while columns were swapped one by one: its values of an old "
                "column are in the dropped field, which a rollback restores",
            )
        return actual

    def _until_out(self, rows: MigrationRows, name: TableName, attempt: Callable[[], _T]) -> _T:
        """Repeat an attempt until no other client commits in between; after each failure, the rows are
        written again.

        :raises EngineError: others were faster every time.
        """
        while True:
            with suppress(HeadMoved):
                return attempt()
            rows.write(name, self.published_tables)

    def _finish(self, written: UnpublishedTable, steps: tuple[Step, ...]) -> Table | None:
        """Run the remaining steps; returns the resulting table."""
        on = written.rows.base if written.done is None else written.done.before
        last = replace(self.marker, before=with_values(on), is_fixed=True)
        plan = replace(written.plan, name=written.name, steps=steps, rows=(), finish=())
        ahead = steps[: len(steps) - len(written.plan.finish)]
        first = written.stage.first_of_steps - sum(len(step.statements) for step in ahead)
        there = self.engine.table(written.name)
        if self.publisher.is_single_commit:  # the rows are checked already, and part of the same commit
            return self._published(plan, there, last, first)
        return self.run_steps(plan, there, last, first)

    def _is_out(self, written: UnpublishedTable) -> None:
        self.published_tables |= {written.plan.name, written.name}


def with_values(snapshot: Snapshot | None) -> int | None:
    """The id of a snapshot that may have rows."""
    return None if snapshot is None or snapshot.total_records == 0 else snapshot.id


def _more(now: int | None, before: int | None) -> str:
    """The number of later rows, as far as it is known."""
    return "rows" if now is None or before is None or now <= before else format_count(now - before, "row")
