"""The plan: the only bridge between thinking and doing.

Complete, serialisable and versioned.  The renderer, the checks and the executor read it
independently of each other; none of them plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from icemigrate.changes.change import Change, Hazard, PlanProblem, Reversal, Reversibility, Statement
from icemigrate.data_steps.data_step_kind import DataStatement, TableDataStep
from icemigrate.data_steps.time_zone import DEFAULT_TIME_ZONE
from icemigrate.files.read.list_sources import ListValues
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import LastCopy
from icemigrate.planning.merge import Conflict

PLAN_FORMAT = 2
"""Version of the saved form; a plan of another version is refused."""


class Direction(str, Enum):
    """Whether a plan carries migrations out or takes them back."""

    APPLY = "apply"
    ROLLBACK = "rollback"
    RECONCILE = "reconcile"
    """Tables are changed back to the recorded state; no version is applied or undone."""
    ALTER = "alter"
    """A user changes the columns of one table; no version is applied or undone."""

    @property
    def has_versions(self) -> bool:
        """Whether it applies versions or takes them back."""
        return self in (Direction.APPLY, Direction.ROLLBACK)


MISSING_CONSENT = "missing-allow"
"""The code of a diagnostic about a hazard without consent."""


class Consent(Frozen):
    """One ``allow`` of a migration file: a kind of hazard, for everything or for one scope."""

    kind: str
    scope: str | None = None


class PlannedChange(Frozen):
    """A change with its hazards, its reversal and its notes, for display before it runs."""

    change: Change
    text: str
    hazards: tuple[Hazard, ...]
    reversal: Reversal


class Step(Frozen):
    """Changes of one table that are done by the same statements."""

    changes: tuple[PlannedChange, ...]
    statements: tuple[Statement, ...]

    def scoped(self, declared: TableName) -> Step:
        """The step with hazards scoped by a declared name, so that ``allow`` is the same in every
        environment.
        """
        return replace(self, changes=tuple(_scoped(change, declared) for change in self.changes))


def _scoped(planned: PlannedChange, declared: TableName) -> PlannedChange:
    if not planned.hazards:
        return planned
    length = len(str(planned.change.table))
    hazards = tuple(replace(h, scope=f"{declared}{h.scope[length:]}") for h in planned.hazards)
    return replace(planned, hazards=hazards)


class AffectedWriter(Frozen):
    """A writer of a table, and the migration's effects on it.

    :param breaks: why it fails or writes wrong values after the migration; empty where it is not affected.
    """

    writer: Writer
    breaks: tuple[str, ...] = ()

    @property
    def must_restart(self) -> bool:
        """Whether it is a stream that has to be stopped and started anew."""
        return self.writer.stream and bool(self.breaks)


class PlannedDataStep(Frozen):
    """A data step with its hazards and its statements, for display before it runs.

    :param statements: with the name of the table or of the branch on which it runs.
    :param overwrites: whether it changes values from before the migration.
    """

    work: TableDataStep
    text: str
    statements: tuple[DataStatement, ...]
    hazards: tuple[Hazard, ...]
    reversal: Reversal
    overwrites: bool = False


class TablePlan(Frozen):
    """The plan of one table in one migration.

    :param name: the table's name in the catalog when the migration begins.
    :param declared: the table's declared name, the key in the history.
    :param wanted: the table as declared after the migration, new fields with negative ids; the history
        records it with the ids that are read back.  ``None`` where it is dropped.
    :param formerly: the declared name before, ``None`` for a first mention.
    :param temporary_name: its name in the catalog when its own steps begin, if the plan of another table
        moves it out of the way.
    :param steps: in running order.
    :param notes: finished facts, and other remarks.
    :param writers: recent writers of the table, where the plan changes it.
    :param rows: data steps; :func:`icemigrate.planning.stages.migration_stages` gives their order between
        ``steps`` and ``finish``.
    :param finish: changes after the rows are written.
    :param old_files: current files whose partitioning differs from the table's after the plan; ``None`` where
        there are none, where the partitioning stays, or where they are unknown.
    :param stays: effects of the migration that an undo leaves, as phrases.
    :param last_copies: values of restored columns that only an earlier snapshot has; values that the steps
        write back depend on it no more afterwards.
    """

    name: TableName
    declared: TableName
    wanted: Table | None
    formerly: TableName | None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    writers: tuple[AffectedWriter, ...] = ()
    rows: tuple[PlannedDataStep, ...] = ()
    finish: tuple[Step, ...] = ()
    old_files: OldSpecFiles | None = None
    stays: tuple[str, ...] = ()
    last_copies: tuple[LastCopy, ...] = ()
    temporary_name: TableName | None = None

    @property
    def first_name(self) -> TableName:
        """The table's name in the catalog when its own steps begin."""
        return self.temporary_name or self.name

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps before the data steps and after them."""
        return (*self.steps, *self.finish)

    def changes(self) -> Iterator[PlannedChange]:
        """All changes in running order."""
        for step in self.all_steps:
            yield from step.changes

    def hazards(self) -> Iterator[Hazard]:
        """The hazards of all changes and data steps."""
        for change in self.changes():
            yield from change.hazards
        for work in self.rows:
            yield from work.hazards

    def reversals(self) -> Iterator[Reversal]:
        """The reversals of all changes and data steps."""
        yield from (change.reversal for change in self.changes())
        yield from (work.reversal for work in self.rows)


class SquashedVersions(Frozen):
    """The versions that a squash replaces.

    :param first: the first version of its range.
    :param versions: applied versions whose records its own record supersedes; empty where the squash runs.
    """

    first: str
    versions: tuple[str, ...] = ()


class MigrationPlan(Frozen):
    """The plan of one migration.

    :param checksum: of the file's parsed content.
    :param fingerprint: of the file's bytes; empty where it is unknown.
    :param create_namespaces: namespaces to create before its tables change.
    :param drop_namespaces: namespaces to drop at the end: the undone migration created them, and they are
        empty then.
    :param problems: reasons why it cannot run.
    :param unconsented: hazards that the file's ``allow`` does not cover.
    :param direction: ``rollback`` where it undoes the version: its tables get no tag, its row has the outcome
        ``rolled_back``, and ``apply`` skips the version after that.
    :param squash: the replaced versions, where it is a squash.
    :param baseline: whether it records the version as applied, or removes such a record, without changing a
        table.
    :param refill_only: whether the version is rolled back already, and only values are written back.
    :param is_redo: whether it applies a rolled-back version again, under the field ids that it had.
    :param choices: the options of the command line that decide what is done, as written: those of this run,
        and those of an interrupted run that this one continues.
    :param time_zone: the zone in which its data steps run.
    :param lists: the values of lists for which the version is applied then.
    :param extends: whether the version is applied already, and this applies it to new values of its lists.
    """

    version: str
    description: str
    checksum: str
    tables: tuple[TablePlan, ...] = ()
    create_namespaces: tuple[tuple[str, ...], ...] = ()
    drop_namespaces: tuple[tuple[str, ...], ...] = ()
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    problems: tuple[PlanProblem, ...] = ()
    warnings: tuple[PlanProblem, ...] = ()
    unconsented: tuple[Hazard, ...] = ()
    direction: Direction = Direction.APPLY
    fingerprint: str = ""
    squash: SquashedVersions | None = None
    baseline: bool = False
    refill_only: bool = False
    is_redo: bool = False
    choices: tuple[str, ...] = ()
    time_zone: str = DEFAULT_TIME_ZONE
    lists: tuple[ListValues, ...] = ()
    extends: bool = False

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts of all its tables."""
        return tuple(c for t in self.tables for c in t.conflicts)

    @property
    def ready(self) -> bool:
        """Whether it may run: no problem, no conflict, every hazard consented to."""
        return not (self.problems or self.unconsented or self.conflicts)

    @property
    def declared_names(self) -> tuple[str, ...]:
        """The declared names of its tables before and after it, sorted."""
        names = {n for t in self.tables for n in (t.declared, t.formerly) if n is not None}
        return tuple(sorted(map(str, names)))

    def changes(self) -> Iterator[PlannedChange]:
        """All changes of all tables."""
        for table in self.tables:
            yield from table.changes()

    @property
    def reversal(self) -> Reversibility:
        """The least reversible answer of all that it does."""
        answers = {r.answer for t in self.tables for r in t.reversals()}
        for answer in (Reversibility.NO, Reversibility.WHILE):
            if answer in answers:
                return answer
        return Reversibility.YES


class PlannedMigrations(Frozen):
    """Plans in running order, and the declared state after them."""

    migrations: tuple[MigrationPlan, ...]
    state: DeclaredState


RECONCILE_VERSION = "reconcile"
"""Replaces the version in a plan that reconciles tables."""
ALTER_VERSION = "alter"
"""Replaces the version in a plan that changes the columns of one table."""


class ReconcileRequest(Frozen):
    """The request of a plan that reconciles tables.

    :param tables: declared names; empty for all tables.
    :param allow: consents of the request.
    """

    tables: tuple[str, ...] = ()
    allow: tuple[Consent, ...] = ()


class Plan(Frozen):
    """All pending migrations of a project for one environment, or the versions to undo.

    :param catalog: description of the catalog, without secrets; a saved plan is bound to it.
    :param catalog_name: the catalog's name in Spark SQL.
    :param applied: versions and checksums in the history when the plan was made.
    :param based_on: the current tables, by name in the catalog, ``None`` where absent; without snapshots, so
        that appended rows do not make a plan stale.
    :param base: the recorded state.
    :param overwrite: facts that are set whatever their current value is.
    :param redo: the rolled-back versions that it applies again, separated by blanks; ``None`` where it
        applies pending versions.
    :param to: the last requested version; ``None`` for all.
    :param beyond: pending versions after the last requested one.
    :param held: rolled-back versions that wait for ``redo``.
    :param held_gone: members of ``held`` without a file.
    :param held_edited: members of ``held`` whose file differs from the one that was rolled back.
    :param reconcile: the request to reconcile tables; ``None`` where the plan is about versions.
    :param unfinished: versions whose rollback was interrupted: it must be finished before anything is
        applied.
    :param lists: the values of lists that are not in the project file, with which it was made.
    :param only_extends: whether it leaves pending versions out.
    """

    project: str
    environment: str
    catalog: str
    catalog_name: str
    migrations: tuple[MigrationPlan, ...] = ()
    applied: tuple[tuple[str, str], ...] = ()
    based_on: Mapping[TableName, Table | None] = field(default_factory=dict)
    base: DeclaredState = field(default_factory=DeclaredState)
    overwrite: frozenset[str] = frozenset()
    tool_version: str = ""
    redo: str | None = None
    to: str | None = None
    beyond: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    held_gone: tuple[str, ...] = ()
    held_edited: tuple[str, ...] = ()
    reconcile: ReconcileRequest | None = None
    unfinished: tuple[str, ...] = ()
    lists: tuple[ListValues, ...] = ()
    only_extends: bool = False

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
        """Whether it only records versions as applied; a plan either does that or applies versions."""
        return bool(self.migrations) and self.migrations[0].baseline and self.direction is Direction.APPLY

    @property
    def direction(self) -> Direction:
        """Whether it carries migrations out or takes them back; a plan never does both."""
        if self.reconcile is not None:
            return Direction.RECONCILE
        return self.migrations[0].direction if self.migrations else Direction.APPLY
