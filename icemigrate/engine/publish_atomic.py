"""Statements run on a copy of the table, and what came of them lands on the table in one commit.

A statement that would fail, fails before the table is touched, and no reader sees half a migration.  Where
another writer commits first, the table is read again: what it changed stays, and if what the plan changes is
still as the plan found it, the commit is made anew on top of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from icemigrate.changes.base import Phase, Sql
from icemigrate.engine.copies import Copies, otherwise
from icemigrate.engine.explain import explained, is_commit_conflict
from icemigrate.engine.landing import Base, land, open_base
from icemigrate.engine.port import Marker
from icemigrate.engine.publish import OnCommit, fold, no_commit, run_step, statement_text
from icemigrate.engine.rebase import facts, require_asked, require_met, require_untouched, rests_on_rows
from icemigrate.engine.refill import is_refill
from icemigrate.engine.spark import SparkEngine
from icemigrate.engine.telling import Listener, Telling, telling
from icemigrate.errors import EngineError
from icemigrate.events import TableMarked, TablePublished, TablePublishing
from icemigrate.frozen import Frozen, replace
from icemigrate.model.marks import refill_branch_name
from icemigrate.model.table import Table
from icemigrate.plan import Step, TablePlan

TRIES = 40
"""How often the commit of one table is tried; with the pauses between them some fifteen seconds."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_DIRECTLY = (Phase.TABLE, Phase.ROWS, Phase.REMOVE_TABLE)
"""A catalog makes, renames and drops tables by itself; no commit of a table's metadata does, nor any of its
rows."""


class _Made(Frozen):
    """What came of the steps on a copy.

    :param before: the table that was copied.
    :param after: what it shall become, references left out.
    """

    before: Table
    after: Table


class AtomicPublisher:
    """See :class:`~icemigrate.engine.publish.Publisher`.

    :param tags: whether the marker and its tags are put on tables (``record: tags``).
    :param pause: waits for so many seconds.
    """

    lands_at_once = True

    def __init__(
        self, engine: SparkEngine, tags: bool = True, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._engine = engine
        self._tags = tags
        self._pause = pause
        self._copies: Copies | None = None

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
        """Run the steps on a copy, and land what came of them in one commit, marker and tags included.

        Steps that make, rename or drop the whole table run on the table itself.
        """
        tell = telling(plan, marker.version, on_event, refill_branch_name(marker.project, marker.run))
        first, inner, last = split(plan.steps)
        current = before
        for step in first:
            current = run_step(self._engine, plan, step, current, tell)
        if current is not None and any(step.statements for step in first):
            # What was asked of its rows was asked of those that were there when it was looked at.
            current = replace(self._there(current), snapshot=None if before is None else before.snapshot)
        marked = marker if self._tags and plan.wanted is not None and current is not None else None
        if inner or marked:
            assert current is not None, "what is altered is there"
            self._publish(plan, inner, current, marked, tell, on_commit)
        for step in last:
            current = run_step(self._engine, plan, step, current, tell)
        if marked is not None and not marked.is_begun and current is not None and any(map(is_refill, last)):
            # The tag reads the rows as the migration leaves them; those before it have theirs.
            self._engine.mark(current.name, replace(marked, before=None))
        return None if current is None else self._engine.table(current.name)

    def close(self) -> None:
        """Let go of the catalog of copies."""
        if self._copies is not None:
            with explained():
                self._copies.close()
            self._copies = None

    def _there(self, foreseen: Table) -> Table:
        """The table as the catalog made it, or under its new name."""
        found = self._engine.table(foreseen.name)
        if found is None:
            raise EngineError(
                f"the catalog said yes and did something else: there is no table `{foreseen.name}`",
                "see whether this catalog can do it at all",
            )
        return found

    def _publish(
        self,
        plan: TablePlan,
        steps: Sequence[Step],
        foreseen: Table,
        marker: Marker | None,
        tell: Telling,
        on_commit: OnCommit,
    ) -> None:
        """Try until the one commit has landed.

        :param foreseen: the table as the plan expects to find it.
        :param on_commit: see :meth:`publish`.
        """
        clock, made, done = time.monotonic(), None, tell.number
        with explained():
            for attempt in range(1, TRIES + 1):
                # Told before the table is read: who listens may take his time, and every moment between
                # reading and landing is one in which another writer can be faster.
                tell.on_event(TablePublishing(tell.version, foreseen.name, attempt))
                base = open_base(self._engine, foreseen.name)
                require_asked(foreseen, steps, base.table)
                if made is None or facts(base.table) != facts(made.before):
                    tell.again(done)
                    made = self._make(plan, steps, base, foreseen, tell)
                else:
                    require_met(foreseen, steps, base.table)  # others wrote rows
                try:
                    after, dated = _onto(base.table, made, steps), _dated(marker, plan, base)
                    committed = land(self._engine, base, after, dated, rests_on_rows(steps))
                    break
                except Exception as error:  # known by its Java cause alone
                    if not is_commit_conflict(error) or attempt == TRIES:
                        raise
                tell.note(foreseen.name, f"another writer was faster; try {attempt + 1} of {TRIES}")
                self._pause(pause_after(attempt))
        if committed is not None:
            on_commit(base.table.schema, committed)
            self._engine.java.refresh(foreseen.name)
            elapsed = time.monotonic() - clock
            tell.on_event(TablePublished(tell.version, foreseen.name, attempt, elapsed))
        if marker is not None and not marker.is_begun:
            tell.on_event(TableMarked(tell.version, foreseen.name, marker.tag))

    def _make(
        self, plan: TablePlan, steps: Sequence[Step], base: Base, foreseen: Table, tell: Telling
    ) -> _Made:
        """Run the steps on a copy of the table as it is.

        :raises EngineError: a statement fails, or makes something else than was planned.
        :raises ConflictError: somebody else changed what the steps change.
        """
        if facts(base.table) != facts(foreseen):
            require_untouched(foreseen, steps, base.table)
            tell.note(foreseen.name, "changed by somebody else meanwhile, beside what the plan changes")
        require_met(foreseen, steps, base.table)
        if not any(isinstance(statement, Sql) for step in steps for statement in step.statements):
            return _Made(base.table, _folded(steps, base.table, tell))
        if self._copies is None:
            self._copies = Copies(self._engine)
        copies, name = self._copies, base.table.name
        copies.add(name, base.json)
        try:
            wanted = base.table
            for step in steps:
                wanted = copies.run(step, wanted, tell)
            after = copies.engine.table(name)
        finally:
            copies.remove(name)
        assert after is not None, "nothing but this drops a copy"
        if wrong := otherwise(wanted, base.table, after):
            raise EngineError(
                f"Spark makes something else of table `{name}` than was planned: {'; '.join(wrong)}",
                "the table was not touched; report this as a bug",
            )
        return _Made(base.table, after)


def split(steps: Sequence[Step]) -> tuple[Sequence[Step], Sequence[Step], Sequence[Step]]:
    """What runs on the table itself before, what one commit can do, and what runs on the table behind it."""
    inner = [i for i, step in enumerate(steps) if step.changes[0].change.phase not in _DIRECTLY]
    start, end = (inner[0], inner[-1] + 1) if inner else (len(steps), len(steps))
    assert len(inner) == end - start, "a table is made and renamed before it is altered, and dropped after it"
    return steps[:start], steps[start:end], steps[end:]


def pause_after(attempt: int) -> float:
    """How many seconds to wait after so many tries; never the same, so that two do not meet again."""
    pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
    return pause * random.uniform(0.5, 1)  # noqa: S311 (nothing secret hangs on it)


def _folded(steps: Sequence[Step], table: Table, tell: Telling) -> Table:
    """The steps without Spark, where all of them are metadata commits."""
    for step in steps:
        for statement in step.statements:
            with tell.statement(table.name, statement_text(statement), on_copy=True):
                table = fold(step, table)
    return table


def _onto(now: Table, made: _Made, steps: Sequence[Step]) -> Table:
    """What a table shall become, snapshots and references as they are now.

    A copy knows neither.
    """
    changes = [c.change for s in steps for c in s.changes if c.change.phase is Phase.REFERENCES]
    table = replace(made.after, refs=now.refs, snapshot=now.snapshot, location=now.location, uuid=now.uuid)
    for change in changes:
        table = change.apply(table)
    return table


def _dated(marker: Marker | None, plan: TablePlan, base: Base) -> Marker | None:
    """The marker with the rows before it as they are in the very state that the commit starts from."""
    if marker is None or marker.is_fixed or not plan.steps:
        return marker
    rows = base.table.snapshot if base.table.has_rows else None
    return replace(marker, before=rows.id if rows else None)
