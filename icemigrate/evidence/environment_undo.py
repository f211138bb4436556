"""Plans undos from undo records, the current tables and answers from their manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.catalog.view_names import views_beside
from icemigrate.evidence.interrupted_views import with_interrupted_views
from icemigrate.evidence.snapshot_logs import with_snapshot_logs
from icemigrate.execution.continued_run import without_leftover_branches
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import Frozen
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, aside_name, trash_names
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import MigrationPlan, PlannedMigrations
from icemigrate.planning.undo import (
    DEFAULT_UNDO_OPTIONS,
    MigrationUndo,
    NamespaceContents,
    UndoEnvironment,
    UndoOptions,
    candidate_names,
    find_undo_table,
    plan_late_refill,
    plan_undo,
    recorded_uuid,
    refill_questions,
    undo_questions,
)
from icemigrate.spark_sql.identifiers import table_sql
from icemigrate.system.activity import counted_activity

if TYPE_CHECKING:
    from icemigrate.spark.engine_port import Engine


class UndoTarget(Frozen):
    """A version to undo, from the history.

    :param options: the user's options of its undo.
    """

    version: str
    description: str
    checksum: str
    record: UndoRecord
    options: UndoOptions = DEFAULT_UNDO_OPTIONS


@dataclass(slots=True)
class EnvironmentUndoPlanner:
    """Plans undos in an environment whose catalog is open.

    :param interrupted: versions of runs that ended without an outcome.
    :param engine: starts Spark.  Called only where Python cannot read a manifest, or rows must be counted.
    :param has_spark: whether Spark runs anyway: then Iceberg's own library answers them.
    """

    session: EnvironmentSession
    engine: Callable[[], Engine]
    interrupted: frozenset[str] = frozenset()
    has_spark: bool = True
    actual: dict[TableName, Table | None] = field(default_factory=dict)

    def plan(self, versions: Iterable[UndoTarget], state: DeclaredState) -> PlannedMigrations:
        """The plans of all versions, in the order given.

        :raises EngineError: Java, Spark or a manifest failed.
        :raises CatalogError: the catalog cannot be read.
        """
        versions = tuple(versions)
        self.actual = self._load([v.record for v in versions], state)
        undos = [
            MigrationUndo(v.version, v.description, v.checksum, v.record, self._evidence(v), v.options)
            for v in versions
        ]
        contents = self._contents({n for v in versions for n in v.record.namespaces})
        planned = plan_undo(undos, state, self.actual, self._place(), DEFAULT_UNDO_OPTIONS, contents)
        return with_interrupted_views(self.session, planned, [v.record for v in versions], self.actual)

    def plan_refill(self, version: UndoTarget, state: DeclaredState) -> MigrationPlan:
        """The plan that writes values back to the columns of a rolled-back version.

        :raises EngineError: Java, Spark or a manifest failed.
        :raises CatalogError: the catalog cannot be read.
        """
        record = version.record
        self.actual = self._load([record], state)
        evidence: dict[TableName, Evidence] = {}
        for undo in () if record.baseline else record.tables:
            there = find_undo_table(undo, self.actual)
            asked = (
                None
                if there is None
                else refill_questions(undo, there, version.version, self.session.project.name)
            )
            if there is not None and asked is not None:
                evidence[undo.declared] = self._answers(there.name, asked)
        undone = MigrationUndo(version.version, version.description, version.checksum, record, evidence)
        return plan_late_refill(undone, state, self.actual, self._place(), version.options)

    def _contents(self, made: Iterable[tuple[str, ...]]) -> NamespaceContents | None:
        """The content of namespaces that migrations created; ``None`` where they must stay."""
        made, catalog = frozenset(made), self.session.catalog
        if not made or not catalog.capabilities.namespace_drop_keeps_files:
            return None
        there = frozenset(catalog.namespaces())
        return NamespaceContents(there, {n: frozenset(catalog.tables(n)) for n in made & there})

    def _place(self) -> UndoEnvironment:
        session = self.session
        views = views_beside(session.catalog, self.actual)
        return UndoEnvironment(
            session.project.name, session.environment.catalog.name, session.names.table, views
        )

    def _load(self, records: Iterable[UndoRecord], state: DeclaredState) -> dict[TableName, Table | None]:
        """The tables of the records, under their current names."""
        records, physical = tuple(records), self.session.names.table
        tables = [(record.version, undo) for record in records for undo in record.tables]
        names = {name for _, undo in tables for name in candidate_names(undo, state, physical)}
        project = self.session.project.name
        versions = {v for v, _ in tables}
        pairs = [(name, project, v) for v in versions for name in names]
        names |= {trash for pair in pairs for trash in trash_names(*pair)} | {aside_name(*p) for p in pairs}
        catalog = self.session.catalog
        actual = dict(catalog.load(sorted(names), with_writers=True))
        lost = [
            undo
            for _, undo in tables
            if recorded_uuid(undo) is not None and find_undo_table(undo, actual) is None
        ]
        if lost:
            # Another client renamed it: it is searched by its uuid, in the whole catalog.
            others = [name for name in catalog.tables() if name not in actual]
            actual |= load_readable_tables(catalog, others).tables
        actual = without_leftover_branches(actual, project, self.interrupted)
        sides = (side for _, undo in tables for side in (undo.before, undo.after) if side is not None)
        return with_snapshot_logs(actual, catalog) if any(side.pins for side in sides) else actual

    def _evidence(self, version: UndoTarget) -> dict[TableName, Evidence]:
        rows_stay = version.options.metadata_only
        asked = undo_questions(version.record, self.actual, self.session.project.name, rows_stay=rows_stay)
        answers = dict[TableName, Evidence]()
        with counted_activity("Reading the manifests of {} tables", len(asked)) as count_one:
            for one in asked:
                answers[one.declared] = self._answers(one.name, one.questions)
                count_one()
        return answers

    def _answers(self, name: TableName, questions: EvidenceQuery) -> Evidence:
        """Answers about the files of a table; Spark is started only for files that Python cannot read.

        A rollback plans again under the lock, with Iceberg's own library, before it changes anything.
        """
        session = self.session
        metadata = None if self.has_spark else session.catalog.metadata_json(name)
        if metadata is not None:
            from icemigrate.spark.file_evidence import gather_without_jvm

            rows = table_sql(session.environment.catalog.name, name)

            def ask(text: str) -> Sequence[tuple[Any, ...]]:
                return self.engine().ask(text)

            found = gather_without_jvm(metadata, session.catalog.read_file, ask, rows, questions)
            if found is not None:
                return found
        return self.engine().evidence(name, questions)


def failed_run_undo_planner(
    session: EnvironmentSession, engine: Engine, state: Callable[[], DeclaredState]
) -> Callable[[UndoRecord], MigrationPlan]:
    """The planner of the undo of a failed migration.

    :param state: the declared state before it.
    """

    def plan(record: UndoRecord) -> MigrationPlan:
        undoing = EnvironmentUndoPlanner(session, lambda: engine)
        version = UndoTarget(record.version, "", "", record, UndoOptions(is_recovery=True))
        (migration,) = undoing.plan([version], declared_state_after(record, state())).migrations
        return migration

    return plan


def declared_state_after(record: UndoRecord, state: DeclaredState) -> DeclaredState:
    """The declared state as the migration was to leave it, for one that was cut short.

    :param state: as declared before it.
    """
    return state.after_all((undo.declared, undo.declared_before, undo.after) for undo in record.tables)
