"""Publishes the changes of several tables in one transaction of the catalog.

Readers of any two tables see both before the migration, or both after it.  Statements run on copies first, as
in :mod:`icemigrate.spark.publish_atomic`.  If another writer is faster on one table, all tables are read
again, and all changes are committed on top of what they are now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from icemigrate.diagnostics import format_count
from icemigrate.events import TableMarked, TablePublished, TablePublishing
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.transactions import transaction_obstacle
from icemigrate.spark.commit_attempts import TRIES, another_attempt, dated_marker, pause_after
from icemigrate.spark.commit_ports import CommittingEngine, TableChange, TransactionCommits
from icemigrate.spark.conflict_check import is_row_dependent, require_checked_rows, require_preconditions
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import OnCommit
from icemigrate.spark.statement_events import Listener, StatementAnnouncer, statement_announcer
from icemigrate.spark.step_results import StepResult, StepRunner
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

    :param steps: runs the steps before the commit.
    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    :param signs: whether a commit without a marker names the run in a property.
    :param pause: waits for a number of seconds.
    """

    def __init__(
        self,
        engine: CommittingEngine,
        steps: StepRunner,
        *,
        tags: bool,
        signs: bool = True,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self._steps = steps
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
        commits = self._engine.transactions
        assert commits is not None, "only transactions that the catalog can make are published"
        results = dict[TableName, StepResult]()
        for attempt in range(1, TRIES + 1):
            with convert_java_errors():
                changes = [self._change(commits, table, attempt, results) for table in tables]
            if any(map(commits.needs_own_commit, changes)):
                return False
            on_send(True)
            began = time.monotonic()
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
            # The catalog does not say which table it was, so one note is for all.
            _announcer(tables[0]).note(None, another_attempt(attempt + 1))
            self._pause(pause_after(attempt))
        self._report(tables, changes, schemas, attempt, time.monotonic() - began)
        return True

    def _change(
        self,
        commits: TransactionCommits,
        table: TableOfTransaction,
        attempt: int,
        results: dict[TableName, StepResult],
    ) -> TableChange:
        """The change of one table, on its current state.

        :param results: of the steps of each table, from earlier attempts; gets new ones.
        :raises EngineError: the table does not exist.
        :raises ConflictError: another client changed the same facts as the plan.
        """
        plan, before, announcer = table.plan, table.before, _announcer(table)
        # Before the table is read: a listener may take its time.
        table.on_event(TablePublishing(announcer.version, before.name, attempt))
        base = commits.read_base(before.name)
        now: Table = base.table
        require_checked_rows(before, plan.steps, now)
        made = results.get(before.name)
        if made is None or not made.fits(now):
            made = results[before.name] = self._steps.run(plan.steps, base, before, announcer)
        else:
            require_preconditions(before, plan.steps, now)  # others wrote rows
        after = made.onto(now, plan.steps)
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
        changed = sum(schema is not None for schema in schemas)
        for table, change, schema in zip(tables, changes, schemas, strict=True):
            version, name = table.marker.version, table.before.name
            if schema is not None:
                table.on_event(TablePublished(version, name, attempt, elapsed, changed))
            if change.marker is not None:
                table.on_event(TableMarked(version, name, change.marker.tag))


def _announcer(table: TableOfTransaction) -> StatementAnnouncer:
    return statement_announcer(table.plan, table.marker.version, table.on_event)
