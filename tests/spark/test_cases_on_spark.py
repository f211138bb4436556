"""The documents in ``cases/`` on real tables: planned, carried out, read back.

What is read back is what the document declares, and field for field, ids included, what the fold of the
changes foretold without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.changes.change import SqlStatement
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.stages import later_name
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher, Publisher
from icemigrate.spark.publish_atomic import AtomicPublisher
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import table_sql
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import Case, Entry, Place, Planned, World, as_migration, make_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

POSITIVE = [c for c in documents.all_cases() if c.is_positive]
OF_WHOLE_TABLES = ("create_table", "adopt_table", "rename_table", "drop_table")
"""Kinds that come to the table in the same way however it is published."""
# A single statement is the same one either way; with several, it matters that each meets the one before.
RUNS = [
    pytest.param(case, is_atomic, id=f"{case.id} ({'atomic' if is_atomic else 'direct'})")
    for case in POSITIVE
    for is_atomic in (True, False)
    if is_atomic or (";\n" in case.text("statements") and case.folder not in OF_WHOLE_TABLES)
]


@dataclass(frozen=True)
class Lake:
    """Carries documents out in the suite's catalog, each in a namespace of its own."""

    spark: SparkSession
    engine: SparkEngine
    catalog: Catalog
    atomically: AtomicPublisher

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
                sql = table_sql(self.catalog.settings.name, name)
                self.spark.sql(f"INSERT INTO {sql} SELECT * FROM {sql}")

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
        """Run the statements alone, as somebody would who knows nothing of marks and records."""
        assert planned.plan is not None
        for namespace in planned.plan.create_namespaces:
            self.engine.create_namespace(namespace)
        for table in planned.plan.tables:
            for statement in (s for step in table.steps for s in step.statements):
                assert isinstance(statement, SqlStatement)
                self.engine.sql(statement.text)

    def entry(self, world: World, version: str, entry: Entry, place: Place) -> Planned:
        return make_plan(world, version, as_migration(entry), place)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, warehouse: Warehouse) -> Iterator[Lake]:
    settings = CatalogSettings(
        warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path)
    )
    engine = SparkEngine(spark, warehouse.catalog)
    atomically = AtomicPublisher(engine)
    yield Lake(spark, engine, open_catalog(settings), atomically)
    atomically.close()


@pytest.mark.parametrize(("case", "is_atomic"), RUNS)
def test_what_comes_out_is_what_is_declared(lake: Lake, case: Case, is_atomic: bool) -> None:
    place = lake.place(2 * POSITIVE.index(case) + is_atomic)
    before = lake.prepare(case, place)
    publisher = lake.atomically if is_atomic else lake.plainly
    done = lake.carry_out(case, before, make_plan(before, "0100", case.migration, place), place, publisher)
    there = {place.declared(n): t for n, t in done.actual.items() if t is not None}
    goal = documents.declared(case.after)
    assert there.keys() == goal.keys()
    for name, table in there.items():
        assert texts.comparable(table, with_ids=False) == texts.comparable(goal[name], with_ids=False)
    foretold = foreseen(case)
    for name, table in there.items():
        assert texts.comparable(table, with_ids=True) == texts.comparable(foretold[name], with_ids=True)
        assert table.last_column_id == foretold[name].last_column_id
    again = make_plan(replace(done, base=before.base), "0100", case.migration, place)
    assert again.plan is not None
    assert not again.plan.conflicts
    assert texts.open_text(again.plan) == ""


def foreseen(case: Case) -> dict[TableName, Table]:
    """What comes out, as it is foretold without Spark."""
    world = documents.world_before(case)
    done = documents.after(world, make_plan(world, "0100", case.migration))
    return {n: t for n, t in done.actual.items() if t is not None}
