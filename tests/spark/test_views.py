"""Views on a real catalog: what Spark does when their table changes, and those that keep old column names."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.commands import maintain as maintain_command
from icemigrate.commands.maintain import maintain, plan_maintenance
from icemigrate.errors import EngineError
from icemigrate.execution.failures import Undone
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.names import TableName
from icemigrate.spark.spark_engine import SparkEngine
from tests.spark.conftest import Warehouse
from tests.spark.test_rollback import ROW_1, Shop

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


class _InAMonth(datetime):
    """A clock that is 31 days ahead."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(days=31)


KEEP = """
    tables:
      - name: db.trades
        renames: {price: amount, symbol: "from"}
        keep_view: 30d
"""
WIDER = """
    tables: [{name: db.trades, renames: {amount: value}, columns: [{name: value, type: "decimal(12,2)"}]}]
"""


def test_a_kept_view_reads_the_old_names(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, spark)
    shop.insert(ROW_1)
    old, new = "SELECT symbol, price FROM @.trades__before_0002", "SELECT `from`, amount FROM @.trades"

    def views() -> list[str]:
        return [row[1] for row in shop.sql("SHOW VIEWS IN @")]

    def without_views(engine: SparkEngine, text: str) -> None:
        if text.startswith("CREATE OR REPLACE VIEW"):
            raise EngineError("the catalog refuses the view")
        real(engine, text)

    real, columns = SparkEngine.sql, shop.columns()
    with monkeypatch.context() as patched:
        patched.setattr(SparkEngine, "sql", without_views)
        with pytest.raises(Undone, match="the catalog refuses the view"):
            shop.apply("0002", KEEP)
    assert shop.columns() == columns
    shop.project.apply(spark=spark)
    assert sorted(shop.sql(old)) == sorted(shop.sql(new))
    assert shop.sql("SELECT * FROM @.trades__before_0002")[0][:2] == (1, "AA")
    assert not any(table.differs for table in shop.project.status().tables)
    shop.rollback()
    assert views() == []
    shop.project.apply(shop.project.plan(redo="0002"), spark=shop.spark)
    assert sorted(shop.sql(old)) == sorted(shop.sql(new))
    shop.apply("0003", WIDER)
    shop.sql("INSERT INTO @.trades VALUES (2, 'BB', 2.50, 'Y', NULL)")
    assert sorted(shop.sql(old)) == sorted(shop.sql("SELECT `from`, value FROM @.trades"))
    shop.sql("CREATE OR REPLACE VIEW @.trades__before_0002 AS SELECT 1 AS price")
    kept = plan_maintenance(shop.opened, parts=["views"], spark=shop.spark).result.kept
    assert [one.is_refused for one in kept] == [True]
    shop.sql("DROP VIEW @.trades__before_0002")
    shop.apply("0004", "tables: [{name: db.trades, renames: {value: amount}}]")
    assert sorted(shop.sql(old)) == sorted(shop.sql(new))
    assert plan_maintenance(shop.opened, parts=["views"], spark=shop.spark).acts == ()
    monkeypatch.setattr(maintain_command, "datetime", _InAMonth)
    plan = plan_maintenance(shop.opened, parts=["views"], spark=shop.spark)
    done = maintain(shop.opened, plan, spark=shop.spark)
    assert [act.outcome for act in done.acts] == ["dropped view db.trades__before_0002"]
    assert views() == []
    table = shop.engine.table(TableName.parse("db.trades"))
    assert table is not None
    assert not any(map(is_kept_view_key, table.properties))
    assert shop.rollback() == ("0004",)
    assert views() == []
