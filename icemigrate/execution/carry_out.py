"""The one way in which a plan runs, whichever command made it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.events import Event, MigrationStarted
from icemigrate.execution.continued_run import run_commit_adder
from icemigrate.execution.engine_choice import LazyEngine, history_writer
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.publishers import environment_publishers
from icemigrate.execution.statement_log import NoteCollector, plan_note_lines
from icemigrate.frozen import Frozen
from icemigrate.history.history_record import HistoryRecord
from icemigrate.planning.plan import Direction, MigrationPlan, Plan
from icemigrate.planning.plan_staleness import as_stale

if TYPE_CHECKING:
    from icemigrate.execution.recovery import PlanInverse
    from icemigrate.spark.commit_ports import CommittingEngine


class CarriedOut(Frozen):
    """A plan that ran.

    :param records: one for each migration; none where another process was faster.
    :param notes: the notes of the run, each with its version and table.
    :param plan_notes: the notes of the plan, in the same form.
    :param elapsed_ms: from the start of the first migration to the record of the last one.
    """

    records: tuple[HistoryRecord, ...]
    notes: tuple[str, ...]
    plan_notes: tuple[str, ...]
    elapsed_ms: int

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the records, in order."""
        return tuple(record.version.text for record in self.records if record.version is not None)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes of the plan, then those of the run."""
        return (*self.plan_notes, *self.notes)


def carry_out(
    session: EnvironmentSession,
    plan: Plan,
    replan: Callable[[CommittingEngine], Plan],
    *,
    engine: LazyEngine,
    on_event: Callable[[Event], None],
    lock_timeout_s: float | None = None,
    inverse: Callable[[CommittingEngine], PlanInverse] = lambda engine: lambda record: None,
) -> CarriedOut:
    """Run a plan under the project's lock, in any direction.

    :param replan: makes the plan again under the lock, and raises where it differs or may not run; returns an
        empty plan where another process has already carried it out.
    :param lock_timeout_s: how long to wait for the lock; ``None`` for the default.
    :param inverse: what plans the undo of a failed migration; by default nothing is undone.
    :raises LockHeld: another process holds the lock, or took it over.
    :raises StalePlan: the plan would be another one by now.
    :raises NotUnderstood: Spark would not run a data step.
    :raises EngineError: Java, Spark or a statement failed, or the storage rejects files of a refill.
    """
    from icemigrate.execution.run import run_plan
    from icemigrate.spark.data_step_trial import require_valid_data_steps
    from icemigrate.spark.refill_trial import require_refill_writes

    chosen, notes = engine(on_event), NoteCollector(on_event)

    def check_data_steps(migrations: Sequence[MigrationPlan], begun: Collection[str]) -> None:
        tables = [table for migration in migrations for table in migration.tables]
        has_steps = plan.direction is Direction.APPLY and any(table.rows for table in tables)
        has_refill = any(isinstance(c.change, RefillColumns) for table in tables for c in table.changes())
        # Through Spark Connect there are no copies: a step that fails is undone with its migration.
        if has_steps and (spark := chosen.in_jvm("a data step")) is not None:
            require_valid_data_steps(spark, migrations, begun)
        if has_refill and (spark := chosen.in_jvm("a refill")) is not None:
            require_refill_writes(spark, migrations)

    def replanned() -> Plan:
        with as_stale():
            return replan(chosen)

    # Neither the start of Spark nor a wait for the lock counts, so that runs can be compared.
    begun: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, MigrationStarted) and not begun:
            begun.append(time.monotonic())
        notes(event)

    records = run_plan(
        plan,
        chosen,
        open_journal(session, history_writer(session, engine.session, chosen), lock_timeout_s),
        listen,
        keep=session.environment.keep_tags,
        replan=replanned,
        publishers=environment_publishers(session, chosen, plan.direction),
        inverse=inverse(chosen),
        check_data_steps=check_data_steps,
        add_run_commits=run_commit_adder(session),
    )
    elapsed = sum(round((time.monotonic() - begin) * 1000) for begin in begun)
    return CarriedOut(records, notes.collected, plan_note_lines(plan), elapsed)
