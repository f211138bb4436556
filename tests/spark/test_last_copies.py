"""Values that a rollback did not bring back: their tag stays, and they can be restored later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.commands.rollback import rollback
from icemigrate.errors import ConflictError, EngineError, StalePlan, UsageError
from icemigrate.events import Event, StatementStarted
from icemigrate.planning.undo import UndoOptions
from icemigrate.render.formats import render
from icemigrate.results.status_results import WaitingValues
from icemigrate.spark.append_snapshot import FOR_EVER_MS
from tests.support.deleted_rows import DROP, Deleting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN, REFILL, GIVE_UP = UndoOptions(), UndoOptions(refill=True), UndoOptions(refill=False)
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
    with pytest.raises(UsageError, match="already rolled back, and there is no value to restore"):
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
    with pytest.raises(UsageError, match="already rolled back"):
        lake.rollback(GIVE_UP, only="0002")


def test_a_late_refill_that_was_cut_short_is_gone_on_with(tmp_path: Path, spark: SparkSession) -> None:
    lake = Deleting(tmp_path, spark, 3, identifier="[]")
    left_behind(lake)

    def die(event: Event) -> None:
        if isinstance(event, StatementStarted) and "fast_forward" in event.text:
            raise KeyboardInterrupt

    with pytest.raises(EngineError, match="stopped at once by a second Ctrl-C"):
        lake.rollback(REFILL, only="0002", on_event=die)
    assert lake.rows() == {1: None, 2: None}
    lake.rollback(PLAIN)
    assert lake.rows() == {1: "c1", 2: "c2"}
    assert [m.state for m in lake.project.status().migrations] == ["applied", "held"]
    with pytest.raises(UsageError, match="already rolled back"):
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


def test_a_redo_of_an_edited_file_does_not_forget_the_values_of_a_table_that_it_no_longer_names(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark)
    left_behind(lake)
    (held,) = [m for m in lake.project.status().migrations if m.state == "held"]
    assert held.waiting == (WaitingValues("db.t", ("c",), BEFORE),)
    text = render(lake.project.status())
    assert f"`db.t`: only {BEFORE} has values of `c`; `icemigrate rollback --only 0002 --refill`" in text
    before = lake.table()
    (note,) = [d for d in lake.project.plan(redo="0002").diagnostics if d.code == "values-kept"]
    assert f"no row of `db.t` has the values of `c` any more; only {BEFORE} has them" in note.message
    other = "tables: [{name: db.other, columns: [{name: id, type: int}]}]"
    renamed = "tables: [{name: db.u, renamed_from: db.t}]"
    for edited in (other, renamed):
        lake.write("0002", edited)
        with pytest.raises(ConflictError) as refused:
            lake.redo()
        assert "no longer names table `db.t`" in refused.value.message
        assert f"{BEFORE} alone has values of `c`" in refused.value.message
        assert "`icemigrate rollback --only 0002 --refill`" in (refused.value.hint or "")
        assert lake.table() == before
    # The way that the hint names works, though the file no longer names the table.
    lake.write("0002", other)
    planned = lake.project.plan_rollback(only="0002", options=REFILL, spark=lake.spark).plan
    lake.rollback(REFILL, only="0002")
    assert lake.rows() == {1: "c1", 2: "c2"}
    with pytest.raises(StalePlan, match="there is no value to restore"):
        rollback(lake.opened, planned, options=REFILL, spark=lake.spark)
    lake.redo()
    assert lake.project.status().migrations[1].state == "applied"
