"""Recovery after a failure: undo the migration where that loses no data, or report the remaining changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from icemigrate.changes.keep_view import DropKeptView, drop_view_statements
from icemigrate.errors import EngineError, IcemigrateError, LockHeld, LockLost
from icemigrate.events import Event, UndoFinished, UndoStarted
from icemigrate.execution.failures import (
    Failed,
    FailureReport,
    Interrupted,
    StateAfterTakeover,
    Undone,
    now_of,
    state_before_run,
)
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.journal import LockedJournal
from icemigrate.iceberg.table import Table, owner_of
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import Direction, MigrationPlan, TablePlan
from icemigrate.planning.plan_file import structural_json
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.publish import Publisher

PlanInverse: TypeAlias = Callable[[UndoRecord], MigrationPlan | None]
"""Plans the undo of a migration on the current tables; a plan that is not ready contains the reasons.
``None`` where no undo can be planned."""
Recorded: TypeAlias = Callable[[RunOutcome, tuple[str, ...], str | None], HistoryRecord]
"""Builds a history record from outcome, statements and message."""
MAX_STEP_LENGTH = 160
"""Characters of a step that the lock shows."""


class Recovery(Frozen):
    """Recovers from the failure of a migration."""

    engine: Engine
    publisher: Publisher
    locked_journal: LockedJournal
    project: str
    plan_inverse: PlanInverse
    on_event: Callable[[Event], None]

    def recover(
        self,
        migration: MigrationPlan,
        undo: UndoRecord,
        report: FailureReport,
        cause: IcemigrateError,
        record: Recorded,
    ) -> Failed:
        """Undo the completed changes, and record the outcome.

        :param undo: the record in the intent.
        :returns: the error to raise.
        """
        if isinstance(cause, LockHeld):
            # Another process may be running: no table is changed and nothing can be recorded.
            return Interrupted(report, cause, now=self._now(migration.version))
        try:
            undid, why = self._undo(migration, undo, report, cause)
        except (IcemigrateError, KeyboardInterrupt) as error:
            reason = error.message if isinstance(error, IcemigrateError) else "stopped by Ctrl-C"
            undid, why = (), (f"the undo failed: {reason}",)
        if not why:
            self._take_tags_off(migration.version, undo)
        before = state_before_run(migration)
        failure = Interrupted(report, cause, why) if why else Undone(report, cause, undid, before)
        outcome = RunOutcome.INTERRUPTED if why else RunOutcome.FAILED
        try:
            self.locked_journal.end(record(outcome, (*report.done, *undid), failure.message))
        except IcemigrateError as error:
            # The history shows the version as interrupted already; the next run finds nothing left to undo.
            reason = f"the outcome could not be recorded: {error.message}"
            return Interrupted(report, cause, (*why, reason))
        return failure

    def _now(self, version: str) -> StateAfterTakeover | None:
        """The state of the version after the lock was lost."""
        with suppress(IcemigrateError):
            return now_of(self.locked_journal.history(), Version.parse(version), self.locked_journal.run)
        return None

    def _undo(
        self, migration: MigrationPlan, undo: UndoRecord, report: FailureReport, cause: IcemigrateError
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The statements of the undo, and the reasons where it was not possible."""
        is_as_before = all(map(self._is_as_before, migration.tables, undo.tables))
        if is_as_before and not self._is_a_view_dropped(migration, report):
            for namespace in sorted(undo.namespaces, key=len, reverse=True):
                with suppress(EngineError):  # an empty one causes no problem
                    self.engine.drop_namespace(namespace)
            return (), ()
        if migration.direction is Direction.ROLLBACK:
            return (), ("a rollback that fails is not undone",)
        plan = self.plan_inverse(undo)
        if plan is None:
            return (), ("no undo could be planned",)
        if not plan.ready:
            problems = [f"{p.table}: {p.message}" for p in plan.problems]
            conflicts = [
                f"{c.fact} is {c.actual}, which is neither its value before ({c.base}) nor after ({c.wanted})"
                for c in plan.conflicts
            ]
            return (), (*problems, *conflicts)
        self.on_event(UndoStarted(migration.version, cause.message))
        work = MigrationRun(
            migration=replace(plan, direction=Direction.ROLLBACK),
            engine=self.engine,
            publisher=self.publisher,
            marker=Marker(self.project, migration.version, "", ""),
            on_event=self.on_event,
            before_each=lambda text: self.locked_journal.step(
                f"{migration.version}, undoing: {text}"[:MAX_STEP_LENGTH]
            ),
        )
        work.run()
        self.on_event(UndoFinished(migration.version))
        return work.log.done, ()

    def _take_tags_off(self, version: str, undo: UndoRecord) -> None:
        """Remove the migration's tags from tables that it did not change.

        A tag that stays causes no problem, so an error here does not change the outcome of the undo.
        """
        with suppress(LockHeld, KeyboardInterrupt):  # the next error reports it, or the user asked to stop
            for table in undo.tables:
                with suppress(IcemigrateError):
                    self._untag(Marker(self.project, version, "", ""), table)

    def _untag(self, marker: Marker, table: TableUndo) -> None:
        before = table.actual_before
        now = None if before is None else self.engine.table(before.name)
        if before is None or now is None or now.uuid != before.uuid:
            return  # tables that it created are in the trash
        if table.declared_before is None and now.owner == marker.project:
            self.locked_journal.step(f"{marker.version}, releasing {now.name}"[:MAX_STEP_LENGTH])
            self.engine.set_owner(now.name, None)
        left = marker.own_tags(now.refs) - before.refs.keys()
        if left:
            self.locked_journal.step(f"{marker.version}, removing its tags from {now.name}"[:MAX_STEP_LENGTH])
            self.engine.commit(now.name, partial(_without, left))

    def _is_as_before(self, plan: TablePlan, undo: TableUndo) -> bool:
        before = undo.actual_before
        name = plan.name if before is None else before.name
        now = self.engine.table(name)
        later = {undo.trash, None if undo.actual_after is None else undo.actual_after.name} - {name}
        if any(n is not None and self.engine.table(n) is not None for n in later):
            return False  # it has its later name already
        if before is None or now is None:
            return before is now
        if owner_of(now) not in (None, self.project):
            return True  # a commit of ours would have claimed it
        return structural_json(before) == structural_json(now)

    def _is_a_view_dropped(self, migration: MigrationPlan, report: FailureReport) -> bool:
        """Whether the migration dropped a kept view: the state of its table does not show that."""
        dropped = (c.change for c in migration.changes() if isinstance(c.change, DropKeptView))
        for change in dropped:
            drop, _ = drop_view_statements(self.engine.catalog_name, change.table, change.view)
            has_failed = report.failed == drop.text
            if drop.text in report.done or (has_failed and self.engine.view(change.view_name) is None):
                return True
        return False


def cause_of(error: IcemigrateError, held: LockedJournal) -> IcemigrateError:
    """The cause of a failed migration.

    A process that has taken over drops the branches of this run and changes its tables, so statements of this
    run fail in many ways: then the cause is the lost lock.

    :param held: the lock of the run.
    """
    if isinstance(error, LockHeld):
        return error
    try:
        held.lock.require_not_taken()
    except LockLost as lost:
        return LockLost(f"{lost.message}; then this failed: {error.message}", lost.hint)
    except IcemigrateError:
        return error  # the history cannot be read, and the recovery reports it
    return error


def _without(names: Collection[str], table: Table) -> Table:
    return replace(table, refs={name: ref for name, ref in table.refs.items() if name not in names})
