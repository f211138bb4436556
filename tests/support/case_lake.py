"""The documents in ``cases/`` carried out on real tables, by Spark or by commits of metadata in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.metadata_engine.engine import MetadataEngine
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.planning.stages import later_name
from icemigrate.spark.commit_ports import CommittingEngine
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher, Publisher
from icemigrate.spark.publish_atomic import AtomicPublisher
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import Case, Entry, Place, Planned, World, as_migration, make_plan

OF_VIEWS = ("keep_view", "replace_kept_view", "drop_kept_view")
"""Kinds of change that need Spark."""


@dataclass(frozen=True)
class CaseLake:
    """Carries documents out in a catalog, each in a namespace of its own.

    :param give_snapshot: writes no row to a table, which makes a snapshot all the same.
    """

    engine: CommittingEngine
    catalog: Catalog
    atomically: AtomicPublisher
    give_snapshot: Callable[[TableName], None]

    @property
    def plainly(self) -> Publisher:
        """Statement by statement, without marks."""
        return DirectPublisher(self.engine, tags=False)

    def place(self, number: int) -> Place:
        return Place(self.catalog.settings.name, f"case{number}", self.catalog.default_location)

    def world(self, base: DeclaredState, place: Place) -> World:
        """The catalog as it is now, read as ``plan`` reads it."""
        own = (place.namespace, f"{place.namespace}_")
        names = [
            n for n in self.catalog.tables() if n.namespace[0] == own[0] or n.namespace[0].startswith(own[1])
        ]
        return World(base, self.catalog.load(names), frozenset(self.catalog.namespaces()))

    def carry_out(
        self, case: Case, world: World, planned: Planned, place: Place, publisher: Publisher
    ) -> World:
        assert planned.plan is not None, texts.diagnostics_text(planned.diagnostics)
        assert planned.plan.ready
        for namespace in planned.plan.create_namespaces:
            self.engine.create_namespace(namespace)
        marker = Marker("market", planned.plan.version, "", planned.plan.checksum)
        for table in planned.plan.tables:
            publisher.publish(table, self.engine.table(table.name), marker, lambda event: None)
            if table.finish:
                last = replace(table, name=later_name(table), steps=table.finish, rows=(), finish=())
                publisher.publish(last, self.engine.table(last.name), marker, lambda event: None)
        self.write(self.world(planned.base, place), case)
        return self.world(planned.base, place)

    def write(self, world: World, case: Case) -> None:
        """Give every table a snapshot; of no rows, which is one all the same."""
        for name, table in world.actual.items() if case.rows else ():
            if table is not None and table.snapshot is None:
                self.give_snapshot(name)

    def prepare(self, case: Case, place: Place) -> World:
        """The world that a document's migration meets."""
        world = self.world(EMPTY_STATE, place)
        for number, entry in enumerate(case.before, 1):
            world = self.carry_out(
                case, world, self.entry(world, f"000{number}", entry, place), place, self.plainly
            )
        for entry in case.by_hand:
            others = documents.knowing_everything(world, place)
            self.by_hand(self.entry(others, "0900", entry, place))
            self.write(self.world(world.base, place), case)
            world = self.world(world.base, place)
        return world

    def by_hand(self, planned: Planned) -> None:
        """Make the changes as another client would, without marks and records."""
        assert planned.plan is not None
        for namespace in planned.plan.create_namespaces:
            self.engine.create_namespace(namespace)
        marker = Marker("others", "0900", "", "")
        for table in planned.plan.tables:
            self.plainly.publish(table, self.engine.table(table.name), marker, lambda event: None)

    def entry(self, world: World, version: str, entry: Entry, place: Place) -> Planned:
        return make_plan(world, version, as_migration(entry), place)


def foreseen(case: Case) -> dict[TableName, Table]:
    """What comes out, as it is foretold without Spark."""
    world = documents.world_before(case)
    done = documents.after(world, make_plan(world, "0100", case.migration))
    return {n: t for n, t in done.actual.items() if t is not None}


@contextmanager
def lake_without_spark(folder: Path, catalog_name: str) -> Iterator[CaseLake]:
    """A new SQLite catalog in a folder, changed by commits of metadata in Python."""
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse"
    settings = CatalogSettings(catalog_name, "sqlite", uri, warehouse)
    store, catalog = open_table_store(settings), open_catalog(settings)
    assert store is not None
    engine = MetadataEngine(store, catalog, None)

    def give_snapshot(name: TableName) -> None:
        engine.append(name, [], {}, [], expected_head=None, summary={})

    yield CaseLake(engine, catalog, AtomicPublisher(engine), give_snapshot)
    engine.close()
