"""Runs statements on a copy of the table, and applies the result to the table in one commit.

A statement that would fail, fails before the table changes, and no reader sees half a migration.  If another
writer commits first, the table is read again: changes by others stay, and if the facts that the plan changes
are still as planned, the commit is made again on top of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from icemigrate.errors import EngineError
from icemigrate.events import TableMarked, TablePublished, TablePublishing
from icemigrate.frozen import replace
from icemigrate.iceberg.ref_names import refill_branch_name
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Step, TablePlan
from icemigrate.planning.transactions import NOT_IN_A_COMMIT
from icemigrate.spark.commit_attempts import TRIES, another_attempt, dated_marker, pause_after
from icemigrate.spark.commit_ports import CommittingEngine
from icemigrate.spark.conflict_check import is_row_dependent, require_checked_rows, require_preconditions
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import OnCommit, no_commit, run_step
from icemigrate.spark.publish_creations import CreationPublisher
from icemigrate.spark.publish_together import TransactionPublisher
from icemigrate.spark.refill import is_refill
from icemigrate.spark.statement_events import Listener, StatementAnnouncer, statement_announcer
from icemigrate.spark.step_results import StepRunner
from icemigrate.system.activity import activity


class AtomicPublisher:
    """See :class:`~icemigrate.spark.publish.Publisher`.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    :param pause: waits for a number of seconds.
    """

    is_single_commit = True
    signs = True

    def __init__(
        self, engine: CommittingEngine, tags: bool = True, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._engine = engine
        self._tags = tags
        self._pause = pause
        self._steps = StepRunner(engine)
        self.together: TransactionPublisher | None = TransactionPublisher(
            engine, self._steps, tags=tags, pause=pause
        )
        self.creations: CreationPublisher | None = CreationPublisher(engine, tags)

    @property
    def tags_at_once(self) -> bool:
        """Whether the one commit puts the tag on the table too."""
        return self._tags

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        """Run the steps on a copy, and apply the result in one commit, with marker and tags.

        Steps that create, rename or drop the whole table run on the table itself.
        """
        announcer = statement_announcer(
            plan, marker.version, on_event, refill_branch_name(marker.project, marker.run)
        )
        first, inner, last = split_steps(plan.steps)
        current = before
        for step in announcer.each(first):
            current = run_step(self._engine.step_engine, plan, step, current, announcer)
        if current is not None and any(step.statements for step in first):
            # Its rows were checked as they were when the table was read.
            current = replace(self._there(current), snapshot=None if before is None else before.snapshot)
        marked = marker if self._tags and plan.wanted is not None and current is not None else None
        if inner or marked:
            assert current is not None, "what is altered is there"
            is_known = self._tags and not (marker.is_started or marker.is_fixed)
            run = "" if is_known else marker.run
            self._publish(plan, inner, current, marked, announcer, on_commit, run)
        for step in announcer.each(last):
            current = run_step(self._engine.step_engine, plan, step, current, announcer)
        if marked is not None and not marked.is_started and current is not None and any(map(is_refill, last)):
            # The tag reads the rows after the migration; those before it have their own tag.
            self._engine.mark(current.name, replace(marked, before=None))
        return None if current is None else self._engine.table(current.name)

    def close(self) -> None:
        """Close the catalog of copies."""
        self._steps.close()

    def _there(self, foreseen: Table) -> Table:
        """The table as the catalog made it, or under its new name."""
        found = self._engine.table(foreseen.name)
        if found is None:
            raise EngineError(
                f"the catalog reported success, but table `{foreseen.name}` does not exist",
                "check that the catalog supports this change",
            )
        return found

    def _publish(
        self,
        plan: TablePlan,
        steps: Sequence[Step],
        foreseen: Table,
        marker: Marker | None,
        announcer: StatementAnnouncer,
        on_commit: OnCommit,
        run: str,
    ) -> None:
        """Retry until the one commit succeeds.

        :param foreseen: the table that the plan expects.
        :param on_commit: see :meth:`publish`.
        :param run: see :func:`~icemigrate.spark.commit.commit_changes`.
        """
        made, done = None, announcer.number
        with convert_java_errors():
            for attempt in range(1, TRIES + 1):
                # Before the table is read: a listener may take its time, and between the read and the commit
                # another writer can be faster.
                announcer.on_event(TablePublishing(announcer.version, foreseen.name, attempt))
                base = self._engine.commits.read_base(foreseen.name)
                require_checked_rows(foreseen, steps, base.table)
                if made is None or not made.fits(base.table):
                    announcer.again(done)
                    made = self._steps.run(steps, base, foreseen, announcer)
                else:
                    require_preconditions(foreseen, steps, base.table)  # others wrote rows
                try:
                    after, dated = made.onto(base.table, steps), dated_marker(marker, plan, base.table)
                    began = time.monotonic()
                    with activity(f"Committing {foreseen.name}"):
                        committed = self._engine.commits.commit(
                            base, after, dated, holds_rows=is_row_dependent(steps), run=run
                        )
                    break
                except Exception as error:  # the engine identifies it
                    if not self._engine.commits.is_conflict(error) or attempt == TRIES:
                        raise
                announcer.note(foreseen.name, another_attempt(attempt + 1))
                self._pause(pause_after(attempt))
        if committed is not None:
            on_commit(base.table.schema, committed)
            elapsed = time.monotonic() - began
            announcer.on_event(TablePublished(announcer.version, foreseen.name, attempt, elapsed))
        if marker is not None and not marker.is_started:
            announcer.on_event(TableMarked(announcer.version, foreseen.name, marker.tag))


def split_steps(steps: Sequence[Step]) -> tuple[Sequence[Step], Sequence[Step], Sequence[Step]]:
    """The steps on the table before the commit, those of the commit, and those on the table after it."""
    inner = [i for i, step in enumerate(steps) if step.changes[0].change.phase not in NOT_IN_A_COMMIT]
    start, end = (inner[0], inner[-1] + 1) if inner else (len(steps), len(steps))
    assert len(inner) == end - start, "a table is made and renamed before it is altered, and dropped after it"
    return steps[:start], steps[start:end], steps[end:]
