"""The plan: the only bridge between thinking and doing.

Complete, serialisable and versioned.  The renderer, the checks and the executor read it
independently of each other; none of them plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from icemigrate.changes.base import Change, Hazard, Problem, Reversal, Reversible, Statement
from icemigrate.data.base import DataStatement, RowWork
from icemigrate.frozen import Frozen, field, replace
from icemigrate.merge import Conflict
from icemigrate.model.layout import OldShare
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import LastCopy
from icemigrate.model.writers import Writer

PLAN_FORMAT = 2
"""Version of the saved form; a plan of another version is refused."""


class Direction(str, Enum):
    """Whether a plan carries migrations out or takes them back."""

    APPLY = "apply"
    ROLLBACK = "rollback"
    RECONCILE = "reconcile"
    """Tables are led back to what the history recorded; no version is applied or taken back."""


class Consent(Frozen):
    """One ``allow`` of a migration file: a kind of hazard, for everything or for one scope."""

    kind: str
    scope: str | None = None

    def covers(self, hazard: Hazard) -> bool:
        """Whether it consents to the hazard; a table's scope covers its columns."""
        if self.kind != hazard.kind.value:
            return False
        return self.scope is None or hazard.scope == self.scope or hazard.scope.startswith(f"{self.scope}.")


class PlannedChange(Frozen):
    """A change with everything a reader wants to know of it before it runs."""

    change: Change
    text: str
    hazards: tuple[Hazard, ...]
    reversal: Reversal


class Step(Frozen):
    """Changes of one table that are done by the same statements."""

    changes: tuple[PlannedChange, ...]
    statements: tuple[Statement, ...]

    def scoped(self, declared: TableName) -> Step:
        """The step, its hazards scoped by a declared name: so ``allow`` is the same in every environment."""
        return replace(self, changes=tuple(_scoped(change, declared) for change in self.changes))


def _scoped(planned: PlannedChange, declared: TableName) -> PlannedChange:
    if not planned.hazards:
        return planned
    length = len(str(planned.change.table))
    hazards = tuple(replace(h, scope=f"{declared}{h.scope[length:]}") for h in planned.hazards)
    return replace(planned, hazards=hazards)


class LiveWriter(Frozen):
    """Somebody who writes a table, and what its migration does to them.

    :param breaks: why they fail or write wrongly once it is applied; nothing: they may go on as they are.
    """

    writer: Writer
    breaks: tuple[str, ...] = ()

    @property
    def must_restart(self) -> bool:
        """Whether it is a stream that has to be stopped and started anew."""
        return self.writer.stream and bool(self.breaks)


class PlannedWork(Frozen):
    """A data step with everything a reader wants to know of it before it runs.

    :param statements: addressed to the table or to the branch on which it runs.
    :param overwrites: whether values change that were there before the migration.
    """

    work: RowWork
    text: str
    statements: tuple[DataStatement, ...]
    hazards: tuple[Hazard, ...]
    reversal: Reversal
    overwrites: bool = False


class TablePlan(Frozen):
    """What one migration does to one table.

    :param name: the table's name in the catalog when the migration begins.
    :param declared: the table's declared name, under which the history knows it.
    :param wanted: the table as declared after the migration, new fields with negative ids; the
        history records it with the ids that are then read back.  ``None`` where it is dropped.
    :param formerly: the declared name before, ``None`` for a first mention.
    :param steps: in running order.
    :param notes: what was found done already, and other things worth saying.
    :param writers: who wrote the table of late, where anything is done to it.
    :param rows: what is done to the rows; where between ``steps`` and ``finish`` each of them runs says
        :func:`icemigrate.plan_rows.table_parts`.
    :param finish: what is left to be done once rows are written.
    :param old_files: the files of now that lie otherwise than the table is partitioned after it; ``None``
        where none does, where the partitioning stays, or where nobody could tell.
    :param stays: what an undo leaves of what the migration did, each in a few words.
    :param last_copies: values of columns that come back which only an earlier snapshot has; those that the
        steps bring back depend on it no more in the end.
    """

    name: TableName
    declared: TableName
    wanted: Table | None
    formerly: TableName | None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    writers: tuple[LiveWriter, ...] = ()
    rows: tuple[PlannedWork, ...] = ()
    finish: tuple[Step, ...] = ()
    old_files: OldShare | None = None
    stays: tuple[str, ...] = ()
    last_copies: tuple[LastCopy, ...] = ()

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps before the rows and those behind them."""
        return (*self.steps, *self.finish)

    def changes(self) -> Iterator[PlannedChange]:
        """All changes in running order."""
        for step in self.all_steps:
            yield from step.changes

    def hazards(self) -> Iterator[Hazard]:
        """The hazards of all changes and of what is done to the rows."""
        for change in self.changes():
            yield from change.hazards
        for work in self.rows:
            yield from work.hazards

    def reversals(self) -> Iterator[Reversal]:
        """The ways back of all of it."""
        yield from (change.reversal for change in self.changes())
        yield from (work.reversal for work in self.rows)


class Squash(Frozen):
    """What a squashed file stands for.

    :param first: the first version of its range.
    :param versions: applied ones, whose records its own takes the place of, and nothing else is done; none
        where it runs.
    """

    first: str
    versions: tuple[str, ...] = ()


class MigrationPlan(Frozen):
    """What one migration does.

    :param checksum: of the file's parsed content.
    :param fingerprint: of the file's bytes; empty where it is not known.
    :param create_namespaces: namespaces made before its tables are touched.
    :param drop_namespaces: those that go in the end, which the migration that is undone made, and which are
        empty then.
    :param problems: what forbids it.
    :param unconsented: hazards that the file's ``allow`` does not cover.
    :param direction: ``rollback`` where it undoes the version: no tag is put on its tables, its row says
        ``rolled_back``, and the version is held.  Its tables and steps are done like any others.
    :param squash: what it stands for, where it is a squash.
    :param baseline: it is recorded as done already, or such a record is taken back: no table is touched.
    :param refill_only: the version is rolled back already, and only values come back.
    :param is_redo: it applies a version again that was rolled back, under the field ids that it had.
    :param choices: the options of the command line that decide what is done, as they are written there: those
        of this run, and those of an interrupted run that this one continues.
    """

    version: str
    description: str
    checksum: str
    tables: tuple[TablePlan, ...] = ()
    create_namespaces: tuple[tuple[str, ...], ...] = ()
    drop_namespaces: tuple[tuple[str, ...], ...] = ()
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    unconsented: tuple[Hazard, ...] = ()
    direction: Direction = Direction.APPLY
    fingerprint: str = ""
    squash: Squash | None = None
    baseline: bool = False
    refill_only: bool = False
    is_redo: bool = False
    choices: tuple[str, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts of all its tables."""
        return tuple(c for t in self.tables for c in t.conflicts)

    @property
    def ready(self) -> bool:
        """Whether it may run: no problem, no conflict, every hazard consented to."""
        return not (self.problems or self.unconsented or self.conflicts)

    def changes(self) -> Iterator[PlannedChange]:
        """All changes of all tables."""
        for table in self.tables:
            yield from table.changes()

    @property
    def reversal(self) -> Reversible:
        """The least reversible answer of all that it does."""
        answers = {r.answer for t in self.tables for r in t.reversals()}
        for answer in (Reversible.NO, Reversible.WHILE):
            if answer in answers:
                return answer
        return Reversible.YES


RECONCILED = "reconcile"
"""Stands for a version where tables are led back, which is none."""


class Reconcile(Frozen):
    """What a plan that leads tables back was asked for.

    :param tables: declared names; all of them where there is none.
    :param allow: consents that were given with it.
    """

    tables: tuple[str, ...] = ()
    allow: tuple[Consent, ...] = ()


class Plan(Frozen):
    """All pending migrations of a project against one environment, or those that are taken back.

    :param catalog: what the catalog is, without secrets; a saved plan is bound to it.
    :param catalog_name: the catalog's name in Spark SQL.
    :param applied: versions and checksums in the history when the plan was made.
    :param based_on: the tables as they were, by name in the catalog, ``None`` where absent;
        snapshots left out, so that appended rows make nothing stale.
    :param base: the declared state that the history held.
    :param overwrite: facts that are set whatever the catalog has.
    :param redo: the held version that it applies again; ``None`` where it applies what is pending.
    :param to: the last version that was asked for; ``None`` for all.
    :param beyond: pending versions that were not asked for.
    :param held: versions that were rolled back and wait for ``redo``.
    :param held_gone: those of them of which there is no file any more.
    :param held_edited: those of them whose file says something else than what was rolled back.
    :param reconcile: where it leads tables back to what is recorded; ``None`` where it is about versions.
    :param unfinished: versions whose rollback was interrupted: nothing is applied before it is finished.
    """

    project: str
    environment: str
    catalog: str
    catalog_name: str
    migrations: tuple[MigrationPlan, ...] = ()
    applied: tuple[tuple[str, str], ...] = ()
    based_on: Mapping[TableName, Table | None] = field(default_factory=dict)
    base: State = field(default_factory=State)
    overwrite: frozenset[str] = frozenset()
    tool_version: str = ""
    redo: str | None = None
    to: str | None = None
    beyond: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    held_gone: tuple[str, ...] = ()
    held_edited: tuple[str, ...] = ()
    reconcile: Reconcile | None = None
    unfinished: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether every migration may run."""
        return not self.unfinished and all(m.ready for m in self.migrations)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to apply."""
        return not self.migrations

    @property
    def is_baseline(self) -> bool:
        """Whether it only records what is done already; a plan never does both."""
        return bool(self.migrations) and self.migrations[0].baseline and self.direction is Direction.APPLY

    @property
    def direction(self) -> Direction:
        """Whether it carries migrations out or takes them back; a plan never does both."""
        if self.reconcile is not None:
            return Direction.RECONCILE
        return self.migrations[0].direction if self.migrations else Direction.APPLY
