"""What Spark does with a view when its table changes, as the page about planning says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.iceberg.names import TableName
from tests.spark.conftest import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def analyzed(spark: SparkSession, view: str) -> str | None:
    """How Spark reads a view; ``None`` where it cannot."""
    from pyspark.errors import AnalysisException

    try:
        return str(spark.table(view)._jdf.queryExecution().analyzed().toString())
    except AnalysisException:
        return None


@pytest.fixture
def table(spark: SparkSession, warehouse: Warehouse, namespace: str) -> str:
    """A table with views: ``named`` says a column's name, ``star`` says none."""
    table = f"{warehouse.catalog}.{namespace}.orders"
    spark.sql(f"CREATE TABLE {table} (id int, volume int, note string)")
    for view, query in {"named": f"SELECT volume FROM {table}", "star": f"SELECT * FROM {table}"}.items():
        spark.sql(f"CREATE VIEW {warehouse.catalog}.{namespace}.{view} AS {query}")
    return table


def test_views_after_a_change(spark: SparkSession, warehouse: Warehouse, namespace: str, table: str) -> None:
    def reads() -> tuple[bool, bool]:
        found = (analyzed(spark, f"{warehouse.catalog}.{namespace}.{view}") for view in ("named", "star"))
        named, star = (plan is not None for plan in found)
        return named, star

    assert reads() == (True, True)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN volume TO quantity")
    assert reads() == (False, True)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN quantity TO volume")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN note")
    assert reads() == (True, False)
    spark.sql(f"ALTER TABLE {table} ADD COLUMN note string")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN first int FIRST")
    star = analyzed(spark, f"{warehouse.catalog}.{namespace}.star")
    # By position: what the view calls `id` are the values of the new column.
    assert star is not None
    assert re.search(r"cast\(first#\d+ as int\) AS id#", star)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN first")
    assert reads() == (True, True)
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN volume TYPE bigint")
    assert reads() == (False, False)
    settings = CatalogSettings(
        warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path)
    )
    catalog = open_catalog(settings)
    views = catalog.load_views(catalog.views((namespace,)))
    assert [(v.name, [(q.dialect, q.sql) for q in v.queries]) for v in views] == [
        (TableName((namespace,), "named"), [("spark", f"SELECT volume FROM {table}")]),
        (TableName((namespace,), "star"), [("spark", f"SELECT * FROM {table}")]),
    ]
