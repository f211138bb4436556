"""Both ways of publishing, on real tables."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.errors import ConflictError, EngineError, StalePlan
from icemigrate.events import (
    Event,
    NoteAdded,
    StatementFinished,
    StatementStarted,
    TableMarked,
    TablePublished,
)
from icemigrate.execution.table_checks import verify_table
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import TablePlan
from icemigrate.spark import commit, publish_atomic
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.java_errors import is_commit_conflict
from icemigrate.spark.publish import DirectPublisher, Publisher
from icemigrate.spark.publish_atomic import AtomicPublisher
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark.statement_events import statement_announcer
from icemigrate.spark.table_copies import TableCopies
from tests.support.planned_migrations import make_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

CREATE = """
    tables:
      - name: {ns}.trades
        description: What was traded
        columns:
          - {{name: symbol, type: string, required: true}}
          - {{name: company_id, type: int, required: true}}
          - {{name: at, type: timestamp, required: true}}
          - {{name: volume, type: long}}
          - {{name: qualifiers, type: int}}
          - {{name: place, type: "struct<city: string, zip: int>"}}
        partition_by: [day(at) as day]
        sort_by: [at]
        format_version: {format}
"""

EVOLVE = """
    description: Evolve trades
    allow: [destructive, incompatible]
    tables:
      - name: {ns}.trades
        description: What was traded, and where
        renames: {{volume: quantity, place.city: town}}
        drop_columns: [qualifiers, place.zip]
        columns:
          - {{name: company_id, type: long}}
          - {{name: quantity, required: true}}
          - {{name: venue, type: string, description: Where, after: symbol}}
          - {{name: trace, type: string, first: true}}
          - {{name: place, fields: [{{name: country, type: string}}]}}
        partition_by: [day(at) as day, "bucket(16, symbol) as symbol_bucket"]
        sort_by: [at, company_id desc nulls last]
        identifier: [symbol]
        properties: {{my.key: yes it is, write.distribution-mode: hash}}
        branches: {{audit: {{}}}}
"""


class Lake:
    """Migrations published table by table, without the executor around it."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse, namespace: str) -> None:
        self.spark, self.warehouse, self.namespace = spark, warehouse, namespace
        settings = CatalogSettings(
            warehouse.catalog, "sqlite", f"sqlite:///{warehouse.database}", str(warehouse.path)
        )
        self.catalog = open_catalog(settings)
        self.engine = SparkEngine(spark, warehouse.catalog)
        self.atomic = AtomicPublisher(self.engine)
        self.state: DeclaredState = EMPTY_STATE
        self.events: list[Event] = []
        self.name = TableName((namespace,), "trades")
        self.text = f"{warehouse.catalog}.{namespace}.trades"

    def plan(self, version: str, text: str, **values: object) -> TablePlan:
        files = {version: text.format(ns=self.namespace, **values)}
        actual = self.catalog.load(self.catalog.tables())
        plan = make_plan(files, actual, self.warehouse.catalog, self.state, self.catalog.namespaces())
        return plan.migrations[0].tables[0]

    def publish(
        self,
        plan: TablePlan,
        version: str,
        by: Publisher | None = None,
        listen: Callable[[Event], None] = lambda event: None,
    ) -> Table | None:
        before = self.engine.table(plan.name)

        def on_event(event: Event) -> None:
            self.events.append(event)
            listen(event)

        rows = before.snapshot.id if before is not None and before.snapshot is not None else None
        marker = Marker("market", version, "", "0" * 64, before=rows)
        after = (by or self.atomic).publish(plan, before, marker, on_event)
        if after is not None:
            assert plan.wanted is not None
            wanted = with_catalog_ids(plan.wanted, after)
            self.state = self.state.after(plan.declared, plan.formerly, wanted)
        return after

    def make(self, version: int = 2) -> Table:
        made = self.publish(self.plan("0001", CREATE, format=version), "0001", DirectPublisher(self.engine))
        assert made is not None
        self.events.clear()
        return made

    def insert(self, symbol: str = "A") -> None:
        self.spark.sql(
            f"INSERT INTO {self.text} (symbol, company_id, at) VALUES "
            f"('{symbol}', 1, TIMESTAMP_NTZ '2026-01-01 10:00:00')"
        )

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def told(self, kind: type[Event]) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]

    def metadata(self) -> tuple[str, dict[str, Any]]:
        """The location of the current metadata file, and the file, read as a stranger would."""
        with sqlite3.connect(self.warehouse.database, timeout=60) as connection:
            (location,) = connection.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (self.namespace, "trades"),
            ).fetchone()
        connection.close()
        return location, json.loads(Path(location.removeprefix("file:")).read_text())


@pytest.fixture
def lake(spark: SparkSession, warehouse: Warehouse, namespace: str) -> Iterator[Lake]:
    lake = Lake(spark, warehouse, namespace)
    yield lake
    lake.atomic.close()


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """A thread beside the block; what it raises is raised here."""
    stop, failures = threading.Event(), []

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=60)
    if failures:
        raise failures[0]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("rows", [True, False])
def test_a_migration_is_one_commit_and_comes_out_as_planned(lake: Lake, version: int, rows: bool) -> None:
    before = lake.make(version)
    if rows:
        lake.insert()
        before = lake.engine.table(lake.name) or before
    plan = lake.plan("0002", EVOLVE)
    assert len(plan.steps) > 8
    location, _ = lake.metadata()
    after = lake.publish(plan, "0002")
    assert after is not None
    _, metadata = lake.metadata()
    assert metadata["metadata-log"][-1]["metadata-file"] == location, "one commit"
    assert len(metadata["schemas"]) == 2, "no schemas of the way are left in it"
    expected = before
    for step in plan.steps:
        for planned in step.changes:
            expected = planned.change.apply(expected)
    own = {name: ref for name, ref in after.refs.items() if not name.startswith("icemigrate-market-0002")}
    verdict = verify_table(before, expected, replace(after, refs=own))
    assert (verdict.ignored, verdict.foreign, verdict.renumbered) == ((), (), ())
    assert replace(after.schema, id=0) == replace(expected.schema, id=0)
    assert after.spec.fields == expected.spec.fields
    assert after.format_version == version
    main = after.refs.get("main")
    assert (main is not None) is rows
    assert "audit" in after.refs
    assert ("icemigrate-market-0002-before" in after.refs) is rows
    marker = next(
        s
        for s in metadata["snapshots"]
        if s["snapshot-id"] == after.refs["icemigrate-market-0002"].snapshot_id
    )
    assert marker["schema-id"] == metadata["current-schema-id"]
    assert marker["summary"]["icemigrate.version"] == "0002"
    columns = lake.spark.sql(f"SELECT * FROM {lake.text} VERSION AS OF 'icemigrate-market-0002'").columns
    assert columns == [f.name for f in after.schema.fields]
    lake.spark.sql(f"SELECT trace, quantity, place.town FROM {lake.text}").collect()
    assert all(e.on_copy for e in lake.told(StatementFinished))
    assert [e.number for e in lake.told(StatementStarted)] == list(
        range(1, lake.told(StatementStarted)[0].of + 1)
    )
    (published,) = lake.told(TablePublished)
    assert published.tries == 1
    assert [e.tag for e in lake.told(TableMarked)] == ["icemigrate-market-0002"]


def test_both_ways_lead_to_the_same_table(lake: Lake, spark: SparkSession, warehouse: Warehouse) -> None:
    lake.make()
    lake.insert()
    atomic = lake.publish(lake.plan("0002", EVOLVE), "0002")
    other = Lake(spark, warehouse, f"{lake.namespace}_direct")
    other.engine.create_namespace((other.namespace,))
    other.make()
    other.insert()
    direct = other.publish(other.plan("0002", EVOLVE), "0002", DirectPublisher(other.engine))
    assert atomic is not None
    assert direct is not None
    same = ("spec", "sort_order", "properties", "last_column_id", "last_partition_id", "format_version")
    for attribute in same:
        assert _plain(getattr(atomic, attribute)) == _plain(getattr(direct, attribute)), attribute
    assert replace(atomic.schema, id=0) == replace(direct.schema, id=0)
    assert atomic.refs.keys() == direct.refs.keys()


def _plain(value: Any) -> Any:
    if hasattr(value, "fields"):
        return value.fields
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if not k.startswith("icemigrate.")}
    return value


def test_a_statement_that_fails_leaves_the_table_untouched(lake: Lake) -> None:
    lake.make()
    plan = lake.plan("0002", EVOLVE)

    def steal(event: Event) -> None:
        # The copy alone: what Spark refuses there, it would refuse on the table.
        if isinstance(event, StatementStarted) and "ADD COLUMNS" in event.text:
            scratch = lake.spark.conf.get("test.scratch")
            lake.spark.sql(f"ALTER TABLE {scratch}.{lake.namespace}.trades ADD COLUMN venue string")

    lake.publish(lake.plan("0002", "tables: [{{name: {ns}.trades, properties: {{a: b}}}}]"), "0002")
    assert lake.atomic._steps._copies is not None
    lake.spark.conf.set("test.scratch", lake.atomic._steps._copies.engine.catalog_name)
    before = lake.metadata()
    with pytest.raises(EngineError) as refused:
        lake.publish(plan, "0003", listen=steal)
    assert "venue" in refused.value.message
    assert "scratch" not in refused.value.message
    assert lake.metadata() == before
    started, finished = lake.told(StatementStarted), lake.told(StatementFinished)
    assert "ADD COLUMNS" in started[-1].text
    assert "ADD COLUMNS" not in finished[-1].text
    # The next one starts on a fresh copy.
    assert lake.publish(plan, "0003") is not None


def test_a_reader_sees_the_table_before_or_after_and_nothing_between(lake: Lake) -> None:
    lake.make()
    lake.insert()
    plan = lake.plan("0002", EVOLVE)
    seen: dict[str, tuple[list[str], int, str | None, bool]] = {}

    def poll(stop: threading.Event) -> None:
        while not stop.is_set():
            location, metadata = lake.metadata()
            schema = next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
            seen[location] = (
                [f["name"] for f in schema["fields"]],
                max(len(spec["fields"]) for spec in metadata["partition-specs"]),
                metadata["properties"].get("my.key"),
                "icemigrate-market-0002" in metadata["refs"],
            )

    with meanwhile(poll):
        lake.publish(plan, "0002")
    assert list(seen.values()) == [
        (["symbol", "company_id", "at", "volume", "qualifiers", "place"], 1, None, False),
        (["trace", "symbol", "venue", "company_id", "at", "quantity", "place"], 2, "yes it is", True),
    ]


def test_rows_appended_meanwhile_cost_one_more_try_and_no_more_statements(lake: Lake) -> None:
    lake.make()
    # A column that becomes required does not let rows come that nobody has asked for a value.
    plan = lake.plan("0002", EVOLVE.replace("          - {{name: quantity, required: true}}\n", ""))

    def append(event: Event) -> None:
        if isinstance(event, StatementFinished) and "RENAME" in event.text and not appended:
            appended.append(1)
            lake.insert("first")

    appended: list[int] = []
    after = lake.publish(plan, "0002", listen=append)
    assert after is not None
    (published,) = lake.told(TablePublished)
    assert published.tries == 2
    assert len(lake.told(StatementStarted)) == lake.told(StatementStarted)[0].of
    assert any("another writer" in e.text for e in lake.told(NoteAdded))
    assert lake.rows(f"SELECT symbol FROM {lake.text}") == [("first",)]
    # The rows before the migration are those that the commit found.
    before = f"SELECT symbol FROM {lake.text} VERSION AS OF 'icemigrate-market-0002-before'"
    assert lake.rows(before) == [("first",)]


def test_what_others_change_meanwhile_beside_the_plan_stays(lake: Lake) -> None:
    lake.make()
    lake.insert()
    plan = lake.plan("0002", EVOLVE)
    done: list[int] = []

    def meddle(event: Event) -> None:
        if isinstance(event, StatementFinished) and "SET TBLPROPERTIES" in event.text and not done:
            done.append(1)
            lake.spark.sql(f"ALTER TABLE {lake.text} ADD COLUMN theirs string")
            lake.spark.sql(f"ALTER TABLE {lake.text} SET TBLPROPERTIES ('their.key' = 'x')")

    after = lake.publish(plan, "0002", listen=meddle)
    assert after is not None
    assert after.properties["their.key"] == "x"
    assert after.properties["my.key"] == "yes it is"
    names = [f.name for f in after.schema.fields]
    assert {"theirs", "trace", "venue", "quantity"} <= set(names)
    ids = [f.id for _, f in after.schema.walk()]
    assert len(set(ids)) == len(ids)
    assert len(lake.told(StatementStarted)) == 2 * lake.told(StatementStarted)[0].of
    assert any("do not conflict with the plan" in e.text for e in lake.told(NoteAdded))


@pytest.mark.parametrize(
    ("action", "fault", "says"),
    [
        ("ALTER COLUMN company_id TYPE bigint", StalePlan, "company_id"),
        ("RENAME COLUMN volume TO amount", ConflictError, "volume"),
        ("DROP COLUMN place", ConflictError, "place"),
        ("ADD COLUMN venue int", ConflictError, "venue"),
        ("SET TBLPROPERTIES ('my.key' = 'no')", ConflictError, "my.key"),
    ],
)
def test_a_plan_whose_ground_has_moved_stops(
    lake: Lake, action: str, fault: type[ConflictError], says: str
) -> None:
    lake.make()
    plan = lake.plan("0002", EVOLVE)
    done: list[int] = []

    def meddle(event: Event) -> None:
        if isinstance(event, StatementFinished) and not done:
            done.append(1)
            lake.spark.sql(f"ALTER TABLE {lake.text} {action}")

    with pytest.raises(fault) as stopped:
        lake.publish(plan, "0002", listen=meddle)
    assert says in stopped.value.message
    assert stopped.value.exit_code == 4
    assert "icemigrate-market-0002" not in lake.metadata()[1]["refs"]
    assert not lake.told(TablePublished)


def test_a_writer_that_never_lets_go_ends_the_tries(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.make()
    monkeypatch.setattr(publish_atomic, "TRIES", 3)
    pauses: list[float] = []

    def push_in(seconds: float) -> None:
        pauses.append(seconds)

    lake.atomic = AtomicPublisher(lake.engine, pause=push_in)
    plan = lake.plan("0002", "tables: [{{name: {ns}.trades, properties: {{a: b}}}}]")
    real = commit.open_commit_base

    def opened_before_an_append(engine: SparkEngine, name: TableName) -> Any:
        base = real(engine, name)
        lake.insert()
        return base

    monkeypatch.setattr(commit, "open_commit_base", opened_before_an_append)
    with pytest.raises(EngineError, match="another writer changed"):
        lake.publish(plan, "0002")
    assert len(pauses) == 2
    assert pauses[0] < pauses[1] <= 0.04
    ((rows,),) = lake.rows(f"SELECT count(*) FROM {lake.text}")
    assert rows == 3
    folder = Path(lake.metadata()[0].removeprefix("file:")).parent
    listed = {s["manifest-list"].rpartition("/")[2] for s in lake.metadata()[1]["snapshots"]}
    assert {f.name for f in folder.glob("snap-*.avro")} == listed, "nothing is left of commits that failed"


def test_nothing_is_lost_with_writers_through_both_clients(lake: Lake) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.catalog.sql import SqlCatalog

    lake.make()
    uri = f"sqlite:///{lake.warehouse.database}?timeout=60"
    theirs = SqlCatalog(lake.warehouse.catalog, uri=uri, warehouse=str(lake.warehouse.path))
    lake.spark.sql(f"ALTER TABLE {lake.text} DROP PARTITION FIELD day")
    counts = {"pyiceberg": 0, "spark": 0}

    def by_pyiceberg(stop: threading.Event) -> None:
        from pyiceberg.exceptions import CommitFailedException

        while not stop.is_set():
            table = theirs.load_table(f"{lake.namespace}.trades")
            schema = table.schema().as_arrow()
            row = {f.name: None for f in schema} | {"symbol": "P", "company_id": 1, "at": 0}
            try:
                table.append(pa.Table.from_pylist([row], schema=schema))
            except (CommitFailedException, ValueError):
                continue  # PyIceberg says `ValueError` of a sequence number that a marker has taken
            counts["pyiceberg"] += 1
            stop.wait(0.15)

    def by_spark(stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                lake.insert("S")
            except Exception as error:
                if not is_commit_conflict(error):
                    raise
                continue
            counts["spark"] += 1
            stop.wait(0.15)

    steps = 8
    name = lake.name
    with meanwhile(by_pyiceberg), meanwhile(by_spark):
        for i in range(steps):
            text = f"ALTER TABLE {lake.text} ADD COLUMNS (`c{i}` INT)"
            before = lake.engine.table(name)
            assert before is not None
            after = lake.atomic.publish(
                _adding(before, f"c{i}", text), before, Marker("market", f"{i}", "", "0"), lake.events.append
            )
            assert after is not None
            assert after.schema.find((f"c{i}",)) is not None
    assert counts["pyiceberg"] > 0
    assert counts["spark"] > 0
    found = lake.rows(f"SELECT symbol, count(*) FROM {lake.text} GROUP BY symbol ORDER BY symbol")
    assert found == [("P", counts["pyiceberg"]), ("S", counts["spark"])]
    columns = lake.spark.table(lake.text).columns
    assert columns[-steps:] == [f"c{i}" for i in range(steps)]
    refs = lake.metadata()[1]["refs"]
    assert {f"icemigrate-market-{i}" for i in range(steps)} <= refs.keys()


def _adding(before: Table, name: str, text: str) -> TablePlan:
    """A plan that adds one column."""
    from icemigrate.changes.add_column import AddColumn
    from icemigrate.changes.change import SqlStatement
    from icemigrate.iceberg.types import Field, Primitive
    from icemigrate.planning.plan import PlannedChange, Step

    change = AddColumn(before.name, None, (name,), Field(-1, name, Primitive("int")))
    planned = PlannedChange(change, change.describe(), (), change.reversal(before))
    return TablePlan(
        before.name, before.name, before, before.name, (Step((planned,), (SqlStatement(text),)),)
    )


@pytest.mark.parametrize("way", ["atomic", "direct"])
def test_what_a_change_rests_on_is_asked_of_the_very_state_that_it_is_made_on(lake: Lake, way: str) -> None:
    by = lake.atomic if way == "atomic" else DirectPublisher(lake.engine)
    columns = "columns: [{{name: id, type: int}}, {{name: d, type: date}}]"
    lake.publish(
        lake.plan("0001", f"tables: [{{{{name: {{ns}}.trades, format_version: 3, {columns}}}}}]"), "0001"
    )
    text = "tables: [{{name: {ns}.trades, renames: {{id: key}}, columns: [{{name: d, type: timestamp}}]}}]"
    plan = lake.plan("0002", text)

    def append(event: Event) -> None:
        if isinstance(event, StatementFinished) and "RENAME" in event.text:
            lake.spark.sql(f"INSERT INTO {lake.text} VALUES (1, DATE '2026-01-02')")

    with pytest.raises(ConflictError, match="as it is now: the table has rows"):
        lake.publish(plan, "0002", by, append)
    assert lake.rows(f"SELECT CAST(d AS string) FROM {lake.text}") == [("2026-01-02",)]


@pytest.mark.parametrize("way", ["atomic", "direct"])
def test_a_reference_gets_other_limits_and_is_not_moved_back(lake: Lake, way: str) -> None:
    by = lake.atomic if way == "atomic" else DirectPublisher(lake.engine)
    lake.make()
    lake.insert("one")
    lake.publish(
        lake.plan(
            "0002", "tables: [{{name: {ns}.trades, branches: {{audit: {{}}}}, tags: {{first: {{}}}}}}]"
        ),
        "0002",
        by,
    )
    plan = lake.plan(
        "0003",
        """
        allow: [destructive]
        tables:
          - name: {ns}.trades
            branches: {{audit: {{retention: {{snapshots: {{keep_at_least: 5}}}}}}, later: {{}}}}
            tags: {{first: null}}
        """,
    )
    lake.spark.sql(
        f"INSERT INTO {lake.text}.branch_audit (symbol, company_id, at) VALUES "
        "('audited', 1, TIMESTAMP_NTZ '2026-01-01 10:00:00')"
    )
    moved = lake.engine.table(lake.name)
    assert moved is not None
    after = lake.publish(plan, "0003", by)
    assert after is not None
    assert "first" not in after.refs
    assert after.refs["audit"].min_snapshots_to_keep == 5
    assert after.refs["audit"].snapshot_id == moved.refs["audit"].snapshot_id
    assert after.refs["later"].snapshot_id == after.refs["main"].snapshot_id
    rows = lake.rows(f"SELECT symbol FROM {lake.text} VERSION AS OF 'audit' ORDER BY symbol")
    assert rows == [("audited",), ("one",)]


def test_a_renamed_table_is_renamed_at_once_and_altered_in_one_commit(lake: Lake) -> None:
    lake.make()
    lake.insert()
    text = "tables: [{{name: {ns}.deals, renamed_from: {ns}.trades, columns: [{{name: x, type: int}}]}}]"
    after = lake.publish(lake.plan("0002", text), "0002")
    assert after is not None
    assert after.name == TableName((lake.namespace,), "deals")
    assert after.schema.find(("x",)) is not None
    assert [e.on_copy for e in lake.told(StatementFinished)] == [False, True]
    lake.text = lake.text.replace(".trades", ".deals")
    assert lake.rows(f"SELECT symbol, x FROM {lake.text} VERSION AS OF 'icemigrate-market-0002'") == [
        ("A", None)
    ]


def test_a_table_goes_up_a_format_and_gets_what_only_metadata_commits_can_say(lake: Lake) -> None:
    lake.make(2)
    lake.insert()
    text = """
        allow: [irreversible]
        tables:
          - name: {ns}.trades
            format_version: 3
            columns:
              - {{name: lots, type: int, required: true, default: 7}}
              - {{name: note, type: string}}
    """
    after = lake.publish(lake.plan("0002", text), "0002")
    assert after is not None
    assert after.format_version == 3
    assert lake.rows(f"SELECT symbol, lots, note FROM {lake.text}") == [("A", 7, None)]
    # A table that Spark cannot load from here on: folded, and still one commit.
    text = "tables: [{{name: {ns}.trades, columns: [{{name: ns, type: timestamp_ns}}]}}]"
    lake.publish(lake.plan("0003", text), "0003")
    location, _ = lake.metadata()
    text = "tables: [{{name: {ns}.trades, columns: [{{name: more, type: int}}], properties: {{a: b}}}}]"
    after = lake.publish(lake.plan("0004", text), "0004")
    assert after is not None
    assert after.schema.find(("more",)) is not None
    assert after.properties["a"] == "b"
    assert "icemigrate-market-0004" in after.refs
    assert lake.metadata()[1]["metadata-log"][-1]["metadata-file"] == location


def test_without_tags_the_commit_holds_the_difference_alone(lake: Lake) -> None:
    lake.make()
    lake.insert()
    snapshots = len(lake.metadata()[1]["snapshots"])
    location, _ = lake.metadata()
    unmarked = AtomicPublisher(lake.engine, tags=False)
    text = "tables: [{{name: {ns}.trades, columns: [{{name: x, type: int}}]}}]"
    after = lake.publish(lake.plan("0002", text), "0002", unmarked)
    assert after is not None
    assert after.schema.find(("x",)) is not None
    assert len(lake.metadata()[1]["snapshots"]) == snapshots
    assert "icemigrate-market-0002" not in after.refs
    assert not lake.told(TableMarked)
    assert lake.metadata()[1]["metadata-log"][-1]["metadata-file"] == location
    unmarked.close()


def test_a_copy_needs_no_manifest_and_writes_no_file(lake: Lake) -> None:
    lake.make()
    lake.insert()
    folder = Path(lake.metadata()[0].removeprefix("file:")).parent
    hidden = folder.with_name("hidden")
    metadata = lake.metadata()[1]
    # A copy that wrote where this points would fail.
    metadata["properties"]["write.metadata.path"] = "/proc/nowhere"
    plan = lake.plan("0002", EVOLVE)
    copies = TableCopies(lake.engine)
    folder.rename(hidden)
    try:
        copies.add(lake.name, metadata)
        table = copies.engine.table(lake.name)
        assert table is not None
        tell = statement_announcer(plan, "0002", lake.events.append)
        for step in plan.steps:
            table = copies.run(step, table, tell)
        there = copies.engine.table(lake.name)
        assert not folder.exists()
    finally:
        hidden.rename(folder)
        copies.close()
    assert there is not None
    assert there.schema.find(("trace",)) is not None
    assert (there.location or "").startswith("memory:")


def test_versions_of_a_schema_do_not_gather_on_a_copy(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement reads and writes all of them, a minute of it where a wide table has many renames."""
    monkeypatch.setattr("icemigrate.spark.table_copies._VERSIONS", 2)
    lake.make()
    renames = "{symbol: s, company_id: c, volume: v, qualifiers: q, place.city: town}"
    plan = lake.plan("0002", f"{{{{tables: [{{{{name: {{ns}}.trades, renames: {{{renames}}}}}}}]}}}}")
    copies = TableCopies(lake.engine)
    copies.add(lake.name, lake.metadata()[1])
    (step,) = plan.steps
    table = lake.engine.table(lake.name)
    assert table is not None
    copies.run(step, table, statement_announcer(plan, "0002", lake.events.append))
    there = copies.engine.metadata_json(lake.name)
    copies.close()
    assert there is not None
    assert len(there["schemas"]) == 2
    (now,) = [s for s in there["schemas"] if s["schema-id"] == there["current-schema-id"]]
    assert [f["name"] for f in now["fields"]] == ["s", "c", "at", "v", "q", "place"]
