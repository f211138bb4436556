"""Carry a plan out: lock, plan again, then migration by migration intent, tables, outcome.

Nothing is planned here.  What a migration's steps come to is folded over the table as it was, and the table
that is read back is held against that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import compress
from typing import TypeAlias

from icemigrate import versions
from icemigrate.declare.version import Version
from icemigrate.engine.ended import faults_of_jvm
from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import Publisher
from icemigrate.errors import ConflictError, IcemigrateError, LockHeld, StalePlan, Stopped
from icemigrate.events import Event, LockAwaited, LockTakenOver, MigrationRecorded, MigrationStarted
from icemigrate.executor.faults import Interrupted, Report
from icemigrate.executor.fencing import guarded
from icemigrate.executor.last_copies import dependence, free_tags, keep_tags, needed_tags
from icemigrate.executor.late_renames import Replaced, taking_back
from icemigrate.executor.means import Operator, Ways, directly, operator
from icemigrate.executor.recovery import Inverse, Recovery
from icemigrate.executor.signals import Stop, heard
from icemigrate.executor.undo_records import finished, intended, taken
from icemigrate.executor.work import Work
from icemigrate.frozen import replace
from icemigrate.history.intent import Intent, waits_for
from icemigrate.history.journal import Held, Journal
from icemigrate.history.record import Outcome, Record
from icemigrate.history.superseding import baselined, squashed
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import Direction, MigrationPlan, Plan, Squash

Listener: TypeAlias = Callable[[Event], None]
Trial: TypeAlias = Callable[[Sequence[MigrationPlan], Collection[str]], None]
"""Given the migrations in order, and those versions that an earlier run has begun with."""
Trace: TypeAlias = Callable[[UndoRecord, Intent], UndoRecord]
"""Given the undo record of a version, and the run of it that may have committed more than the record says."""


def apply(
    plan: Plan,
    engine: Engine,
    journal: Journal,
    on_event: Listener = lambda event: None,
    by: Operator | None = None,
    keep: timedelta | None = None,
    *,
    replan: Callable[[], Plan] | None = None,
    ways: Ways | None = None,
    inverse: Inverse = lambda record: None,
    trial: Trial = lambda migrations, begun: None,
    trace: Trace = lambda record, intent: record,
) -> tuple[Record, ...]:
    """Carry out a plan that is :attr:`~icemigrate.plan.Plan.ready`, forwards or backwards.

    :param on_event: told of every step.
    :param by: who is recorded; found by itself where left out.
    :param keep: how long the tags are kept; ``None`` for ever.
    :param replan: makes the plan again under the lock, and refuses if it is another one by now; without it
        the plan runs as it is.
    :param ways: how changes come to tables; directly where left out.
    :param inverse: plans what undoes a migration that failed; ``None`` where that cannot be planned.
    :param trace: corrects the undo record of a run that was cut short by what that run committed.
    :param trial: looks at all migrations before anything of them is done, and may raise.
    :returns: what was recorded, one for each migration.
    :raises LockHeld: somebody else held the lock all the while; or it was lost on the way.
    :raises Undone: a migration failed, and all is as it was before it; those before it are recorded.
    :raises Interrupted: a migration failed, and what was done of it stays for now.
    :raises Stopped: the user asked to stop before anything was done.
    :raises ConflictError: an interrupted migration of the same tables comes first.
    :raises StalePlan: the catalog numbered a new field otherwise than planned, and a later migration
        relies on it.
    """
    if plan.is_empty:
        return ()
    by = by or operator()
    with (
        taking_back(engine, journal, plan.direction.value, by, on_event) as lost,
        heard() as stop,
        journal.held(
            plan.direction.value,
            by.user,
            by.host,
            on_wait=lambda lock: on_event(LockAwaited(lock.words())),
            wait=stop.wait,
        ) as held,
        ExitStack() as blocks,
    ):
        if held.gone is not None and not held.gone.is_taken_away:
            on_event(LockTakenOver(held.gone.words()))
        stop.check()
        blocks.enter_context(guarded(engine, held))
        if replan is not None:
            plan = replan()
            if plan.is_empty:  # somebody else did all of it, while this process waited
                return ()
        assert plan.ready, "a plan with problems, conflicts or missing consents is not carried out"
        ways, known = ways or directly(engine), dict(plan.based_on)
        run = _Run(plan, engine, held, on_event, by, keep, ways, inverse, stop, plan.base, known, trace, lost)
        if plan.is_baseline:
            return run.baseline()
        begun = {intent.version for intent in held.history().intents}
        trial(plan.migrations, [m.version for m in plan.migrations if _version(m) in begun])
        return tuple(run.migrate(i, m) for i, m in enumerate(plan.migrations, start=1))


@dataclass(slots=True)
class _Run:
    """One call of :func:`apply`, under the lock.

    :param state: as declared by what is applied so far, with the catalog's own ids.
    :param known: the tables as the plan, or the migration before, left them.
    :param renumbered: declared names of tables whose new fields got other ids than foreseen.
    :param lost: takes the run during which the lock was lost.
    :param ended: versions that it has recorded.
    """

    plan: Plan
    engine: Engine
    held: Held
    on_event: Listener
    by: Operator
    keep: timedelta | None
    ways: Ways
    inverse: Inverse
    stop: Stop
    state: State
    known: dict[TableName, Table | None]
    trace: Trace
    lost: list[Replaced]
    renumbered: set[TableName] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)

    def migrate(self, number: int, migration: MigrationPlan) -> Record:
        self.stop.check()
        self._admit(migration, begun=_version(migration))
        self.on_event(
            MigrationStarted(migration.version, migration.description, number, len(self.plan.migrations))
        )
        started_at, clock = datetime.now(timezone.utc), time.monotonic()
        if migration.direction is Direction.RECONCILE:
            return self._lead_back(migration, started_at, clock)
        if migration.squash is not None and migration.squash.versions:
            return self._supersede(migration, migration.squash, started_at)
        # What an earlier run has done of it is part of it, also on tables that this run does not come to.
        version = Version.parse(migration.version)
        resumed = self._resumed(version)
        publisher = self._publisher(migration)
        undo, metadata = intended(migration, self.engine, self.state, publisher.tags_at_once, self.known)
        intent = Intent(
            version=version,
            direction=migration.direction,
            started_at=started_at,
            user=self.by.user,
            host=self.by.host,
            run=self.held.run,
            tables=_touched(migration),
            metadata=metadata,
            is_redo=migration.is_redo,
            choices=migration.choices,
        )
        undo = self.held.begin(intent, self._record(migration, "started", started_at), undo)
        work = self._work(migration, undo, resumed)
        try:
            with faults_of_jvm():
                work.run()
            state = work.settled(self.state)
            work.account.at = "the record in the history"
            is_apply = migration.direction is Direction.APPLY
            record = self._record(
                migration, "applied" if is_apply else "rolled_back", started_at, statements=work.account.done
            )
            stays = _left_by(migration)
            if migration.refill_only:
                record = replace(record, action="refill")
            if stays:
                record = replace(record, stays=stays, message=f"in part; left is {'; '.join(stays)}")
            undo = work.undo or undo
            after = finished(undo, migration, work.after, state, work.published) if is_apply else None
            back = work.account.brought_back
            depends = dependence(self.engine, self.held.history(), migration, work.after, back)
            keep_tags(self.engine, depends, self.held.require)
            self.held.end(record, state, after, depends.records)
            free_tags(self.engine, depends, work.account.note)
        except KeyboardInterrupt as error:
            # A call to the JVM may be torn apart, so nothing more is asked of it from this thread.
            raise Interrupted(self._report(work), Stopped("you asked to stop at once")) from error
        except IcemigrateError as cause:
            recovery = Recovery(
                self.engine,
                self.ways.unmarked,
                self.held,
                self.plan.project,
                lambda record: self.inverse(self.trace(record, intent)),
                self.on_event,
            )
            begun = [resumed or p.declared in work.begun for p in migration.tables]
            undo = work.undo or undo
            undo = replace(undo, tables=tuple(compress(undo.tables, begun)))
            if isinstance(cause, LockHeld):
                self.lost.append(Replaced(undo, migration.direction))
            raise recovery.recover(
                replace(migration, tables=tuple(compress(migration.tables, begun))),
                undo,
                self._report(work),
                cause,
                lambda o, s, m: self._record(migration, o, started_at, s, m),
            ) from cause
        self.state = state
        self.known |= dict.fromkeys(p.name for p in migration.tables)
        self.known |= {table.name: table for table in work.after.values() if table is not None}
        self.renumbered |= work.renumbered
        self.ended.append(migration.version)
        self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return record

    def _resumed(self, version: Version) -> bool:
        """Whether an earlier run has begun with a version; what that run had committed is recorded first."""
        history = self.held.history()
        earlier = next((i for i in history.intents if i.version == version), None)
        record = None if earlier is None else history.undo_record(version)
        if earlier is not None and record is not None and earlier.direction is Direction.APPLY:
            known = self.trace(record, earlier)
            if known != record:
                self.held.correct(version, known)
        return earlier is not None

    def _publisher(self, migration: MigrationPlan) -> Publisher:
        return self.ways.marked if migration.direction is Direction.APPLY else self.ways.unmarked

    def _report(self, work: Work) -> Report:
        return replace(work.account.report(), before=tuple(self.ended))

    def _lead_back(self, migration: MigrationPlan, started_at: datetime, clock: float) -> Record:
        """Lead tables back; versions and what they declare stay, and what fails is left to the next try."""
        self.held.may_change(str(table.name) for table in migration.tables)
        self.held.supersede([self._record(migration, "started", started_at)], lambda history: history)
        work = self._work(migration, UndoRecord(migration.version, ()))
        try:
            work.run()
        except IcemigrateError as cause:
            failed = self._record(migration, "failed", started_at, work.account.done, str(cause))
            with suppress(IcemigrateError):  # why it failed is what people have to know
                self.held.supersede([failed], lambda history: history)
            raise
        record = self._record(migration, "reconciled", started_at, work.account.done)
        self.held.supersede([record], lambda history: history)
        self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return record

    def _supersede(self, migration: MigrationPlan, squash: Squash, started_at: datetime) -> Record:
        """Record a squash whose versions are all applied: no table is touched."""
        record = replace(
            self._record(migration, "squashed", started_at, message=f"for {', '.join(squash.versions)}"),
            action="squash",
        )
        self.held.supersede([record], lambda history: squashed(history, record, squash.versions))
        elapsed = datetime.now(timezone.utc) - started_at
        self.on_event(MigrationRecorded(migration.version, elapsed.total_seconds()))
        return record

    def baseline(self) -> tuple[Record, ...]:
        """Record all migrations as done already, in one commit of the history: no table is touched."""
        started_at, clock = datetime.now(timezone.utc), time.monotonic()
        records: list[Record] = []
        undo: dict[str, UndoRecord] = {}
        for number, migration in enumerate(self.plan.migrations, start=1):
            self.stop.check()
            # What was begun of it keeps even the version itself from being recorded as done.
            self._admit(migration, begun=None)
            self.on_event(
                MigrationStarted(migration.version, migration.description, number, len(self.plan.migrations))
            )
            undo[migration.version] = taken(migration, self.known, self.state)
            for table in migration.tables:
                self.state = self.state.after(table.declared, table.formerly, table.wanted)
            self.state = replace(self.state, namespaces=self.state.namespaces | migration.namespaces)
            records.append(replace(self._record(migration, "baselined", started_at), action="baseline"))
        self.held.supersede(records, lambda history: baselined(history, records, undo, self.state))
        for migration in self.plan.migrations:
            self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return tuple(records)

    def _admit(self, migration: MigrationPlan, begun: Version | None) -> None:
        """Let only that begin which can be gone through with.

        :param begun: the version that may have been begun already.
        """
        for table in migration.tables:
            if table.formerly in self.renumbered:
                raise StalePlan(
                    f"migration {migration.version} was planned for other field ids of `{table.declared}`",
                    "run `icemigrate apply` again: it plans anew what is left",
                )
        first = waits_for(self.held.history().intents, begun, _touched(migration))
        if first is not None:
            ways = "`icemigrate apply` finishes it, `icemigrate rollback` undoes it"
            raise ConflictError(
                f"migration {migration.version} has to wait: "
                f"migration {first.version} of the same tables was interrupted",
                ways if first.direction is Direction.APPLY else "`icemigrate rollback` finishes undoing it",
            )

    def _work(self, migration: MigrationPlan, undo: UndoRecord, is_resumed: bool = False) -> Work:
        def before_each(text: str) -> None:
            self.stop.check()
            self.held.step(f"{migration.version}: {' '.join(text.split())[:_WIDEST_STEP]}")

        has_run = self.plan.redo is not None or is_resumed
        return Work(
            migration=migration,
            engine=self.engine,
            publisher=self._publisher(migration),
            marker=Marker(
                project=self.plan.project,
                version=migration.version,
                description=migration.description,
                checksum=migration.checksum,
                keep=self.keep,
                run=self.held.run,
                # Only a version that ran before has tags that could move.
                needed_tags=needed_tags(self.held.history() if has_run else None),
            ),
            on_event=self.on_event,
            before_each=before_each,
            catalog=self.plan.catalog_name,
            undo=undo,
            correct=lambda record: self.held.correct(Version.parse(migration.version), record),
            known=self.known,
            is_redo=migration.is_redo or self.plan.redo is not None,
            is_resumed=is_resumed,
            run_id=self.held.run,
        )

    def _record(
        self,
        migration: MigrationPlan,
        outcome: Outcome,
        started_at: datetime,
        statements: tuple[str, ...] = (),
        message: str | None = None,
    ) -> Record:
        return Record(
            version=_version(migration),
            description=migration.description,
            checksum=migration.checksum,
            project=self.plan.project,
            environment=self.plan.environment,
            outcome=outcome,
            started_at=started_at,
            finished_at=None if outcome == "started" else datetime.now(timezone.utc),
            user=self.by.user,
            host=self.by.host,
            tool_version=versions.ICEMIGRATE,
            tables=tuple(sorted(str(t.declared) for t in migration.tables)),
            statements=statements,
            message=message,
            action=migration.direction.value,
            run=self.held.run,
            fingerprint=migration.fingerprint,
            since=migration.squash.first if migration.squash is not None else "",
        )


_WIDEST_STEP = 160


def _left_by(migration: MigrationPlan) -> tuple[str, ...]:
    """What an undo leaves of what the migration did; nothing on the way there."""
    return tuple(f"{t.declared}: {what}" for t in migration.tables for what in t.stays)


def _version(migration: MigrationPlan) -> Version | None:
    """``None`` where tables are led back: that is about no version."""
    return None if migration.direction is Direction.RECONCILE else Version.parse(migration.version)


def _touched(migration: MigrationPlan) -> tuple[str, ...]:
    names = {n for t in migration.tables for n in (t.declared, t.formerly) if n is not None}
    return tuple(sorted(map(str, names)))
