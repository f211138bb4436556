"""How the steps of one migration come to one table: a port with two ways behind it.

:mod:`~icemigrate.engine.publish_atomic` runs them on a structural copy and lands them in one commit;
:mod:`~icemigrate.engine.publish_direct` runs them on the table itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Protocol, TypeAlias

from icemigrate.changes.alteration import Alteration, one_by_one
from icemigrate.changes.base import Change, Deferred, Sql, Statement
from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.rebase import PLAN_AGAIN, require_asked, require_met, rests_on_rows
from icemigrate.engine.refill import deferred_text, is_refill, refill
from icemigrate.engine.telling import Listener, Telling
from icemigrate.errors import ConflictError
from icemigrate.model.schema import Schema
from icemigrate.model.table import DEFAULT_FORMAT_VERSION, Table
from icemigrate.plan import Step, TablePlan

OnCommit: TypeAlias = Callable[[Schema, Schema], None]
"""Given the schema that a commit of the migration was made on, and the schema that it produced."""


def no_commit(before: Schema, committed: Schema) -> None:
    """For those who need not know what was committed."""


class Publisher(Protocol):
    """Who carries out what one migration does to one table.

    :ivar lands_at_once: whether all that a migration does to a table's metadata is one commit.
    :ivar tags_at_once: whether that commit also puts the migration's tag on the table.
    """

    @property
    def lands_at_once(self) -> bool: ...

    @property
    def tags_at_once(self) -> bool: ...

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        """Run the plan's steps and leave the migration's marker on the table.

        Statements are numbered within the table (:class:`~icemigrate.events.StatementStarted`); those with
        ``on_copy`` have touched nothing until :class:`~icemigrate.events.TablePublished` is told.  What is
        read back afterwards is the caller's to judge.

        :param before: the table as it was read last; ``None`` where there is none.
        :param on_commit: called right after a commit that may have added fields, before anything else.
        :returns: the table as it is then; ``None`` where it is gone.
        :raises EngineError: a statement or a commit failed.
        :raises ConflictError: somebody else changed what the plan changes.
        """
        ...


def statement_text(statement: Statement) -> str:
    """A statement as it is told and recorded."""
    if isinstance(statement, Sql):
        return statement.text
    if isinstance(statement, Deferred):
        return deferred_text(statement)
    return f"metadata commit: {statement.summary}"


def texts(engine: Engine, statement: Sql, changes: Sequence[Change], before: Table | None) -> Iterator[str]:
    """A statement of a step as this engine takes it: one of many columns as one of each, where it must be.

    :param changes: those of the step.
    :param before: the table as it is when they run; ``None`` where the step makes it.
    """
    if before is None or engine.takes_many_columns or not isinstance(changes[0], Alteration):
        yield statement.text
        return
    for alone in one_by_one(changes, before, engine.catalog_name):
        assert isinstance(alone, Sql), "only what SQL says is said together"
        yield alone.text


def fold(step: Step, table: Table) -> Table:
    """The table after a step, as it is foreseen.

    :raises ConflictError: what a change is about is not there any more.
    """
    try:
        return reduce(lambda t, c: c.change.apply(t), step.changes, table)
    except (StopIteration, LookupError, AssertionError) as error:
        raise ConflictError(
            f"the plan does not fit table `{table.name}`: another client changed the table meanwhile",
            PLAN_AGAIN,
        ) from error


def blank(plan: TablePlan) -> Table:
    """What a new table is made from."""
    version = DEFAULT_FORMAT_VERSION if plan.wanted is None else plan.wanted.format_version
    return Table(plan.name, Schema(), format_version=version)


def run_step(engine: Engine, plan: TablePlan, step: Step, current: Table | None, tell: Telling) -> Table:
    """Run a step's statements on the table itself.

    :param current: the table as it is foreseen to be now; ``None`` where the step makes it.
    :returns: the table as it is foreseen to be then.
    """
    name = plan.name if current is None else current.name
    foreseen = fold(step, current or blank(plan))
    if is_refill(step):
        refill(engine, step, tell)
        return foreseen
    for statement in step.statements:
        with tell.statement(name, statement_text(statement)):
            if isinstance(statement, Sql):
                for text in texts(engine, statement, [c.change for c in step.changes], current):
                    engine.sql(text)
            elif current is None:
                engine.create(foreseen)
            elif foreseen.name != current.name:
                engine.rename(current.name, foreseen.name)
            else:
                engine.commit(name, lambda table: _folded(step, current, table), rests_on_rows([step]))
    return foreseen


def _folded(step: Step, planned: Table, now: Table) -> Table:
    """The table as it is now after a step, which must still be allowed on it."""
    require_met(planned, [step], now)
    require_asked(planned, [step], now)
    return fold(step, now)
