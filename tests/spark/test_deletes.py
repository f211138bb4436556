"""Deleted rows in the evidence, the notes and the refill of a rollback, whatever deleted them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.iceberg.file_evidence_values import EvidenceQuery
from icemigrate.planning.undo import UndoOptions
from tests.support.deleted_rows import DROP, NAME, C, Deleting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFILL = UndoOptions(refill=True)
BEFORE = "icemigrate-shop-0002-before"


@pytest.mark.parametrize(
    ("format_version", "mode", "identifier", "in_files"),
    [
        (1, "copy-on-write", "[id]", 0),
        (2, "copy-on-write", "[id]", 0),
        (2, "merge-on-read", "[id]", 3),
        (3, "copy-on-write", "[]", 0),
        (3, "merge-on-read", "[]", 3),
    ],
)
def test_rows_that_were_rewritten_one_by_one_get_their_values_back(
    tmp_path: Path, spark: SparkSession, format_version: int, mode: str, identifier: str, in_files: int
) -> None:
    lake = Deleting(tmp_path, spark, format_version, mode, identifier)
    expected: dict[int, str | None] = {i: f"c{i}" for i in range(6)}
    lake.insert(range(3))
    lake.insert(range(3, 6))
    lake.apply("0002", DROP)
    lake.sql("UPDATE @ SET v = 'x' WHERE id = 5")
    lake.sql("DELETE FROM @ WHERE id = 2")
    lake.sql("MERGE INTO @ t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'y'")
    lake.sql("INSERT INTO @ VALUES (100, 'new')")
    expected = {i: value for i, value in expected.items() if i != 2} | {100: None}
    percent = 100 * in_files // 6
    notes = lake.notes(UndoOptions())
    assert f"values of c that are still in the files: {in_files} of 6 rows ({percent} %)" in notes
    lost = 6 - in_files
    assert [n.split(" lost")[0] for n in notes if "--refill" in n] == [f"up to {lost} rows"]
    assert lake.shares()[0] == lake.shares()[1]
    done = lake.rollback(REFILL)
    assert lake.rows() == expected
    assert lake.rows("id, v") == {0: "v0", 1: "y", 3: "v3", 4: "v4", 5: "x", 100: "new"}
    if format_version < 3:
        assert lake.rows_by_pyiceberg() == expected
    assert any(f"brought back from {BEFORE}: {5 - in_files} values of c" in n for n in done)


@pytest.mark.parametrize("format_version", [2, 3])
def test_equality_deletes_count_though_no_manifest_tells_how_many_rows_they_delete(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    lake = Deleting(tmp_path, spark, format_version)
    lake.insert(range(6))
    lake.apply("0002", DROP)
    lake.delete_by_equality(4)
    lake.sql("UPDATE @ SET v = 'x' WHERE id = 3")
    lake.delete_by_equality(0)
    by_java, by_python = lake.shares()
    assert str(by_java) == "3 of 4 rows (75 %)"
    assert str(by_python) == "at most 5 of at most 6 rows"
    lake.call("rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    assert "values of c that are still in the files: 3 of 4 rows (75 %)" in lake.notes(UndoOptions())
    done = lake.rollback(REFILL)
    assert lake.rows() == {1: "c1", 2: "c2", 3: "c3", 5: "c5"}
    assert any(f"brought back from {BEFORE}: 1 value of c" in n for n in done)


def test_maintain_keeps_the_schema_of_a_dropped_column_that_equality_deletes_name(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark, identifier="[]", settings=", record: history")
    lake.insert(range(6))
    lake.delete_by_equality(4)
    lake.sql("ALTER TABLE @ ALTER COLUMN id DROP NOT NULL")
    lake.sql("ALTER TABLE @ DROP COLUMN id")
    lake.sql("INSERT INTO @ VALUES ('v6', 'c6')")
    lake.call("expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2099-01-01 00:00:00')")
    # The only snapshot names the last of three schemas.  Without the second one, Spark cannot read the table.
    assert [act.outcome for act in lake.project.maintain("schemas", spark=lake.spark).acts] == [
        "1 schema removed"
    ]
    assert sorted(lake.sql("SELECT c FROM @")) == [("c0",), ("c1",), ("c2",), ("c3",), ("c5",), ("c6",)]


def test_a_delete_file_of_several_data_files_is_counted_by_the_engine_and_bounds_a_plan(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = Deleting(tmp_path, spark, granularity="partition")
    lake.insert(range(3))
    lake.insert(range(3, 6))
    lake.apply("0002", DROP)
    lake.sql("DELETE FROM @ WHERE id IN (0, 1, 3)")
    by_java, by_python = lake.shares()
    assert (by_java.held, by_java.total, by_java.held_unsure) == (3, 3, 0)
    assert by_python.held_at_least <= 3 <= by_python.held
    lake.sql("UPDATE @ SET v = 'x'")
    # Nothing is left, whatever the files that nobody reads any more hold.
    assert "values of c that are still in the files: 0 of 3 rows (0 %)" in lake.notes(UndoOptions())
    lake.rollback(REFILL)
    assert lake.rows() == lake.rows_by_pyiceberg() == {2: "c2", 4: "c4", 5: "c5"}


@pytest.mark.parametrize("format_version", [2, 3])
def test_nulls_in_deleted_rows_do_not_count(tmp_path: Path, spark: SparkSession, format_version: int) -> None:
    """An undo of `required: false` asks how many rows are null now, whatever deleted the others."""
    lake = Deleting(tmp_path, spark, format_version)
    lake.insert(range(3))
    since = EvidenceQuery(lake.table().snapshot_id, nulls=frozenset({C}))

    def nulls() -> int | None:
        return lake.engine.evidence(NAME, since).nulls[C]

    lake.sql(
        "INSERT INTO @ SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(10, 'a', NULL), (11, 'b', NULL), (12, 'c', 'c12')"
    )
    assert nulls() == 2
    lake.sql("DELETE FROM @ WHERE id = 10")
    assert nulls() == 1
    lake.sql("DELETE FROM @ WHERE id = 11")
    assert nulls() == 0
