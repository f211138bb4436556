"""How the steps of one migration reach one table: a port, and the publisher that runs statements directly.

:mod:`~icemigrate.spark.publish_atomic` runs them on a structural copy and lands them in one commit;
:mod:`~icemigrate.spark.publish` runs them on the table itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from icemigrate.changes.alter_column import AlterColumnChange, single_field_statements
from icemigrate.changes.change import Change, SqlStatement
from icemigrate.changes.change_reference import ChangeReference
from icemigrate.changes.rename_table import RenameTable
from icemigrate.events import TableMarked
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import refill_branch_name
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DEFAULT_FORMAT_VERSION, Table
from icemigrate.planning.plan import Step, TablePlan
from icemigrate.spark.conflict_check import (
    apply_fitting_changes,
    is_row_dependent,
    require_checked_rows,
    require_preconditions,
)
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.refill import is_refill, refill
from icemigrate.spark.statement_events import Listener, StatementAnnouncer, statement_announcer
from icemigrate.spark.view_statements import is_view_step, run_view_step
from icemigrate.system.process import user_name

if TYPE_CHECKING:
    from icemigrate.spark.publish_creations import CreationPublisher
    from icemigrate.spark.publish_together import TransactionPublisher

OnCommit: TypeAlias = Callable[[Schema, Schema], None]
"""Called with the schema that a commit of the migration was made on, and the schema that it produced."""


def no_commit(before: Schema, committed: Schema) -> None:
    """Ignore a commit, for callers that do not record fields."""


class Publisher(Protocol):
    """Runs the plan of one table.

    :ivar is_single_commit: whether one commit makes all changes of a table's metadata. :ivar tags_at_once:
        whether that commit also puts the migration's tag on the table. :ivar signs: whether each commit that
        adds a field names the run, in a property or by the tag.
    """

    @property
    def is_single_commit(self) -> bool: ...

    @property
    def tags_at_once(self) -> bool: ...

    @property
    def signs(self) -> bool: ...

    @property
    def together(self) -> TransactionPublisher | None:
        """Publishes all tables of a migration at once; ``None`` where each table is published alone."""
        ...

    @property
    def creations(self) -> CreationPublisher | None:
        """Publishes new tables in groups; ``None`` where each table is published alone."""
        ...

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        """Run the plan's steps and put the migration's marker on the table.

        Statements are numbered within the table (:class:`~icemigrate.events.StatementStarted`); those with
        ``on_copy`` have changed nothing until the event :class:`~icemigrate.events.TablePublished`.  The
        caller verifies the result.

        :param before: the table as last read; ``None`` where there is none.
        :param on_commit: called right after a commit that may have added fields.
        :returns: the resulting table; ``None`` where it is dropped.
        :raises EngineError: a statement or a commit failed.
        :raises ConflictError: another client changed the same facts as the plan.
        """
        ...


def statement_texts(
    engine: Engine, statement: SqlStatement, changes: Sequence[Change], before: Table | None
) -> Iterator[str]:
    """The statements of a step in a form that this engine supports: of many columns, or one for each column.

    :param changes: those of the step.
    :param before: the table before the step; ``None`` where the step creates it.
    """
    if before is None or engine.takes_many_columns or not isinstance(changes[0], AlterColumnChange):
        yield statement.text
        return
    for alone in single_field_statements(changes, before, engine.catalog_name):
        assert isinstance(alone, SqlStatement), "only what SQL says is said together"
        yield alone.text


def apply_step(step: Step, table: Table) -> Table:
    """The predicted table after a step.

    :raises ConflictError: the object of a change does not exist any more.
    """
    return apply_fitting_changes((planned.change for planned in step.changes), table)


def empty_table(plan: TablePlan) -> Table:
    """The empty table from which a new table starts."""
    version = DEFAULT_FORMAT_VERSION if plan.wanted is None else plan.wanted.format_version
    return Table(plan.name, Schema(), format_version=version)


def run_step(
    engine: Engine, plan: TablePlan, step: Step, current: Table | None, announcer: StatementAnnouncer
) -> Table:
    """Run a step's statements on the table itself.

    :param current: the predicted table before it; ``None`` where the step creates it.
    :returns: the predicted table after it.
    """
    name = plan.name if current is None else current.name
    foreseen = apply_step(step, current or empty_table(plan))
    if is_refill(step):
        refill(engine, step, announcer)
        return foreseen
    if is_view_step(step):
        run_view_step(engine, step, announcer)
        return foreseen
    _require_unmoved_references(engine, name, step)
    if not engine.runs_sql:
        _commit_step(engine, step, current, foreseen, announcer)
        return foreseen
    for statement in step.statements:
        with announcer.statement(name, statement.text):
            if isinstance(statement, SqlStatement):
                for text in statement_texts(engine, statement, [c.change for c in step.changes], current):
                    engine.sql(text)
            elif current is None:
                engine.create(foreseen)
            else:
                _commit_changes(engine, step, current, foreseen)
    return foreseen


def _commit_step(
    engine: Engine, step: Step, current: Table | None, foreseen: Table, announcer: StatementAnnouncer
) -> None:
    """Make the changes of a step without its statements, at the first of them; the others are only announced.

    :param current: the predicted table before it; ``None`` where the step creates it.
    """
    name = foreseen.name if current is None else current.name
    for number, statement in enumerate(step.statements):
        with announcer.statement(name, statement.text):
            if number:
                continue
            if current is None:
                _create(engine, step, foreseen)
            else:
                _commit_changes(engine, step, current, foreseen)


def _commit_changes(engine: Engine, step: Step, current: Table, foreseen: Table) -> None:
    """Rename a table, or make the changes of a step in one commit."""
    if isinstance(rename := step.changes[0].change, RenameTable):
        engine.rename(rename.table, rename.new)
    elif foreseen.name != current.name:
        engine.rename(current.name, foreseen.name)
    else:
        engine.commit(
            current.name, lambda table: _apply_changes(step, current, table), is_row_dependent([step])
        )


def first_state(step: Step, foreseen: Table) -> Table:
    """A table as the first statement of a step creates it: Spark SQL sets an owner, and identifier fields
    later.

    :param foreseen: the table after the step.
    """
    first = replace(foreseen, refs={})
    if isinstance(step.statements[0], SqlStatement):
        schema = replace(foreseen.schema, identifier_ids=frozenset())
        first = replace(first, schema=schema, properties={**foreseen.properties, "owner": user_name()})
    return first


def _create(engine: Engine, step: Step, foreseen: Table) -> None:
    """Create a table as the step's statements would."""
    first = first_state(step, foreseen)
    engine.create(first)
    if foreseen.refs or foreseen.schema != first.schema:
        engine.commit(
            foreseen.name,
            lambda table: replace(table, schema=foreseen.schema, refs={**table.refs, **foreseen.refs}),
        )


def _require_unmoved_references(engine: Engine, name: TableName, step: Step) -> None:
    """Refuse to move a reference that another client has moved since: ``REPLACE`` compares nothing.

    :raises ConflictError: it is at another snapshot.
    """
    moving = [c.change for c in step.changes if isinstance(c.change, ChangeReference) and c.change.is_moving]
    if moving and (now := engine.table(name)) is not None:
        apply_fitting_changes(moving, now)


def _apply_changes(step: Step, planned: Table, now: Table) -> Table:
    """The table as it is now after a step, which must still be allowed on it."""
    require_preconditions(planned, [step], now)
    require_checked_rows(planned, [step], now)
    return apply_step(step, now)


class DirectPublisher(Frozen):
    """See :class:`~icemigrate.spark.publish.Publisher`.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    :param together: see :attr:`Publisher.together`.
    :param creations: see :attr:`Publisher.creations`.
    """

    engine: Engine
    tags: bool = True
    together: TransactionPublisher | None = None
    creations: CreationPublisher | None = None
    is_single_commit: ClassVar[bool] = False

    tags_at_once: ClassVar[bool] = False
    signs: ClassVar[bool] = False

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        """Run the steps one by one; finished ones stay when a later one fails."""
        announcer = statement_announcer(
            plan, marker.version, on_event, refill_branch_name(marker.project, marker.run)
        )
        current = before
        if self.tags and before is not None and plan.wanted is not None and marker.released:
            # A run that continues this one does not know the snapshots of references that have moved already.
            self.engine.mark(before.name, replace(marker, before=None, is_started=True))
        for step in announcer.each(plan.steps):
            current = run_step(self.engine, plan, step, current, announcer)
        if current is None:
            return None
        now = self.engine.table(current.name) if before is not None and plan.steps else None
        if before is not None and now is not None:
            on_commit(before.schema, now.schema)
        if self.tags and plan.wanted is not None and not marker.is_empty:
            self.engine.mark(current.name, marker)
        if self.tags and plan.wanted is not None and not marker.is_started:
            on_event(TableMarked(marker.version, current.name, marker.tag))
        return self.engine.table(current.name)
