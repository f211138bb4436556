"""``plan --rehearse``: Spark says beforehand what it would refuse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.changes.change import SqlStatement
from icemigrate.cli import main
from icemigrate.errors import EngineError, ExitCode
from icemigrate.events import Event, StatementFinished
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import Plan
from icemigrate.spark.rehearsal import rehearse_on_copies
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.spark.spark_engine import SparkEngine
from tests.support.planned_migrations import make_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

REFERENCE = Path(__file__).parents[2] / "migrations"

FILES = {
    "0002": """
        allow: [destructive]
        tables:
          - name: {ns}.trades
            renames: {{volume: quantity}}
            drop_columns: [old]
            columns: [{{name: place, type: "struct<zip: int>"}}]
            branches: {{audit: {{}}}}
          - name: {ns}.venues
            columns: [{{name: id, type: long}}, {{name: name, type: string}}]
            partition_by: ["bucket(4, id) as part"]
    """,
    "0003": """
        allow: [destructive]
        tables:
          - name: {ns}.deals
            renamed_from: {ns}.trades
            columns:
              - {{name: quantity, type: "decimal(30,2)"}}
              - {{name: place, fields: [{{name: city, type: string}}]}}
          - {{name: {ns}.venues, drop: true}}
    """,
}


@pytest.fixture
def engine(spark: SparkSession, warehouse: Warehouse) -> SparkEngine:
    return SparkEngine(spark, warehouse.catalog)


@pytest.fixture
def plan(spark: SparkSession, warehouse: Warehouse, engine: SparkEngine, namespace: str) -> Plan:
    text = f"{warehouse.catalog}.{namespace}.trades"
    spark.sql(f"CREATE TABLE {text} (id bigint, volume decimal(18,2), old int) USING iceberg")
    spark.sql(f"INSERT INTO {text} VALUES (1, 2, 3)")
    name = TableName((namespace,), "trades")
    table = engine.table(name)
    assert table is not None
    base = EMPTY_STATE.after(name, None, table)
    files = {version: text.format(ns=namespace) for version, text in FILES.items()}
    return make_plan(files, {name: table}, warehouse.catalog, base, [(namespace,)])


def state_of(spark: SparkSession, warehouse: Warehouse, namespace: str) -> list[tuple[object, ...]]:
    text = f"{warehouse.catalog}.{namespace}"
    tables = [tuple(row) for row in spark.sql(f"SHOW TABLES IN {text}").collect()]
    files = [tuple(r) for r in spark.sql(f"SELECT file FROM {text}.trades.metadata_log_entries").collect()]
    return tables + files


def test_every_statement_runs_on_copies_and_no_table_is_touched(
    spark: SparkSession, warehouse: Warehouse, engine: SparkEngine, plan: Plan, namespace: str
) -> None:
    before = state_of(spark, warehouse, namespace)
    folder = sorted(warehouse.path.rglob("*"))
    events: list[Event] = []
    done = rehearse_on_copies(engine, plan, events.append)
    statements = [s for m in plan.migrations for t in m.tables for step in t.steps for s in step.statements]
    assert done.statements == len(statements)
    assert done.tables == 2
    finished = [e for e in events if isinstance(e, StatementFinished)]
    assert [e.text for e in finished] == [s.text for s in statements if isinstance(s, SqlStatement)]
    assert all(e.on_copy for e in finished)
    assert state_of(spark, warehouse, namespace) == before
    assert sorted(warehouse.path.rglob("*")) == folder


def test_the_first_statement_that_would_fail_is_named(
    spark: SparkSession, warehouse: Warehouse, engine: SparkEngine, plan: Plan, namespace: str
) -> None:
    before = state_of(spark, warehouse, namespace)
    # A stranger's column takes the name after the plan was made.
    spark.sql(f"ALTER TABLE {warehouse.catalog}.{namespace}.trades ADD COLUMN quantity int")
    with pytest.raises(EngineError) as refused:
        rehearse_on_copies(engine, plan)
    *why, last = refused.value.message.splitlines()
    assert last.startswith("migration 0002 would fail at: ALTER TABLE")
    assert "RENAME COLUMN" in last
    assert "quantity" in "".join(why)
    assert "scratch" not in refused.value.message
    assert "no table was changed" in (refused.value.hint or "")
    assert len(state_of(spark, warehouse, namespace)) == len(before) + 1


def test_plan_rehearses_the_reference_project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(REFERENCE, tmp_path / "migrations")
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments:\n  here:\n    catalog: {type: sqlite, name: rehearsed_lake}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--rehearse", "--out", "plan.json"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "all statements would succeed" in err
    assert "Rehearsed" not in out
    assert (tmp_path / "plan.json").exists()
    settings = SparkSettings(
        "rehearsed_lake",
        sqlite_catalog_conf(tmp_path / ".icemigrate" / "catalog.db", tmp_path / ".icemigrate" / "warehouse"),
    )
    session = start_spark(settings)
    assert session.sql("SHOW NAMESPACES IN rehearsed_lake").collect() == []
