"""The documents in ``cases/`` on real tables: planned, carried out, read back.

What is read back is what the document declares, and field for field, ids included, what the fold of the
changes foretold without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.spark.publish_atomic import AtomicPublisher
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import table_sql
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import Case, make_plan
from tests.support.case_lake import OF_VIEWS, CaseLake, foreseen, lake_without_spark
from tests.support.comparable_metadata import comparable_metadata, differences

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


@pytest.fixture(scope="module")
def lake(spark: SparkSession, warehouse: Warehouse) -> Iterator[CaseLake]:
    settings = CatalogSettings(
        warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path)
    )
    engine = SparkEngine(spark, warehouse.catalog)
    atomically = AtomicPublisher(engine)

    def give_snapshot(name: TableName) -> None:
        sql = table_sql(warehouse.catalog, name)
        spark.sql(f"INSERT INTO {sql} SELECT * FROM {sql}")

    yield CaseLake(engine, open_catalog(settings), atomically, give_snapshot)
    atomically.close()


@pytest.fixture(scope="module")
def python_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CaseLake]:
    """A catalog of the same name that only commits of metadata in Python change."""
    with lake_without_spark(tmp_path_factory.mktemp("python"), "local") as made:
        yield made


@pytest.mark.parametrize(("case", "is_atomic"), RUNS)
def test_what_comes_out_is_what_is_declared(
    lake: CaseLake, python_lake: CaseLake, case: Case, is_atomic: bool
) -> None:
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
    if is_atomic and case.folder not in OF_VIEWS:
        there_too = python_lake.place(2 * POSITIVE.index(case) + is_atomic)
        before_too = python_lake.prepare(case, there_too)
        plan_too = make_plan(before_too, "0100", case.migration, there_too)
        python_lake.carry_out(case, before_too, plan_too, there_too, python_lake.atomically)
        for name in map(place.physical, there):
            assert differences(metadata_of(python_lake, name), metadata_of(lake, name)) == []


def metadata_of(lake: CaseLake, name: TableName) -> dict[str, Any]:
    """What two commits of the same changes have in common."""
    json = lake.engine.metadata_json(name)
    assert json is not None
    return comparable_metadata(json)
