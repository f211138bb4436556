"""After a failure: take back what was done, where nothing is lost by it; else say how things stand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import Publisher
from icemigrate.errors import EngineError, IcemigrateError, LockHeld
from icemigrate.events import Event, UndoFinished, UndoStarted
from icemigrate.executor.faults import Failed, Interrupted, Report, Undone
from icemigrate.executor.work import Work
from icemigrate.frozen import Frozen, replace
from icemigrate.history.journal import Held
from icemigrate.history.record import Outcome, Record
from icemigrate.model.makers import owner_of
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.plan import Direction, MigrationPlan, TablePlan
from icemigrate.plan_file import structure

Inverse: TypeAlias = Callable[[UndoRecord], MigrationPlan | None]
"""Plans what undoes a migration on the tables as they are now; a plan that is not ready says why it may not
be done.  ``None`` where that cannot be planned at all."""
Recorded: TypeAlias = Callable[[Outcome, tuple[str, ...], str | None], Record]
"""Makes a row: outcome, statements, message."""


class Recovery(Frozen):
    """What is done when a migration fails on its way."""

    engine: Engine
    publisher: Publisher
    held: Held
    project: str
    inverse: Inverse
    on_event: Callable[[Event], None]

    def recover(
        self,
        migration: MigrationPlan,
        undo: UndoRecord,
        report: Report,
        cause: IcemigrateError,
        record: Recorded,
    ) -> Failed:
        """Undo what can be undone, and record the outcome.

        :param undo: as it was written with the intent.
        :returns: what is to be raised.
        """
        if isinstance(cause, LockHeld):
            # Another process may be at work by now: nothing is touched and nothing can be recorded.
            return Interrupted(report, cause)
        try:
            undid, why = self._undo(migration, undo, report, cause)
        except (IcemigrateError, KeyboardInterrupt) as error:
            told = error.message if isinstance(error, IcemigrateError) else "you asked to stop"
            undid, why = (), (f"undoing it failed: {told}",)
        if not why:
            self._take_tags_off(migration.version, undo)
        failure = Interrupted(report, cause, why) if why else Undone(report, cause, undid)
        outcome: Outcome = "interrupted" if why else "failed"
        try:
            self.held.end(record(outcome, (*report.done, *undid), failure.message))
        except IcemigrateError as error:
            # What was begun stands as interrupted already; the next run finds what is undone undone.
            told = f"the outcome could not be recorded: {error.message}"
            return Interrupted(report, cause, (*why, told))
        return failure

    def _undo(
        self, migration: MigrationPlan, undo: UndoRecord, report: Report, cause: IcemigrateError
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The statements that took it back, and why it was not taken back."""
        if all(map(self._is_as_before, migration.tables, undo.tables)):
            for namespace in sorted(undo.namespaces, key=len, reverse=True):
                with suppress(EngineError):  # an empty one harms nobody
                    self.engine.drop_namespace(namespace)
            return (), ()
        if migration.direction is Direction.ROLLBACK:
            return (), ("half of an undo is not undone again",)
        plan = self.inverse(undo)
        if plan is None:
            return (), ("there is no plan for undoing it",)
        if not plan.ready:
            problems = [f"{p.table}: {p.message}" for p in plan.problems]
            conflicts = [
                f"{c.fact} is {c.actual}: neither as before ({c.base}) nor as after ({c.wanted})"
                for c in plan.conflicts
            ]
            return (), (*problems, *conflicts)
        self.on_event(UndoStarted(migration.version, cause.message))
        work = Work(
            migration=replace(plan, direction=Direction.ROLLBACK),
            engine=self.engine,
            publisher=self.publisher,
            marker=Marker(self.project, migration.version, "", ""),
            on_event=self.on_event,
            before_each=lambda text: self.held.step(f"{migration.version}, undoing: {text}"[:_WIDEST]),
        )
        work.run()
        self.on_event(UndoFinished(migration.version))
        return work.account.done, ()

    def _take_tags_off(self, version: str, undo: UndoRecord) -> None:
        """Take the migration's tags off tables that had none of it: no undo of it needs them any more.

        One that stays harms nobody, so what is undone stays undone whatever comes of this.
        """
        with suppress(LockHeld, KeyboardInterrupt):  # what comes next says so, or somebody asked to stop
            for table in undo.tables:
                with suppress(IcemigrateError):
                    self._untag(Marker(self.project, version, "", ""), table)

    def _untag(self, marker: Marker, table: TableUndo) -> None:
        before = table.actual_before
        now = None if before is None else self.engine.table(before.name)
        if before is None or now is None or now.uuid != before.uuid:
            return  # what it made is in the trash
        if table.declared_before is None and now.owner == marker.project:
            self.held.step(f"{marker.version}, releasing {now.name}"[:_WIDEST])
            self.engine.set_owner(now.name, None)
        left = marker.own_tags(now.refs) - before.refs.keys()
        if left:
            self.held.step(f"{marker.version}, taking its tags off {now.name}"[:_WIDEST])
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
        return structure(before) == structure(now)


def _without(names: Collection[str], table: Table) -> Table:
    return replace(table, refs={name: ref for name, ref in table.refs.items() if name not in names})


_WIDEST = 160
