"""Publishes the changes of several tables in one transaction of the catalog.

Readers of any two tables see both before the migration, or both after it.  No copy is needed: every change is
one of metadata, which the plan predicts.  If another writer is faster on one table, all tables are read again
and all changes are prepared anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import reduce

from icemigrate.diagnostics import format_count
from icemigrate.events import TableMarked, TablePublished, TablePublishing
from icemigrate.frozen import Frozen
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.transactions import transaction_obstacle
from icemigrate.spark.commit_attempts import TRIES, another_attempt, dated_marker, pause_after
from icemigrate.spark.commit_ports import CommittingEngine, TableChange, TransactionCommits
from icemigrate.spark.conflict_check import (
    is_row_dependent,
    require_checked_rows,
    require_no_conflict,
    require_preconditions,
    table_without_rows,
)
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import OnCommit, apply_step
from icemigrate.spark.statement_events import Listener, StatementAnnouncer, statement_announcer
from icemigrate.system.activity import activity


class TableOfTransaction(Frozen):
    """One table that a transaction changes.

    :param before: the table as last read.
    :param on_event: called with the events of this table.
    :param on_commit: called right after the commit, if it changed the table.
    """

    plan: TablePlan
    before: Table
    marker: Marker
    on_event: Listener
    on_commit: OnCommit


class TransactionPublisher:
    """Publishes the plans of all tables of a migration in one commit.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    :param signs: whether a commit without a marker names the run in a property.
    :param pause: waits for a number of seconds.
    """

    def __init__(
        self,
        engine: CommittingEngine,
        *,
        tags: bool,
        signs: bool = True,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self._tags = tags
        self._signs = signs
        self._pause = pause

    def takes(self, migration: MigrationPlan) -> bool:
        """Whether one transaction can make all changes of a migration of several tables."""
        return (
            len(migration.tables) > 1
            and transaction_obstacle(migration) is None
            and self._engine.transactions is not None
        )

    def publish(self, tables: Sequence[TableOfTransaction], on_send: Callable[[bool], None]) -> bool:
        """Retry until the one commit succeeds.

        :param on_send: called with ``True`` before the commit is sent, and with ``False`` after the catalog
            refused it because another writer was faster.
        :returns: ``False`` where a change needs a commit of its own; no table was changed then.
        :raises EngineError: a commit failed.
        :raises ConflictError: another client changed the same facts as the plan.
        """
        commits, clock = self._engine.transactions, time.monotonic()
        assert commits is not None, "only transactions that the catalog can make are published"
        for attempt in range(1, TRIES + 1):
            changes = [self._change(commits, table, attempt) for table in tables]
            if any(map(commits.needs_own_commit, changes)):
                return False
            on_send(True)
            try:
                with activity(f"Committing {format_count(len(changes), 'table')}"):
                    schemas = commits.commit_together(changes)
                break
            except Exception as error:  # the engine identifies it
                if not commits.is_conflict(error):
                    raise
                on_send(False)
                if attempt == TRIES:
                    raise
            for table in tables:
                _announcer(table).note(table.before.name, another_attempt(attempt + 1))
            self._pause(pause_after(attempt))
        self._report(tables, changes, schemas, attempt, time.monotonic() - clock)
        return True

    def _change(self, commits: TransactionCommits, table: TableOfTransaction, attempt: int) -> TableChange:
        """The change of one table, on its current state.

        :raises EngineError: the table does not exist.
        :raises ConflictError: another client changed the same facts as the plan.
        """
        plan, before, announcer = table.plan, table.before, _announcer(table)
        # Before the table is read: a listener may take its time.
        table.on_event(TablePublishing(announcer.version, before.name, attempt))
        base = commits.read_base(before.name)
        now: Table = base.table
        require_checked_rows(before, plan.steps, now)
        if table_without_rows(now) != table_without_rows(before):
            require_no_conflict(before, plan.steps, now)
            announcer.note(before.name, "another client made changes that do not conflict with the plan")
        require_preconditions(before, plan.steps, now)
        if attempt == 1:
            _announce(table, announcer)
        after = reduce(lambda made, step: apply_step(step, made), plan.steps, now)
        marker = table.marker if self._tags and plan.wanted is not None else None
        run = table.marker.run if self._signs and not self._tags else ""
        return TableChange(base, after, dated_marker(marker, plan, now), is_row_dependent(plan.steps), run)

    def _report(
        self,
        tables: Sequence[TableOfTransaction],
        changes: Sequence[TableChange],
        schemas: Sequence[Schema | None],
        attempt: int,
        elapsed: float,
    ) -> None:
        for table, change, schema in zip(tables, changes, schemas, strict=True):
            if schema is not None:
                table.on_commit(change.base.table.schema, schema)
        for table, change, schema in zip(tables, changes, schemas, strict=True):
            version, name = table.marker.version, table.before.name
            if schema is not None:
                table.on_event(TablePublished(version, name, attempt, elapsed))
            if change.marker is not None:
                table.on_event(TableMarked(version, name, change.marker.tag))


def _announcer(table: TableOfTransaction) -> StatementAnnouncer:
    return statement_announcer(table.plan, table.marker.version, table.on_event)


def _announce(table: TableOfTransaction, announcer: StatementAnnouncer) -> None:
    """Announce the statements, whose result is committed without them."""
    for step in announcer.each(table.plan.steps):
        for statement in step.statements:
            with announcer.statement(table.before.name, statement.text, on_copy=True):
                pass
