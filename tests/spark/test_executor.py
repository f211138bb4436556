from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.events import Event, MigrationRecorded, NoteAdded, StatementStarted, TableMarked
from icemigrate.execution.failures import Interrupted
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.history_record import HistoryRecord
from icemigrate.history.journal import Journal
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.spark.spark_engine import SparkEngine
from tests.support.planned_migrations import Deployment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

CREATE = """
    description: Make trades
    tables:
      - name: {ns}.trades
        description: What was traded
        columns:
          - {{name: symbol, type: string, required: true, description: Ticker}}
          - {{name: company_id, type: int, required: true}}
          - {{name: at, type: timestamp, required: true}}
          - {{name: price, type: "decimal(18,6)", required: true}}
          - {{name: volume, type: long}}
          - {{name: qualifiers, type: int}}
          - {{name: place, type: "struct<city: string, zip: int>"}}
        partition_by: [day(at) as day]
        sort_by: [at]
        properties: {{write.parquet.compression-codec: zstd}}
        format_version: {format}
"""

EVOLVE = """
    description: Evolve trades
    allow: [destructive, incompatible]
    tables:
      - name: {ns}.trades
        renames: {{volume: quantity}}
        drop_columns: [qualifiers, place.zip]
        columns:
          - {{name: company_id, type: long}}
          - {{name: price, type: "decimal(20,6)"}}
          - {{name: quantity, required: true}}
          - {{name: venue, type: string, description: Where, after: symbol}}
          - {{name: trace, type: uuid}}
          - {{name: place, fields: [{{name: country, type: string}}]}}
        partition_by: [day(at) as day, "bucket(16, symbol) as symbol_bucket"]
        sort_by: [at, company_id desc nulls last]
        properties: {{my.key: yes it is}}
"""


class Lake:
    """The shared catalog, as an engine changes it and as a plan reads it."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse, namespace: str) -> None:
        self.spark = spark
        self.namespace = namespace
        settings = CatalogSettings(
            warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path)
        )
        self.catalog = open_catalog(settings)
        self.engine = SparkEngine(spark, warehouse.catalog)
        self.prefix = f"{warehouse.catalog}.{namespace}"
        self.history = TableName((namespace,), "history")
        self.deployment = Deployment(self.catalog, self.history)
        self.journal = Journal(HistoryWriter(self.engine, self.history, "market"))
        self.events: list[Event] = []

    def add(self, version: str, text: str, **values: object) -> None:
        self.deployment.files[version] = text.format(ns=self.namespace, **values)

    def apply(self, keep: timedelta | None = None) -> tuple[HistoryRecord, ...]:
        return run_plan(self.deployment.plan(), self.engine, self.journal, self.events.append, keep=keep)

    def table(self, name: str = "trades") -> Table:
        table = self.catalog.load([TableName((self.namespace,), name)])[TableName((self.namespace,), name)]
        assert table is not None
        return table

    @property
    def state(self) -> DeclaredState:
        return self.deployment.read().state

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def columns(self, query: str) -> list[str]:
        return list(self.spark.sql(query).columns)

    def snapshots_of_main(self, name: str = "trades") -> list[object]:
        return [r[0] for r in self.rows(f"SELECT snapshot_id FROM {self.prefix}.{name}.history")]


@pytest.fixture
def lake(spark: SparkSession, warehouse: Warehouse, namespace: str) -> Lake:
    return Lake(spark, warehouse, namespace)


def insert(lake: Lake) -> None:
    lake.spark.sql(
        f"INSERT INTO {lake.prefix}.trades VALUES "
        "('A', 1, TIMESTAMP_NTZ '2026-01-01 10:00:00', 1.5, 10, 7, named_struct('city', 'Bern', 'zip', 3000))"
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_is_made_and_evolved_with_the_ids_that_were_planned(lake: Lake, version: int) -> None:
    lake.add("0001", CREATE, format=version)
    lake.apply()
    insert(lake)
    lake.add("0002", EVOLVE)
    (record,) = lake.apply()

    table = lake.table()
    assert [(f.id, ".".join(path)) for path, f in table.schema.walk()] == [
        (1, "symbol"),
        (10, "venue"),
        (2, "company_id"),
        (3, "at"),
        (4, "price"),
        (5, "quantity"),
        (7, "place"),
        (8, "place.city"),
        (12, "place.country"),
        (11, "trace"),
    ]
    assert table.format_version == version
    assert [f.name for f in table.spec.live] == ["day", "symbol_bucket"]
    assert len(table.sort_order.fields) == 2
    assert table.properties["my.key"] == "yes it is"
    # What is recorded as base is what is there: nothing is left to do, and nothing was done twice.
    recorded = lake.state.tables[TableName((lake.namespace,), "trades")]
    assert recorded.schema.fields == table.schema.fields
    assert recorded.spec.live == table.spec.live
    assert recorded.uuid == table.uuid
    assert lake.deployment.plan().is_empty
    assert record.version.text == "0002"
    assert lake.rows(f"SELECT quantity, place.city, venue FROM {lake.prefix}.trades") == [(10, "Bern", None)]


def test_the_tag_reads_with_the_schema_and_the_rows_of_its_migration(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.apply()
    insert(lake)
    main = lake.snapshots_of_main()
    lake.add("0002", EVOLVE)
    lake.apply()
    trades = f"{lake.prefix}.trades"
    assert lake.snapshots_of_main() == main, "no branch moves"
    assert lake.columns(f"SELECT * FROM {trades} VERSION AS OF 'icemigrate-market-0001'") == [
        "symbol",
        "company_id",
        "at",
        "price",
        "volume",
        "qualifiers",
        "place",
    ]
    assert lake.rows(f"SELECT * FROM {trades} VERSION AS OF 'icemigrate-market-0001'") == []
    lake.spark.sql(f"DELETE FROM {trades}")
    assert lake.rows(f"SELECT symbol, quantity FROM {trades} VERSION AS OF 'icemigrate-market-0002'") == [
        ("A", 10)
    ]
    before = f"SELECT symbol, volume, qualifiers FROM {trades} VERSION AS OF 'icemigrate-market-0002-before'"
    assert lake.rows(before) == [("A", 10, 7)]
    summaries = lake.rows(
        f"SELECT summary['icemigrate.project'], summary['icemigrate.version'], "
        f"summary['icemigrate.description'], length(summary['icemigrate.checksum']) "
        f"FROM {trades}.snapshots WHERE summary['icemigrate.version'] IS NOT NULL ORDER BY 2"
    )
    assert summaries == [
        ("market", "0001", "Make trades", 64),
        ("market", "0002", "Evolve trades", 64),
    ]


def test_a_tag_of_rows_is_kept_from_now_on_and_not_from_when_they_were_written(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.apply()
    insert(lake)
    written = lake.table().snapshot
    assert written is not None
    lake.add("0002", EVOLVE)
    lake.apply(keep=timedelta(days=14))
    refs = lake.table().refs
    fortnight = 14 * 24 * 3600 * 1000
    assert refs["icemigrate-market-0001"].max_ref_age_ms == 2**63 - 1
    before, after = refs["icemigrate-market-0002-before"], refs["icemigrate-market-0002"]
    assert before.snapshot_id == written.id
    assert before.max_ref_age_ms is not None
    assert after.max_ref_age_ms is not None
    assert before.max_ref_age_ms > after.max_ref_age_ms >= fortnight


def test_the_history_is_a_table_that_anyone_can_query(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.add("0002", EVOLVE)
    first, second = lake.apply()
    rows = lake.rows(
        f"SELECT version, version_text, description, outcome, tables, size(statements), duration_ms, message "
        f"FROM {lake.prefix}.history WHERE outcome != 'started' ORDER BY version"
    )
    tables = [f"{lake.namespace}.trades"]
    assert rows == [
        (1, "0001", "Make trades", "applied", tables, len(first.statements), first.duration_ms, None),
        (2, "0002", "Evolve trades", "applied", tables, len(second.statements), second.duration_ms, None),
    ]
    times = lake.rows(f"SELECT started_at < finished_at FROM {lake.prefix}.history ORDER BY version, outcome")
    assert times == [(True,), (None,), (True,), (None,)]
    history = lake.deployment.read()
    assert [(a.version.text, a.checksum) for a in history.applied] == [
        ("0001", first.checksum),
        ("0002", second.checksum),
    ]
    events = lake.rows(
        f"SELECT s.summary['icemigrate.event'] FROM {lake.prefix}.history.snapshots s "
        f"JOIN {lake.prefix}.history.history h USING (snapshot_id) ORDER BY h.made_current_at"
    )
    kinds = [kind for (kind,) in events if kind != "step"]
    assert kinds == ["begun", "locked", "started", "applied", "started", "corrected", "applied", "released"]


def test_a_migration_that_stops_halfway_goes_on_when_it_is_applied_again(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.apply()
    lake.add("0002", EVOLVE)
    trades = f"{lake.prefix}.trades"

    def be_first(event: Event) -> None:
        if isinstance(event, StatementStarted) and "ADD COLUMN" in event.text:
            lake.spark.sql(f"ALTER TABLE {trades} ADD COLUMN venue string COMMENT 'Where'")

    with pytest.raises(Interrupted) as stopped:
        run_plan(lake.deployment.plan(), lake.engine, lake.journal, be_first)
    fault = stopped.value
    assert "ADD COLUMN" in fault.failed
    assert any("RENAME COLUMN" in text for text in fault.done)
    assert any("SET TBLPROPERTIES" in text for text in fault.remaining)
    lines = fault.message.splitlines()
    assert lines[1].startswith("migration 0002 stopped at: ALTER TABLE")
    assert "venue" in lines[1]
    assert lines.index("statements that ran:") < lines.index("statements that did not run:")
    assert "icemigrate apply" in (fault.hint or "")
    assert "\tat " not in fault.message
    standings = [(a.version.text, a.state) for a in lake.deployment.read().applied]
    assert standings == [("0001", "applied"), ("0002", "interrupted")]
    assert "icemigrate-market-0002" not in lake.table().refs

    (record,) = lake.apply()
    assert record.version.text == "0002"
    assert set(record.statements).isdisjoint(fault.done)
    assert "icemigrate-market-0002" in lake.table().refs
    assert lake.deployment.plan().is_empty
    assert lake.table().schema.find(("quantity",)) is not None


def test_a_table_that_exists_is_adopted_and_marked_and_otherwise_left_alone(lake: Lake) -> None:
    lake.spark.sql(f"CREATE TABLE {lake.prefix}.t (id bigint, name string) USING iceberg")
    lake.spark.sql(f"INSERT INTO {lake.prefix}.t VALUES (1, 'a')")
    before = lake.table("t")
    lake.add(
        "0001",
        """
        tables:
          - name: {ns}.t
            adopt: true
            columns: [{{name: id, type: long}}, {{name: name, type: string}}]
        """,
    )
    lake.apply()
    after = lake.table("t")
    assert after.schema == before.schema
    assert after.snapshot == before.snapshot
    assert set(after.refs) == {"main", "icemigrate-market-0001", "icemigrate-market-0001-before"}
    assert lake.state.tables[TableName((lake.namespace,), "t")].schema.fields == after.schema.fields


def test_a_table_is_renamed_then_dropped_into_the_trash(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.add("0002", "tables: [{{name: {ns}.deals, renamed_from: {ns}.trades}}]")
    lake.apply()
    assert TableName((lake.namespace,), "trades") in lake.state.former
    assert "icemigrate-market-0002" in lake.table("deals").refs
    lake.add("0003", "allow: [destructive]\ntables: [{{name: {ns}.deals, drop: true}}]")
    lake.apply()
    assert not lake.state.tables
    names = lake.catalog.tables()
    assert TableName((lake.namespace,), "deals") not in names
    trash = TableName(("icemigrate_trash",), f"{lake.namespace}__deals__market__0003")
    assert trash in names
    assert lake.deployment.plan().is_empty


def test_what_others_change_meanwhile_is_noted(lake: Lake) -> None:
    lake.add("0001", CREATE, format=2)
    lake.apply()
    lake.add("0002", EVOLVE)
    plan = lake.deployment.plan()

    def meddle(event: Event) -> None:
        lake.events.append(event)
        if isinstance(event, StatementStarted) and event.number == 2:
            lake.spark.sql(f"ALTER TABLE {lake.prefix}.trades SET TBLPROPERTIES ('their.key' = 'x')")

    run_plan(plan, lake.engine, lake.journal, meddle)
    notes = [e.text for e in lake.events if isinstance(e, NoteAdded)]
    assert any("their.key" in note for note in notes)
    assert lake.table().properties["their.key"] == "x"
    assert [e.tag for e in lake.events if isinstance(e, TableMarked)][-1] == "icemigrate-market-0002"
    assert isinstance(lake.events[-1], MigrationRecorded)
