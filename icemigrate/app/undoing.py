"""Undo records, the tables as they are and what their manifests say, put together into plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.app.continuing import without_left_branches
from icemigrate.app.world import Opened
from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Evidence
from icemigrate.model.makers import trash_names
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import MigrationPlan
from icemigrate.planner import Planned
from icemigrate.undo import (
    PLAIN,
    Contents,
    Options,
    Place,
    Undo,
    find,
    names_of,
    plan_late_refill,
    plan_undo,
    questions,
    questions_of_refill,
    uuid_of,
)

if TYPE_CHECKING:
    from icemigrate.engine.spark import SparkEngine

Tables = Mapping[TableName, Table | None]


class Version(Frozen):
    """A version that is to be taken back, as the history knows it.

    :param options: what the user wants of its undo.
    """

    version: str
    description: str
    checksum: str
    record: UndoRecord
    options: Options = PLAIN


@dataclass(slots=True)
class Undoing:
    """Plans undos in an environment whose catalog is open.

    :param interrupted: versions that a run began with and left without an outcome.
    :param engine: gives Spark when a question about files comes up; not called where none does.
    """

    world: Opened
    engine: Callable[[], SparkEngine]
    interrupted: frozenset[str] = frozenset()
    actual: dict[TableName, Table | None] = field(default_factory=dict)

    def plan(self, versions: Iterable[Version], state: State) -> Planned:
        """The plans of all versions, in the order given.

        :raises EngineError: Java, Spark or a manifest failed.
        :raises CatalogError: the catalog cannot be read.
        """
        versions = tuple(versions)
        self.actual = self._load([v.record for v in versions], state)
        undos = [
            Undo(v.version, v.description, v.checksum, v.record, self._evidence(v), v.options)
            for v in versions
        ]
        contents = self._contents({n for v in versions for n in v.record.namespaces})
        return plan_undo(undos, state, self.actual, self._place(), PLAIN, contents)

    def plan_refill(self, version: Version, state: State) -> MigrationPlan:
        """The plan that brings values back to the columns of a version that is held.

        :raises EngineError: Java, Spark or a manifest failed.
        :raises CatalogError: the catalog cannot be read.
        """
        record = version.record
        self.actual = self._load([record], state)
        evidence: dict[TableName, Evidence] = {}
        for undo in () if record.baseline else record.tables:
            there = find(undo, self.actual)
            asked = (
                None
                if there is None
                else questions_of_refill(undo, there, version.version, self.world.project.name)
            )
            if there is not None and asked is not None:
                evidence[undo.declared] = self.engine().evidence(there.name, asked)
        undone = Undo(version.version, version.description, version.checksum, record, evidence)
        return plan_late_refill(undone, state, self.actual, self._place(), version.options)

    def _contents(self, made: Iterable[tuple[str, ...]]) -> Contents | None:
        """What is in namespaces that migrations made; ``None`` where they have to stay."""
        made, catalog = frozenset(made), self.world.catalog
        if not made or not catalog.capabilities.namespace_drop_keeps_files:
            return None
        there = frozenset(catalog.namespaces())
        return Contents(there, {n: frozenset(catalog.tables(n)) for n in made & there})

    def _place(self) -> Place:
        world = self.world
        return Place(world.project.name, world.environment.catalog.name, world.names.table)

    def _load(self, records: Iterable[UndoRecord], state: State) -> dict[TableName, Table | None]:
        """The tables that the records speak of, wherever they are called what by now."""
        records, physical = tuple(records), self.world.names.table
        tables = [(record.version, undo) for record in records for undo in record.tables]
        names = {name for _, undo in tables for name in names_of(undo, state, physical)}
        project = self.world.project.name
        versions = {v for v, _ in tables}
        names |= {trash for v in versions for name in names for trash in trash_names(name, project, v)}
        catalog = self.world.catalog
        actual = dict(catalog.load(sorted(names), with_writers=True))
        lost = [undo for _, undo in tables if uuid_of(undo) is not None and find(undo, actual) is None]
        if lost:
            # Somebody renamed it: looked for by its uuid, in all of the catalog.
            actual |= catalog.load([name for name in catalog.tables() if name not in actual])
        return without_left_branches(actual, project, self.interrupted)

    def _evidence(self, version: Version) -> dict[TableName, Evidence]:
        rows_stay = version.options.metadata_only
        asked = questions(version.record, self.actual, self.world.project.name, rows_stay=rows_stay)
        if not asked:
            return {}
        engine = self.engine()
        return {a.declared: engine.evidence(a.name, a.questions) for a in asked}


def inverse(
    world: Opened, engine: SparkEngine, state: Callable[[], State]
) -> Callable[[UndoRecord], MigrationPlan]:
    """What plans the undo of a migration that failed on its way.

    :param state: as declared before it.
    """

    def plan(record: UndoRecord) -> MigrationPlan:
        undoing = Undoing(world, lambda: engine)
        version = Version(record.version, "", "", record, Options(apart=True))
        (migration,) = undoing.plan([version], state_after(record, state())).migrations
        return migration

    return plan


def state_after(record: UndoRecord, state: State) -> State:
    """The declared state as the migration was to leave it, for one that was cut short.

    :param state: as declared before it.
    """
    for undo in record.tables:
        name = undo.declared_after or undo.declared_before
        assert name is not None, "a table of a migration is declared before it or after it"
        state = state.after(name, undo.declared_before, undo.after)
    return state
