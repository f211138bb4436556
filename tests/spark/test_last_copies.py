"""Values that a rollback did not bring back: their tag stays, and they can be restored later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.engine.markers import FOR_EVER_MS
from icemigrate.errors import EngineError, UsageError
from icemigrate.events import Event, StatementStarted
from icemigrate.undo import Options
from tests.spark.deleting import DROP, Deleting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN, REFILL, GIVE_UP = Options(), Options(refill=True), Options(refill=False)
BEFORE, SECOND = "icemigrate-shop-0002-before", "icemigrate-shop-0002-before-2"
RESTORE = "tables: [{name: db.t, restore_columns: [{name: c, refill: true}]}]"


def expire_all(lake: Deleting) -> None:
    """Expire what may go, as any maintenance job does."""
    lake.call("expire_snapshots(table => 'db.t', older_than => current_timestamp(), retain_last => 1)")


def left_behind(lake: Deleting) -> None:
    """Drop the column, write all files again, and roll back without the values."""
    lake.insert(range(3))
    lake.apply("0002", DROP)
    lake.sql("DELETE FROM @ WHERE id = 0")
    lake.compact()
    lake.rollback(PLAIN)
    assert lake.rows() == {1: None, 2: None}


@pytest.mark.parametrize(("format_version", "identifier"), [(2, "[id]"), (3, "[]")])
def test_values_of_two_rollbacks_are_both_kept_and_come_back_later(
    tmp_path: Path, spark: SparkSession, format_version: int, identifier: str
) -> None:
    lake = Deleting(tmp_path, spark, format_version, identifier=identifier, settings=", keep_tags: 14d")
    left_behind(lake)
    first = lake.table().refs[BEFORE]
    assert first.max_ref_age_ms == FOR_EVER_MS, "whoever expires snapshots leaves it"
    lake.sql("INSERT INTO @ VALUES (7, 'v7', 'late')")
    lake.redo()
    assert lake.table().refs[BEFORE] == first
    lake.sql("INSERT INTO @ VALUES (8, 'v8')")
    lake.compact()
    lake.rollback(PLAIN)
    assert lake.rows() == {1: None, 2: None, 7: None, 8: None}
    expire_all(lake)
    lake.sql("UPDATE @ SET c = 'own' WHERE id = 2")
    lake.compact()
    lake.rollback(REFILL, only="0002")
    expected = {1: "c1", 2: "own", 7: "late", 8: None}
    assert lake.rows() == expected
    if format_version == 2:
        assert lake.rows_by_pyiceberg() == expected
    refs = lake.table().refs
    assert first.snapshot_id == refs[BEFORE].snapshot_id != refs[SECOND].snapshot_id
    assert all(refs[tag].max_ref_age_ms < FOR_EVER_MS for tag in (BEFORE, SECOND))
    with pytest.raises(UsageError, match="rolled back already, and there is no value to restore"):
        lake.rollback(REFILL, only="0002")
    # Nothing depends on them any more, so a redo needs no third.
    lake.redo()
    assert [n for n in lake.table().refs if n.startswith(BEFORE)] == [BEFORE, SECOND]


def test_a_migration_file_restores_what_a_rollback_left(tmp_path: Path, spark: SparkSession) -> None:
    lake = Deleting(tmp_path, spark)
    left_behind(lake)
    for number in range(3):
        lake.sql(f"INSERT INTO @ VALUES ({20 + number}, 'v', 'new')")
    notes = lake.apply("0003", RESTORE)
    assert lake.rows() == {1: "c1", 2: "c2", 20: "new", 21: "new", 22: "new"}
    assert any(f"brought back from {BEFORE}: 2 values of c" in n for n in notes)
    with pytest.raises(UsageError, match="rolled back already"):
        lake.rollback(GIVE_UP, only="0002")


def test_a_late_refill_that_was_cut_short_is_gone_on_with(tmp_path: Path, spark: SparkSession) -> None:
    lake = Deleting(tmp_path, spark, 3, identifier="[]")
    left_behind(lake)

    def die(event: Event) -> None:
        if isinstance(event, StatementStarted) and "fast_forward" in event.text:
            raise KeyboardInterrupt

    with pytest.raises(EngineError, match="you asked to stop"):
        lake.rollback(REFILL, only="0002", on_event=die)
    assert lake.rows() == {1: None, 2: None}
    lake.rollback(PLAIN)
    assert lake.rows() == {1: "c1", 2: "c2"}
    assert [m.state for m in lake.project.status().migrations] == ["applied", "held"]
    with pytest.raises(UsageError, match="rolled back already"):
        lake.rollback(GIVE_UP, only="0002")


def test_values_that_nobody_wants_are_given_up(tmp_path: Path, spark: SparkSession) -> None:
    lake = Deleting(tmp_path, spark)
    left_behind(lake)
    before = lake.table().refs[BEFORE]
    lake.rollback(GIVE_UP, only="0002")
    lake.redo()
    assert lake.table().refs[BEFORE].snapshot_id != before.snapshot_id
    assert SECOND not in lake.table().refs


def test_rows_that_cannot_be_matched_are_a_warning_and_stay_on_record(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark, identifier="[]")
    lake.insert(range(3))
    lake.apply("0002", DROP)
    lake.sql("UPDATE @ SET v = 'x' WHERE id = 1")
    found = lake.project.plan_rollback(options=REFILL, spark=lake.spark)
    (warning,) = [d for d in found.diagnostics if d.code == "values-rewritten"]
    query = f"SELECT c FROM {lake.catalog}.db.t VERSION AS OF '{BEFORE}'"
    assert warning.message.startswith("0002: up to 1 row lost the value of c")
    assert warning.message.endswith(f"{BEFORE} keeps it: {query}")
    lake.rollback(REFILL)
    assert lake.rows() == {0: "c0", 1: None, 2: "c2"}
    (stays,) = [m.stays for m in lake.project.status().migrations if m.version == "0002"]
    assert stays == (f"db.t: values of c that {BEFORE} keeps",)
    assert lake.table().refs[BEFORE].max_ref_age_ms == FOR_EVER_MS
