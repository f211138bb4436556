"""Properties that a catalog sets on new tables, by Spark's commits and by Python's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.iceberg.names import TableName
from tests.support.python_twin import PythonTwin
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRADES = """\
tables:
  - name: db.trades
    columns: [{name: symbol, type: string}]
    properties: {write.delete.mode: merge-on-read}
"""


def test_defaults_and_overrides_of_the_catalog_are_set_on_a_new_table(
    tmp_path: Path, spark: SparkSession
) -> None:
    settings = (
        ", properties: {table-default.write.delete.mode: copy-on-write, table-default.owner.team: desk,"
        " table-override.write.update.mode: copy-on-write}"
    )
    desk = OwnProject(tmp_path, spark, "desk", "defaults", catalog_settings=settings)
    (tmp_path / "migrations" / "0001_trades.yaml").write_text(TRADES, encoding="utf-8")
    twin = PythonTwin(desk)
    desk.project.apply(spark=desk.spark)
    twin.project.apply()
    assert twin.differences() == []
    created = desk.engine.table(TableName(("db",), "trades"))
    assert created is not None
    assert created.properties["write.delete.mode"] == "merge-on-read"
    assert created.properties["write.update.mode"] == "copy-on-write"
    assert created.properties["owner.team"] == "desk"
