from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.port import Catalog
from icemigrate.declare.version import Version
from icemigrate.engine.spark import SparkEngine
from icemigrate.errors import EngineError, HistoryError
from icemigrate.history.properties import FORMAT_KEY
from icemigrate.history.read import read
from icemigrate.history.record import SCHEMA, Record
from icemigrate.history.write import HistoryWriter
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Primitive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

BEGAN = datetime(2026, 11, 27, 20, 0, 0, 123456, timezone(timedelta(hours=2)))


@pytest.fixture
def engine(spark: SparkSession, warehouse: Warehouse) -> SparkEngine:
    return SparkEngine(spark, warehouse.catalog)


@pytest.fixture
def catalog(warehouse: Warehouse) -> Catalog:
    return open_catalog(
        CatalogSettings(warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path))
    )


@pytest.fixture
def name(fresh_name: str) -> TableName:
    return TableName((fresh_name,), "history")


def record(version: str, **values: object) -> Record:
    made = Record(
        version=Version.parse(version),
        description=f"What {version} does",
        checksum="c" * 64,
        project="market",
        environment="prod",
        outcome="applied",
        started_at=BEGAN,
        finished_at=BEGAN + timedelta(seconds=1.5),
        user="ana",
        host="ci",
        tool_version="0.1.0",
        tables=("db.a", "db.b"),
        statements=("ALTER TABLE a\nADD COLUMN `b c` int", "metadata commit: make it so"),
    )
    return replace(made, **values)  # type: ignore[arg-type]


def state(columns: int = 60) -> State:
    fields = tuple(Field(i, f"column_{i}", Primitive("string"), doc="ü" * 20) for i in range(1, columns + 1))
    table = Table(TableName(("db",), "a"), Schema(fields), last_column_id=columns)
    return State({table.name: table}, frozenset({("db",)}), frozenset({TableName(("db",), "gone")}))


def test_what_was_written_is_what_a_plan_reads(
    engine: SparkEngine, catalog: Catalog, name: TableName
) -> None:
    writer = HistoryWriter(engine, name, "market")
    assert read(catalog, name, "market") is None
    writer.prepare()
    empty = read(catalog, name, "market")
    assert empty is not None
    assert (empty.applied, empty.state) == ((), EMPTY_STATE)
    writer.record(record("0001"), state())
    writer.prepare()
    history = read(catalog, name, "market")
    assert history is not None
    assert history.state == state()
    (applied,) = history.applied
    assert (applied.version.text, applied.applied_by, applied.duration_ms) == ("0001", "ana", 1500)
    assert applied.applied_at == BEGAN + timedelta(seconds=1.5)


def test_a_table_that_is_gone_leaves_no_property_behind(
    engine: SparkEngine, catalog: Catalog, name: TableName
) -> None:
    writer = HistoryWriter(engine, name, "market")
    writer.prepare()
    writer.record(record("0001"), state())
    writer.record(record("0002"), EMPTY_STATE)
    history = read(catalog, name, "market")
    assert history is not None
    assert history.state == EMPTY_STATE
    assert [a.version.text for a in history.applied] == ["0001", "0002"]


def test_the_rows_hold_every_value(engine: SparkEngine, spark: SparkSession, name: TableName) -> None:
    writer = HistoryWriter(engine, name, "market")
    writer.prepare()
    rows = [
        record("0001"),
        record("20261127203700", outcome="failed", message="no way", statements=(), tables=()),
    ]
    for row in rows:
        writer.record(row, EMPTY_STATE)
    seen = spark.sql(f"SELECT * FROM local.{name} ORDER BY version").collect()
    assert [list(r.asDict()) for r in seen] == [[f.name for f in SCHEMA.fields]] * 2
    for wrote, got in zip(rows, seen, strict=True):
        values = got.asDict()
        times = {key: values.pop(key) for key in ("started_at", "finished_at")}
        expected = wrote.row()
        assert values == {key: value for key, value in expected.items() if key not in times}
        for key, value in times.items():
            assert value.astimezone(timezone.utc) == expected[key]


def test_a_history_of_another_project_is_left_alone(engine: SparkEngine, name: TableName) -> None:
    HistoryWriter(engine, name, "market").prepare()
    before = engine.metadata_json(name)
    with pytest.raises(HistoryError, match="belongs to project `market`"):
        HistoryWriter(engine, name, "other").prepare()
    with pytest.raises(HistoryError, match="belongs to project `market`"):
        HistoryWriter(engine, name, "other").record(record("0001"), EMPTY_STATE)
    assert engine.metadata_json(name) == before


def test_a_history_of_a_newer_icemigrate_is_left_alone(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    writer = HistoryWriter(engine, name, "market")
    writer.prepare()
    spark.sql(f"ALTER TABLE local.{name} SET TBLPROPERTIES ('{FORMAT_KEY}' = '99')")
    with pytest.raises(HistoryError, match="newer icemigrate"):
        writer.record(record("0001"), EMPTY_STATE)
    assert spark.table(f"local.{name}").count() == 0


def test_of_two_who_record_at_once_one_wins(engine: SparkEngine, catalog: Catalog, name: TableName) -> None:
    HistoryWriter(engine, name, "market").prepare()

    class Slow(SparkEngine):
        """Somebody else records between its look at the history and its own record."""

        def table(self, name: TableName) -> Table | None:
            seen = super().table(name)
            HistoryWriter(engine, name, "market").record(record("0001"), state(1))
            return seen

    slow = Slow(engine._session, "local")
    with pytest.raises(EngineError, match="somebody else"):
        HistoryWriter(slow, name, "market").record(record("0002"), EMPTY_STATE)
    history = read(catalog, name, "market")
    assert history is not None
    assert [a.version.text for a in history.applied] == ["0001"]


def test_a_history_that_vanished_is_not_made_anew_by_a_record(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    writer = HistoryWriter(engine, name, "market")
    writer.prepare()
    spark.sql(f"DROP TABLE local.{name}")
    with pytest.raises(HistoryError, match="is gone"):
        writer.record(record("0001"), EMPTY_STATE)
