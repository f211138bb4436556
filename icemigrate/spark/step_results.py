"""The result of a table's steps before it is committed: of statements on a copy, or predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.changes.change import ChangePhase, SqlStatement
from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Step
from icemigrate.spark.commit_ports import CommittingEngine
from icemigrate.spark.conflict_check import require_no_conflict, require_preconditions, table_without_rows
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.publish import apply_step
from icemigrate.spark.statement_events import StatementAnnouncer
from icemigrate.spark.table_copies import TableCopies, copy_differences


class StepResult(Frozen):
    """The result of steps.

    :param before: the table from which they started.
    :param after: the target, without references.
    """

    before: Table
    after: Table

    def fits(self, now: Table) -> bool:
        """Whether the steps would have the same result on the current table: only rows differ."""
        return table_without_rows(now) == table_without_rows(self.before)

    def onto(self, now: Table, steps: Sequence[Step]) -> Table:
        """The target of a table, with its current snapshots and references, which a copy does not have."""
        changes = [c.change for s in steps for c in s.changes if c.change.phase is ChangePhase.REFERENCES]
        table = replace(
            self.after, refs=now.refs, snapshot=now.snapshot, location=now.location, uuid=now.uuid
        )
        for change in changes:
            table = change.apply(table)
        return table


class StepRunner:
    """Runs the steps of tables on copies, where the engine runs statements, and predicts them elsewhere.

    :param on_copies: whether statements run on copies at all.
    """

    def __init__(self, engine: CommittingEngine, *, on_copies: bool = True) -> None:
        self._engine = engine
        self._on_copies = on_copies
        self._copies: TableCopies | None = None

    def run(
        self, steps: Sequence[Step], base: Any, foreseen: Table, announcer: StatementAnnouncer
    ) -> StepResult:
        """Run the steps of one table.

        :param base: as :meth:`~icemigrate.spark.commit_ports.TableCommits.read_base` returns it.
        :param foreseen: the table that the plan expects.
        :raises EngineError: a statement fails, or its result differs from the plan.
        :raises ConflictError: another client changed the same facts as the steps.
        """
        if table_without_rows(base.table) != table_without_rows(foreseen):
            require_no_conflict(foreseen, steps, base.table)
            announcer.note(foreseen.name, "another client made changes that do not conflict with the plan")
        require_preconditions(foreseen, steps, base.table)
        has_sql = any(isinstance(statement, SqlStatement) for step in steps for statement in step.statements)
        if has_sql and self._on_copies and self._copies is None:
            self._copies = self._engine.table_copies()
        copies, name = self._copies, base.table.name
        if copies is None or not has_sql:
            return StepResult(base.table, _predicted(steps, base.table, announcer))
        copies.add(name, base.json)
        try:
            wanted = base.table
            for step in announcer.each(steps):
                wanted = copies.run(step, wanted, announcer)
            after = copies.engine.table(name)
        finally:
            copies.remove(name)
        assert after is not None, "nothing but this drops a copy"
        if wrong := copy_differences(wanted, base.table, after):
            raise EngineError(
                f"Spark would change table `{name}` in another way than planned: {'; '.join(wrong)}",
                "the table was not changed; report this as a bug",
            )
        return StepResult(base.table, after)

    def close(self) -> None:
        """Close the catalog of copies."""
        if self._copies is not None:
            with convert_java_errors():
                self._copies.close()
            self._copies = None


def _predicted(steps: Sequence[Step], table: Table, announcer: StatementAnnouncer) -> Table:
    """The table after the steps, where no statement runs."""
    for step in announcer.each(steps):
        for statement in step.statements:
            with announcer.statement(table.name, statement.text, on_copy=True):
                pass
        table = apply_step(step, table)
    return table
