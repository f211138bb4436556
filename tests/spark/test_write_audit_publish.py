"""Settings of a user's session that stage or redirect writes: our statements run without them, or fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo.undo_inputs import UndoOptions
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import PINNED
from icemigrate.spark.spark_engine import SparkEngine
from tests.spark.conftest import Warehouse
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAP = {"spark.wap.id": "audit", "spark.wap.branch": "audit"}
CREATE = """
    tables:
      - name: db.trades
        properties: {write.wap.enabled: "true"}
        retention: {rows: {max_age: 30d, column: at}}
        identifier: [id]
        columns:
          - {name: id, type: long, required: true}
          - {name: at, type: timestamp}
          - {name: price, type: string}
"""
CHANGE = """
    allow: [destructive]
    tables:
      - name: db.trades
        columns: [{name: venue, type: string}]
        backfill: [{set: {venue: "'xnys'"}, where: id > 1}]
        retype: {price: {to: int, using: cast(price as int)}}
        checks: [{after: "SELECT count(*) FROM {table} WHERE venue = 'xnys'", gives: 1}]
"""


@pytest.mark.parametrize("setting", WAP)
def test_rows_reach_main_although_the_session_stages_or_redirects_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, setting: str
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark)
    desk.file("0001", CREATE)
    desk.project.apply(spark=desk.spark)
    history = f"{desk.catalog}.icemigrate.history"
    desk.spark.sql(f"ALTER TABLE {history} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    desk.insert(
        "(1, timestamp_ntz'2020-01-01 00:00:00', '10'), (2, timestamp_ntz'2999-01-01 00:00:00', '20')"
    )
    desk.file("0002", CHANGE)
    desk.spark.conf.set(setting, WAP[setting])

    desk.project.apply(spark=desk.spark)

    assert desk.spark.conf.get(setting) == WAP[setting]
    desk.spark.conf.unset(setting)
    assert desk.rows("id, price, venue") == [(1, 10, None), (2, 20, "xnys")]
    staged = f"SELECT count(*) FROM {desk.table}.snapshots WHERE summary['wap.id'] IS NOT NULL"
    assert desk.spark.sql(staged).collect()[0][0] == 0
    assert "audit" not in desk.refs()
    assert desk.spark.sql(f"SELECT count(*) FROM {history}").collect()[0][0] >= 2

    # Every row is written again without the old column, so that only a refill brings its values back.
    desk.file("0003", "allow: [destructive]\ntables: [{name: db.trades, drop_columns: [venue]}]")
    desk.project.apply(spark=desk.spark)
    desk.spark.sql(f"UPDATE {desk.table} SET price = price + 1")
    desk.spark.conf.set(setting, WAP[setting])
    desk.project.rollback(options=UndoOptions(refill=True), spark=desk.spark)
    desk.project.maintain("rows", spark=desk.spark)
    desk.spark.conf.unset(setting)
    assert desk.rows("id, price, venue") == [(2, 21, "xnys")]


@pytest.mark.parametrize("setting", WAP)
def test_a_write_that_is_staged_or_redirected_is_an_error(
    spark: SparkSession, warehouse: Warehouse, namespace: str, setting: str
) -> None:
    """As where an extension of Spark, or another thread, sets it while a statement runs."""
    session = start_spark(warehouse.settings)
    engine, table = _engine_on_wap_table(session, warehouse.catalog, namespace)
    session.conf.set(setting, WAP[setting])
    update = f"UPDATE {warehouse.catalog}.{namespace}.t SET id = 2"
    with pytest.raises(EngineError, match="are not on branch `main`") as caught:
        engine.write(table, "main", update, {"icemigrate.data": "x/1"})
    assert "spark.wap.id" in (caught.value.hint or "")


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_statement_that_matches_no_row_makes_a_snapshot(
    spark: SparkSession, warehouse: Warehouse, namespace: str, mode: str
) -> None:
    """That a branch without a new snapshot is an error rests on this."""
    engine, table = _engine_on_wap_table(spark, warehouse.catalog, namespace, mode)
    name = f"{warehouse.catalog}.{namespace}.t"
    for statement in (
        f"UPDATE {name} SET id = 2 WHERE id = 99",
        f"UPDATE {name} SET id = 2 WHERE 1 = 0",
        f"DELETE FROM {name} WHERE id = 99",
        f"INSERT OVERWRITE {name} SELECT * FROM {name}",
        f"MERGE INTO {name} t USING (SELECT 99 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 1",
    ):
        engine.write(table, "main", statement, {})


def test_a_session_has_its_own_settings_again_after_a_statement(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    session = spark.newSession()
    own = {key: "false" if value in ("true", "false") else "LEGACY" for key, value in PINNED.items()}
    own |= WAP | {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}
    for key, value in own.items():
        session.conf.set(key, value)
    inside = SparkEngine(session, warehouse.catalog).ask("SET")
    assert {key: dict(inside).get(key) for key in PINNED} == dict(PINNED)
    assert {key: session.conf.get(key) for key in PINNED} == own


def _engine_on_wap_table(
    session: SparkSession, catalog: str, namespace: str, mode: str = "copy-on-write"
) -> tuple[SparkEngine, TableName]:
    engine = SparkEngine(session, catalog, is_own=True)
    modes = "".join(f", 'write.{kind}.mode' = '{mode}'" for kind in ("update", "delete", "merge"))
    engine.sql(
        f"CREATE TABLE {catalog}.{namespace}.t (id int) USING iceberg "
        f"TBLPROPERTIES ('write.wap.enabled' = 'true'{modes})"
    )
    engine.sql(f"INSERT INTO {catalog}.{namespace}.t VALUES (1)")
    return engine, TableName((namespace,), "t")
