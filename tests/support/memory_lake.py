"""A lake in memory in which migrations written as YAML are applied and taken back, history and all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from icemigrate.events import Event
from icemigrate.evidence.environment_undo import declared_state_after
from icemigrate.execution.recovery import PlanInverse
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter, history_of
from icemigrate.history.history_properties import History
from icemigrate.history.journal import Journal
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import MigrationPlan, Plan, PlannedMigrations
from icemigrate.planning.undo import (
    DEFAULT_UNDO_OPTIONS,
    MigrationUndo,
    UndoEnvironment,
    UndoOptions,
    plan_undo,
)
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine

HISTORY = TableName(("icemigrate",), "history")
NOTHING_NEW = Evidence()


@dataclass(slots=True)
class _Engine(RecordingEngine):
    """Tables get a uuid, as every catalog gives them one."""

    def sql(self, text: str) -> None:
        RecordingEngine.sql(self, text)
        for name, table in self.tables.items():
            if table.uuid is None:
                self.tables[name] = replace(table, uuid=str(uuid4()))


@dataclass(slots=True)
class Lake:
    """Tables, and what was done to them."""

    engine: _Engine = field(default_factory=lambda: _Engine(catalog_name="local"))
    events: list[Event] = field(default_factory=list)

    def table(self, name: str = "db.t") -> Table:
        """A table that must be there."""
        return self.engine.tables[TableName.parse(name)]

    def names(self) -> set[str]:
        """The tables that are there, the history left out."""
        return {str(name) for name in self.engine.tables if name != HISTORY}

    def by_hand(self, change: Callable[[Table], Table], name: str = "db.t") -> None:
        """What somebody else does to a table."""
        table = change(self.engine.tables.pop(TableName.parse(name)))
        self.engine.tables[table.name] = table

    def write(self, snapshot_id: int, rows: int = 3, name: str = "db.t") -> None:
        """Somebody writes rows."""
        self.by_hand(lambda t: replace(t, snapshot=Snapshot(snapshot_id, snapshot_id, rows)), name)

    @property
    def history(self) -> History:
        """What the history says."""
        table = self.engine.tables.get(HISTORY)
        return History("market") if table is None else history_of(table, HISTORY, "market")

    @property
    def state(self) -> DeclaredState:
        """As declared by what is applied."""
        return self.history.state

    def record(self, version: str) -> UndoRecord:
        """What a version is undone from."""
        applied = next(a for a in self.history.applied if a.version.text == version)
        record = self.history.undo_record(applied.version)
        assert record is not None
        return record

    def apply(self, version: str, text: str, *overwrite: str) -> None:
        """Apply a migration.

        :param overwrite: facts that are set whatever they are now.
        """
        self.run(
            make_plan(
                {version: text},
                self.engine.tables,
                base=self.state,
                namespaces=self.engine.namespaces,
                overwrite=overwrite,
            )
        )

    def run(self, plan: Plan, inverse: PlanInverse = lambda record: None) -> None:
        """Carry a plan out.

        :param inverse: plans the undo of a migration that fails; by default its changes stay.
        """
        self.engine.expect(plan)
        journal = Journal(HistoryWriter(self.engine, HISTORY, "market"))
        run_plan(plan, self.engine, journal, self.events.append, inverse=inverse)

    def undo_of_failure(self, record: UndoRecord) -> MigrationPlan:
        """The plan that takes a migration back which failed, for :meth:`run`."""
        after = declared_state_after(record, self.state)
        tables = {name: t for name, t in self.engine.tables.items() if name != HISTORY}
        undo = MigrationUndo(record.version, "", "", record, {t.declared: NOTHING_NEW for t in record.tables})
        options = UndoOptions(is_recovery=True)
        planned = plan_undo([undo], after, tables, UndoEnvironment("market", "local"), options)
        self.engine.expect(Plan("market", "local", "sqlite", "local", planned.migrations, base=after))
        return planned.migrations[0]

    def undo(
        self,
        *versions: str,
        evidence: Evidence | Mapping[str, Evidence] = NOTHING_NEW,
        options: UndoOptions = DEFAULT_UNDO_OPTIONS,
    ) -> PlannedMigrations:
        """The plan that takes versions back.

        :param evidence: of every table, or by declared name.
        """
        undos = []
        for version in versions:
            record = self.record(version)
            answers = {
                t.declared: evidence if isinstance(evidence, Evidence) else evidence[str(t.declared)]
                for t in record.tables
            }
            undos.append(MigrationUndo(version, f"the {version}", "c0ffee", record, answers))
        tables = {name: t for name, t in self.engine.tables.items() if name != HISTORY}
        return plan_undo(undos, self.state, tables, UndoEnvironment("market", "local"), options)

    def rollback(
        self, *versions: str, evidence: Evidence = NOTHING_NEW, options: UndoOptions = DEFAULT_UNDO_OPTIONS
    ) -> PlannedMigrations:
        """Take versions back."""
        planned = self.undo(*versions, evidence=evidence, options=options)
        plan = Plan("market", "local", "sqlite", "local", planned.migrations, base=self.state)
        assert plan.ready, [(m.problems, m.conflicts) for m in plan.migrations]
        self.run(plan)
        return planned


def columns(table: Table) -> list[str]:
    """Its columns in order, with their ids: ``a#1``."""
    return [f"{f.name}#{f.id}" for f in table.schema.fields]


def problems(planned: PlannedMigrations) -> list[str]:
    """What forbids a plan, by the rules' names and conflicts' facts."""
    return [p.rule for m in planned.migrations for p in m.problems] + [
        c.fact for m in planned.migrations for c in m.conflicts
    ]


def notes(planned: PlannedMigrations) -> list[str]:
    """What is worth saying."""
    return [note for m in planned.migrations for t in m.tables for note in t.notes]
