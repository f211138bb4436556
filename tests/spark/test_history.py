from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import HeadMoved, HistoryError, LockHeld, LockLost
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.head_snapshot import head_summary
from icemigrate.history.history_io import HistoryWriter, read_history
from icemigrate.history.history_record import SCHEMA, HistoryRecord, RunOutcome
from icemigrate.history.journal import Journal, LockedJournal
from icemigrate.history.recorded_versions import Intent
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import HISTORY_FORMAT_PROPERTY
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.metadata_engine.file_stores import local_target
from icemigrate.metadata_engine.manifest_lists import read_avro
from icemigrate.planning.plan import Direction
from icemigrate.spark.session import start_spark
from icemigrate.spark.spark_engine import SparkEngine
from tests.support.metadata_tables import LocalFiles

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


def record(version: str, **values: object) -> HistoryRecord:
    made = HistoryRecord(
        version=Version.parse(version),
        description=f"What {version} does",
        checksum="c" * 64,
        project="market",
        environment="prod",
        outcome=RunOutcome.APPLIED,
        started_at=BEGAN,
        finished_at=BEGAN + timedelta(seconds=1.5),
        user="ana",
        host="ci",
        tool_version="0.1.0",
        tables=("db.a", "db.b"),
        statements=("ALTER TABLE a\nADD COLUMN `b c` int", "metadata commit: make it so"),
    )
    return replace(made, **values)  # type: ignore[arg-type]


def state(columns: int = 60) -> DeclaredState:
    fields = tuple(Field(i, f"column_{i}", Primitive("string"), doc="ü" * 20) for i in range(1, columns + 1))
    table = Table(TableName(("db",), "a"), Schema(fields), last_column_id=columns)
    return DeclaredState({table.name: table}, frozenset({("db",)}), frozenset({TableName(("db",), "gone")}))


def undo_record(version: str) -> UndoRecord:
    table = state().tables[TableName(("db",), "a")]
    return UndoRecord(version, (TableUndo(None, table.name, None, table, None, table),))


def intent(held: LockedJournal, version: str) -> Intent:
    tables = {"local.db.a": "file:/a.metadata.json"}
    return Intent(
        Version.parse(version), Direction.APPLY, BEGAN, "ana", "ci", held.run, ("db.a", "db.b"), tables
    )


@contextmanager
def held(engine: SparkEngine, name: TableName) -> Iterator[LockedJournal]:
    writer = HistoryWriter(engine, name, "market")
    with Journal(writer, timeout_s=0).hold_lock("apply", "ana", "ci") as journal:
        yield journal


def keep(engine: SparkEngine, name: TableName, after: DeclaredState, *records: HistoryRecord) -> None:
    """Write one outcome after the other."""
    with held(engine, name) as journal:
        for row in records:
            assert row.version is not None
            version = row.version.text
            started = replace(row, outcome=RunOutcome.STARTED, finished_at=None)
            journal.begin(intent(journal, version), started, undo_record(version))
            journal.end(row, after)


def test_what_was_written_is_what_a_plan_reads(
    engine: SparkEngine, catalog: Catalog, name: TableName
) -> None:
    assert read_history(catalog, name, "market") is None
    with held(engine, name):
        empty = read_history(catalog, name, "market")
        assert empty is not None
        assert (empty.applied, empty.state, empty.intents) == ((), EMPTY_STATE, ())
        assert empty.lock is not None
        assert (empty.lock.user, empty.lock.host, empty.lock.action) == ("ana", "ci", "apply")
    keep(engine, name, state(), record("0001"))
    history = read_history(catalog, name, "market")
    assert history is not None
    assert history.state == state()
    assert (history.intents, history.lock) == ((), None)
    assert history.undo_record(Version.parse("0001")) == undo_record("0001")
    (applied,) = history.applied
    assert (applied.version.text, applied.applied_by, applied.duration_ms) == ("0001", "ana", 1500)
    assert applied.applied_at == BEGAN + timedelta(seconds=1.5)


def test_a_plan_reads_what_is_going_on(engine: SparkEngine, catalog: Catalog, name: TableName) -> None:
    with held(engine, name) as journal:
        started = replace(record("0001"), outcome=RunOutcome.STARTED, finished_at=None)
        journal.begin(intent(journal, "0001"), started, undo_record("0001"))
        seen = read_history(catalog, name, "market")
        assert seen is not None
        assert seen.lock is not None
        assert seen.lock.step == "0001: begins"
        assert seen.intent == intent(journal, "0001")
        assert [(a.version.text, a.state) for a in seen.applied] == [("0001", "interrupted")]
        assert seen.undo_record(Version.parse("0001")) == undo_record("0001")
        assert seen.state == EMPTY_STATE
    # Nobody wrote an outcome: that is what a crash leaves behind, but for the lock.
    after = read_history(catalog, name, "market")
    assert after is not None
    assert after.lock is None
    assert after.intent == seen.intent


def test_a_table_that_is_gone_leaves_no_property_behind(
    engine: SparkEngine, catalog: Catalog, name: TableName
) -> None:
    keep(engine, name, state(), record("0001"))
    keep(engine, name, EMPTY_STATE, record("0002"))
    history = read_history(catalog, name, "market")
    assert history is not None
    assert history.state == EMPTY_STATE
    assert [a.version.text for a in history.applied] == ["0001", "0002"]


def test_the_rows_hold_every_value(engine: SparkEngine, spark: SparkSession, name: TableName) -> None:
    rows = [
        record("0001"),
        record(
            "20261127203700", outcome=RunOutcome.FAILED, message="no way", statements=(), tables=(), run="r1"
        ),
    ]
    keep(engine, name, EMPTY_STATE, *rows)
    seen = spark.sql(f"SELECT * FROM local.{name} WHERE outcome != 'started' ORDER BY version").collect()
    assert [list(r.asDict()) for r in seen] == [[f.name for f in SCHEMA.fields]] * 2
    for wrote, got in zip(rows, seen, strict=True):
        values = got.asDict()
        times = {key: values.pop(key) for key in ("started_at", "finished_at")}
        expected = wrote.row()
        assert values == {key: value for key, value in expected.items() if key not in times}
        for key, value in times.items():
            assert value.astimezone(timezone.utc) == expected[key]
    begun = spark.sql(
        f"SELECT version, finished_at, duration_ms FROM local.{name} "
        "WHERE outcome = 'started' ORDER BY version"
    )
    assert [tuple(r) for r in begun.collect()] == [(1, None, None), (20261127203700, None, None)]


def test_a_history_of_another_project_is_left_alone(engine: SparkEngine, name: TableName) -> None:
    HistoryWriter(engine, name, "market").prepare()
    before = engine.metadata_json(name)
    with pytest.raises(HistoryError, match="belongs to project `market`"):
        HistoryWriter(engine, name, "other").prepare()
    assert engine.metadata_json(name) == before


def test_a_history_of_a_newer_icemigrate_is_left_alone(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    with held(engine, name) as journal:
        spark.sql(f"ALTER TABLE local.{name} SET TBLPROPERTIES ('{HISTORY_FORMAT_PROPERTY}' = '99')")
        started = replace(record("0001"), outcome=RunOutcome.STARTED, finished_at=None)
        with pytest.raises(HistoryError, match="newer icemigrate"):
            journal.begin(intent(journal, "0001"), started, undo_record("0001"))
    assert spark.table(f"local.{name}").count() == 0


def test_a_history_that_vanished_is_not_made_anew_by_a_record(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    with held(engine, name) as journal:
        spark.sql(f"DROP TABLE local.{name}")
        with pytest.raises(HistoryError, match="is gone"):
            journal.end(record("0001"), EMPTY_STATE)
    assert engine.table(name) is None


def test_rows_that_somebody_wrote_by_hand_are_seen(
    engine: SparkEngine, spark: SparkSession, catalog: Catalog, name: TableName
) -> None:
    keep(engine, name, state(), record("0001"))
    spark.sql(f"DELETE FROM local.{name} WHERE version = 1")
    with pytest.raises(HistoryError, match="altered by hand"):
        read_history(catalog, name, "market")
    with pytest.raises(HistoryError, match="altered by hand"), held(engine, name):
        pytest.fail("a history that was altered is nobody's lock")


def test_a_compaction_is_no_harm(
    engine: SparkEngine, spark: SparkSession, catalog: Catalog, name: TableName
) -> None:
    keep(engine, name, state(), record("0001"), record("0002"))
    spark.sql(
        f"CALL local.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    history = read_history(catalog, name, "market")
    assert history is not None
    assert history.state == state()
    keep(engine, name, state(1), record("0003"))
    assert spark.table(f"local.{name}").count() == 6


def test_of_all_who_saw_one_head_one_moves_it(
    engine: SparkEngine, warehouse: Warehouse, name: TableName
) -> None:
    HistoryWriter(engine, name, "market").prepare()
    engines = [SparkEngine(start_spark(warehouse.settings), warehouse.catalog) for _ in range(6)]

    def swap(engine: SparkEngine, expected: int | None, number: int) -> int | None:
        try:
            return engine.append(
                name, [], {"won": str(number)}, (), expected_head=expected, summary=head_summary("step", None)
            )
        except HeadMoved:
            return None

    with ThreadPoolExecutor(len(engines)) as pool:
        for _ in range(12):
            table = engine.table(name)
            assert table is not None
            assert table.snapshot is not None
            seen = table.snapshot.id
            results = list(pool.map(swap, engines, repeat(seen), range(len(engines))))
            (winner,) = [i for i, head in enumerate(results) if head is not None]
            after = engine.table(name)
            assert after is not None
            assert after.snapshot is not None
            assert after.snapshot.id == results[winner]
            assert after.properties["won"] == str(winner)


def test_old_snapshots_of_the_history_are_forgotten_and_its_rows_are_not(
    engine: SparkEngine,
    spark: SparkSession,
    catalog: Catalog,
    name: TableName,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("icemigrate.spark.append_snapshot.MOST_SNAPSHOTS", 10)
    for number in range(1, 13):
        keep(engine, name, state(), record(f"{number:04}"))
    metadata = engine.metadata_json(name)
    assert metadata is not None
    assert 5 <= len(metadata["snapshots"]) <= 10
    assert spark.table(f"local.{name}").count() == 24
    history = read_history(catalog, name, "market")
    assert history is not None
    assert [a.version.number for a in history.applied] == [*range(1, 13)]
    lists = {local_target(s["manifest-list"]) for s in metadata["snapshots"]}
    manifests = {
        local_target(m["manifest_path"])
        for path in lists
        for m in read_avro("manifest list", str(path), LocalFiles())[1]
    }
    folder = Path(urlsplit(metadata["location"]).path) / "metadata"
    found = {*folder.glob("*.avro")}
    assert lists | manifests <= found
    # Iceberg leaves the manifest of the append that was the occasion to merge.
    assert len(found - lists - manifests) <= 1
    assert len(manifests) < 24, "manifests were merged"


def test_many_who_begin_at_once_take_turns(
    engine: SparkEngine, warehouse: Warehouse, catalog: Catalog, name: TableName
) -> None:
    engine.create_namespace(name.namespace)
    engines = [SparkEngine(start_spark(warehouse.settings), warehouse.catalog) for _ in range(5)]
    inside: list[int] = []
    most: list[int] = []

    def take_a_turn(number: int) -> str:
        journal = Journal(HistoryWriter(engines[number], name, "market"), timeout_s=120)
        with journal.hold_lock("apply", f"user{number}", "ci") as held:
            inside.append(number)
            most.append(len(inside))
            version = f"{number + 1:04}"
            started = record(version, outcome=RunOutcome.STARTED, finished_at=None)
            held.begin(intent(held, version), started, undo_record(version))
            held.end(record(version), state())
            inside.remove(number)
            return version

    with ThreadPoolExecutor(len(engines)) as pool:
        done = set(pool.map(take_a_turn, range(len(engines))))
    assert most == [1] * 5
    history = read_history(catalog, name, "market")
    assert history is not None
    assert {a.version.text for a in history.applied if a.state == "applied"} == done
    assert (history.lock, history.intents) == (None, ())


def test_a_lock_that_was_taken_away_ends_the_work(
    engine: SparkEngine, spark: SparkSession, name: TableName
) -> None:
    journal = Journal(HistoryWriter(engine, name, "market"), timeout_s=0)
    with journal.hold_lock("apply", "ana", "ci") as mine:
        with pytest.raises(LockHeld, match="held by ana on ci"), held(engine, name):
            pytest.fail("there is one lock")
        row = replace(
            record("0001"), version=None, outcome=RunOutcome.UNLOCKED, action="unlock", message="it hung"
        )
        journal.unlock(journal.writer.read().head, row)
        with pytest.raises(LockLost, match="unlock` removed"):
            mine.end(record("0001"), EMPTY_STATE)
        with pytest.raises(LockLost):
            mine.require()
    rows = spark.sql(f"SELECT version, outcome, message FROM local.{name}").collect()
    assert [tuple(r) for r in rows] == [(None, "unlocked", "it hung")]


def test_a_lock_is_not_taken_from_someone_who_is_alive(engine: SparkEngine, name: TableName) -> None:
    journal = Journal(HistoryWriter(engine, name, "market"), timeout_s=0)
    with journal.hold_lock("apply", "ana", "ci") as mine:
        seen = journal.writer.read().head
        mine.lock.write("step")
        with pytest.raises(LockHeld, match="its holder is alive"):
            journal.unlock(seen, replace(record("0001"), version=None, outcome=RunOutcome.UNLOCKED))
        mine.require()
