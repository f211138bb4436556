"""Run a plan: take the lock, plan again, then write intent, tables and outcome of each migration."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import compress
from typing import TypeAlias

from icemigrate import versions
from icemigrate.errors import ConflictError, IcemigrateError, LockHeld, StalePlan, Stopped
from icemigrate.events import Event, LockAwaited, LockTakenOver, MigrationRecorded, MigrationStarted
from icemigrate.execution.environment_session import Operator, current_operator
from icemigrate.execution.failures import FailureReport, Interrupted
from icemigrate.execution.fencing import LostLockRun, fence_interrupted_migrations, revert_late_renames
from icemigrate.execution.last_copies import free_tags, needed_tags, protect_tags, snapshot_dependencies
from icemigrate.execution.manual_facts import manual_facts
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.execution.publishers import EnvironmentPublishers, direct_publishers
from icemigrate.execution.recovery import MAX_STEP_LENGTH, PlanInverse, Recovery, cause_of
from icemigrate.execution.signals import StopRequest, watch_stop_signals
from icemigrate.execution.undo_records import (
    baseline_undo_record,
    completed_undo_record,
    foreseen_undo_record,
)
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_record import HistoryRecord, RunOutcome, outcome_of
from icemigrate.history.journal import Journal, LockedJournal
from icemigrate.history.recorded_versions import Intent, blocking_intent
from icemigrate.history.superseding import with_baselines, with_squash
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import Direction, MigrationPlan, Plan, SquashedVersions
from icemigrate.spark.engine_port import Engine, Marker
from icemigrate.spark.java_errors import convert_jvm_exit_errors
from icemigrate.spark.publish import Publisher

OnEvent: TypeAlias = Callable[[Event], None]
CheckDataSteps: TypeAlias = Callable[[Sequence[MigrationPlan], Collection[str]], None]
"""Called with the migrations in order, and the versions that an earlier run has begun."""
AddRunCommits: TypeAlias = Callable[[UndoRecord, Intent], UndoRecord]
"""Called with the undo record of a version, and its run that may have committed more than the record has."""


def run_plan(
    plan: Plan,
    engine: Engine,
    journal: Journal,
    on_event: OnEvent = lambda event: None,
    by: Operator | None = None,
    keep: timedelta | None = None,
    *,
    replan: Callable[[], Plan] | None = None,
    publishers: EnvironmentPublishers | None = None,
    inverse: PlanInverse = lambda record: None,
    check_data_steps: CheckDataSteps = lambda migrations, begun: None,
    add_run_commits: AddRunCommits = lambda record, intent: record,
) -> tuple[HistoryRecord, ...]:
    """Run a plan that is :attr:`~icemigrate.planning.plan.Plan.ready`, in either direction.

    :param by: recorded in the history; by default the user of this process.
    :param keep: the age limit of tags; ``None`` for no limit.
    :param replan: plans again under the lock, and raises where the plan has changed; without it the plan runs
        as given.
    :param publishers: publishers of changes; by default the direct one.
    :param inverse: plans the undo of a failed migration; returns ``None`` where that cannot be planned.
    :param add_run_commits: adds the commits of an interrupted run to its undo record.
    :param check_data_steps: checks all migrations before the first change; may raise.
    :returns: the record of each migration.
    :raises LockHeld: another process holds the lock, or took it over.
    :raises Undone: a migration failed and was undone; earlier ones are recorded.
    :raises Interrupted: a migration failed and some of its changes remain.
    :raises Stopped: the user stopped before the first change.
    :raises ConflictError: an interrupted migration of the same tables must be finished first.
    :raises StalePlan: a new field did not get the planned id, and a later migration depends on it.
    """
    if plan.is_empty:
        return ()
    by = by or current_operator()
    with (
        revert_late_renames(engine, journal, plan.direction.value, by, on_event) as lost,
        watch_stop_signals("undoing the migration" if plan.direction is Direction.APPLY else "") as stop,
        journal.hold_lock(
            plan.direction.value,
            by.user,
            by.host,
            on_wait=lambda lock: on_event(LockAwaited(lock.words())),
            wait=stop.wait,
        ) as held,
        ExitStack() as blocks,
    ):
        if held.previous_holder is not None and not held.previous_holder.is_taken_away:
            on_event(LockTakenOver(held.previous_holder.words()))
        stop.check()
        blocks.enter_context(fence_interrupted_migrations(engine, held))
        if replan is not None:
            plan = replan()
            if plan.is_empty:  # another process did all of it meanwhile
                return ()
        assert plan.ready, "a plan with problems, conflicts or missing consents is not carried out"
        used, old = publishers or direct_publishers(engine), dict(plan.based_on)
        run = _Run(
            plan, engine, held, on_event, by, keep, used, inverse, stop, plan.base, old, add_run_commits, lost
        )
        if plan.is_baseline:
            return run.baseline()
        begun = {intent.version for intent in held.history().intents}
        check_data_steps(plan.migrations, [m.version for m in plan.migrations if _version(m) in begun])
        return tuple(run.migrate(i, m) for i, m in enumerate(plan.migrations, start=1))


@dataclass(slots=True)
class _Run:
    """One call of :func:`run_plan`, under the lock.

    :param state: the declared state of the applied migrations, with the catalog's ids.
    :param known: the tables after the plan or the migration before.
    :param renumbered: declared names of tables whose new fields got other ids than predicted.
    :param lost: called with the run during which the lock was lost.
    :param ended: versions that it has recorded.
    """

    plan: Plan
    engine: Engine
    held: LockedJournal
    on_event: OnEvent
    by: Operator
    keep: timedelta | None
    publishers: EnvironmentPublishers
    inverse: PlanInverse
    stop: StopRequest
    state: DeclaredState
    known: dict[TableName, Table | None]
    add_run_commits: AddRunCommits
    lost: list[LostLockRun]
    renumbered: set[TableName] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)

    def migrate(self, number: int, migration: MigrationPlan) -> HistoryRecord:
        self.stop.check()
        self._require_unblocked(migration, begun=_version(migration))
        self.on_event(
            MigrationStarted(migration.version, migration.description, number, len(self.plan.migrations))
        )
        started_at, clock = datetime.now(timezone.utc), time.monotonic()
        if not migration.direction.has_versions:
            return self._change_tables(migration, started_at, clock)
        if migration.squash is not None and migration.squash.versions:
            return self._record_squash(migration, migration.squash, started_at)
        # The changes of an earlier run belong to it, also on tables that this run does not change.
        version = Version.parse(migration.version)
        resumed = self._resumed(version)
        publisher = self._publisher(migration)
        undo, metadata = foreseen_undo_record(migration, self.engine, self.state, publisher, self.known)
        intent = Intent(
            version=version,
            direction=migration.direction,
            started_at=started_at,
            user=self.by.user,
            host=self.by.host,
            run=self.held.run,
            tables=migration.declared_names,
            metadata=metadata,
            is_redo=migration.is_redo,
            choices=migration.choices,
        )
        undo = self.held.begin(intent, self._record(migration, RunOutcome.STARTED, started_at), undo)
        work = self._work(migration, undo, resumed)
        try:
            with convert_jvm_exit_errors():
                work.run()
            state = work.final_declared_state(self.state)
            work.log.note_current("the record in the history")
            is_apply = migration.direction is Direction.APPLY
            record = self._record(migration, outcome_of(migration), started_at, statements=work.log.done)
            stays = tuple(f"{t.declared}: {what}" for t in migration.tables for what in t.stays)
            if migration.refill_only:
                record = replace(record, action="refill")
            if stays:
                record = replace(
                    record, remaining_effects=stays, message=f"in part; left is {'; '.join(stays)}"
                )
            undo = work.undo or undo
            after = (
                completed_undo_record(undo, migration, work.tables_after, state, work.published)
                if is_apply
                else None
            )
            back = work.log.restored_values
            depends = snapshot_dependencies(
                self.engine, self.held.history(), migration, work.tables_after, back
            )
            protect_tags(self.engine, depends, self.held)
            self.held.end(record, state, after, depends.records)
            free_tags(self.engine, depends, work.log.note)
        except KeyboardInterrupt as error:
            # A call to the JVM may be interrupted, so this thread makes no more calls.
            raise Interrupted(self._report(work), Stopped("stopped at once by a second Ctrl-C")) from error
        except IcemigrateError as error:
            cause = cause_of(error, self.held)
            recovery = Recovery(
                self.engine,
                self.publishers.unmarked,
                self.held,
                self.plan.project,
                lambda record: self.inverse(self.add_run_commits(record, intent)),
                self.on_event,
            )
            begun = [resumed or p.declared in work.started_tables for p in migration.tables]
            undo = work.undo or undo
            undo = replace(undo, tables=tuple(compress(undo.tables, begun)))
            if isinstance(cause, LockHeld):
                self.lost.append(LostLockRun(undo, migration.direction))
            raise recovery.recover(
                replace(migration, tables=tuple(compress(migration.tables, begun))),
                undo,
                self._report(work),
                cause,
                lambda o, s, m: self._record(migration, o, started_at, s, m),
            ) from error
        self.state = state
        self.known |= dict.fromkeys(p.name for p in migration.tables)
        self.known |= {table.name: table for table in work.tables_after.values() if table is not None}
        self.renumbered |= work.renumbered
        self.ended.append(migration.version)
        self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return record

    def _resumed(self, version: Version) -> bool:
        """Whether an earlier run has started a version; its commits are added to the undo record."""
        history = self.held.history()
        earlier = next((i for i in history.intents if i.version == version), None)
        record = None if earlier is None else history.undo_record(version)
        if earlier is not None and record is not None and earlier.direction is Direction.APPLY:
            known = self.add_run_commits(record, earlier)
            if known != record:
                self.held.correct_undo_record(version, known)
        return earlier is not None

    def _publisher(self, migration: MigrationPlan) -> Publisher:
        return self.publishers.marked if migration.direction is Direction.APPLY else self.publishers.unmarked

    def _report(self, work: MigrationRun) -> FailureReport:
        return replace(work.log.report(), earlier_versions=tuple(self.ended))

    def _change_tables(self, migration: MigrationPlan, started_at: datetime, clock: float) -> HistoryRecord:
        """Reconcile or alter tables; versions and the declared state stay as they are."""
        self.held.may_change(str(table.name) for table in migration.tables)
        started = self._record(migration, RunOutcome.STARTED, started_at)
        self.held.supersede([started], lambda history: history)
        work = self._work(migration, UndoRecord(migration.version, ()))
        try:
            work.run()
        except IcemigrateError as cause:
            failed = self._record(migration, RunOutcome.FAILED, started_at, work.log.done, str(cause))
            with suppress(IcemigrateError):  # the user needs the cause of the failure
                self.held.supersede([failed], lambda history: history)
            raise
        is_manual = migration.direction is Direction.ALTER
        outcome = RunOutcome.ALTERED if is_manual else RunOutcome.RECONCILED
        record = self._record(migration, outcome, started_at, work.log.done)
        facts = manual_facts(migration, self.plan.base, self.known, work.tables_after) if is_manual else ()
        record = replace(record, facts=facts)
        self.held.supersede([record], lambda history: history)
        self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return record

    def _record_squash(
        self, migration: MigrationPlan, squash: SquashedVersions, started_at: datetime
    ) -> HistoryRecord:
        """Record a squash whose versions are all applied; no table changes."""
        record = replace(
            self._record(
                migration, RunOutcome.SQUASHED, started_at, message=f"for {', '.join(squash.versions)}"
            ),
            action="squash",
        )
        self.held.supersede([record], lambda history: with_squash(history, record, squash.versions))
        elapsed = datetime.now(timezone.utc) - started_at
        self.on_event(MigrationRecorded(migration.version, elapsed.total_seconds()))
        return record

    def baseline(self) -> tuple[HistoryRecord, ...]:
        """Record all migrations as applied, in one commit of the history; no table is changed."""
        started_at, clock = datetime.now(timezone.utc), time.monotonic()
        records, undo = list[HistoryRecord](), dict[str, UndoRecord]()
        for number, migration in enumerate(self.plan.migrations, start=1):
            self.stop.check()
            self._require_unblocked(migration, begun=None)
            self.on_event(
                MigrationStarted(migration.version, migration.description, number, len(self.plan.migrations))
            )
            undo[migration.version] = baseline_undo_record(migration, self.known, self.state)
            self.state = self.state.after_all((t.declared, t.formerly, t.wanted) for t in migration.tables)
            self.state = replace(self.state, namespaces=self.state.namespaces | migration.namespaces)
            records.append(
                replace(self._record(migration, RunOutcome.BASELINED, started_at), action="baseline")
            )
        self.held.supersede(records, lambda history: with_baselines(history, records, undo, self.state))
        for migration in self.plan.migrations:
            self.on_event(MigrationRecorded(migration.version, time.monotonic() - clock))
        return tuple(records)

    def _require_unblocked(self, migration: MigrationPlan, begun: Version | None) -> None:
        """Refuse a migration that an interrupted one, or a renumbered field, blocks.

        :param begun: the version that an earlier run may have begun.
        """
        for table in migration.tables:
            if table.formerly in self.renumbered:
                raise StalePlan(
                    f"migration {migration.version} was planned for other field ids of `{table.declared}`",
                    "run `icemigrate apply` again: it makes a new plan",
                )
        first = blocking_intent(self.held.history().intents, begun, migration.declared_names)
        if first is not None:
            how = "`icemigrate apply` finishes it, `icemigrate rollback` undoes it"
            raise ConflictError(
                f"migration {migration.version} is blocked: "
                f"migration {first.version} of the same tables was interrupted",
                how if first.direction is Direction.APPLY else "`icemigrate rollback` finishes the rollback",
            )

    def _work(self, migration: MigrationPlan, undo: UndoRecord, is_resumed: bool = False) -> MigrationRun:
        def before_each(text: str) -> None:
            self.stop.check()
            self.held.step(f"{migration.version}: {' '.join(text.split())[:MAX_STEP_LENGTH]}")

        has_run = self.plan.redo is not None or is_resumed
        return MigrationRun(
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
            correct_undo_record=lambda record: self.held.correct_undo_record(
                Version.parse(migration.version), record
            ),
            planned_tables=self.known,
            is_redo=migration.is_redo or self.plan.redo is not None,
            is_resumed=is_resumed,
            run_id=self.held.run,
        )

    def _record(
        self,
        migration: MigrationPlan,
        outcome: RunOutcome,
        started_at: datetime,
        statements: tuple[str, ...] = (),
        message: str | None = None,
    ) -> HistoryRecord:
        return HistoryRecord(
            version=_version(migration),
            description=migration.description,
            checksum=migration.checksum,
            project=self.plan.project,
            environment=self.plan.environment,
            outcome=outcome,
            started_at=started_at,
            finished_at=None if outcome is RunOutcome.STARTED else datetime.now(timezone.utc),
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
            lists=migration.lists,
        )


def _version(migration: MigrationPlan) -> Version | None:
    """The version; ``None`` for a plan without versions."""
    return Version.parse(migration.version) if migration.direction.has_versions else None
