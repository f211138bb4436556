"""Columns that come back after Iceberg has written null for their partition values.

While the source of an identity or truncate field is dropped, every manifest of that spec that is written
again loses the values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.lost_partition_tables import (
    IDENTITY,
    MIXED,
    OTHERS,
    TRUNCATED,
    Lake,
    Partitioned,
    strings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOST = "have null for its partition values"


def is_told(notes: tuple[str, ...]) -> bool:
    return any(LOST in note for note in notes)


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_every_transform_reads_its_values_after_the_column_is_back(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    tables = [
        Partitioned("identity", IDENTITY),
        Partitioned("truncated", TRUNCATED),
        Partitioned("others", OTHERS),
        Partitioned("mixed", MIXED, terms=["bucket(2, id)"]),
    ]
    lake = Lake(tmp_path, spark, tables if format_version == 2 else tables[::3], format_version)
    lake.drop()
    lake.append(10)
    before = {t.name: lake.world.actual(t.table).snapshot_id for t in lake.tables}
    ids = lake.row_ids() if format_version == 3 else {}
    notes = lake.rollback()
    lake.reads_right()
    assert ids == (lake.row_ids() if format_version == 3 else {})
    for table in lake.tables:
        is_lost = table.name != "others"
        assert is_told(notes[table.name]) is is_lost, table.name
        assert (lake.world.actual(table.table).snapshot_id != before[table.name]) is is_lost, table.name


@pytest.mark.parametrize("metrics", ["full", "none"])
def test_the_files_tell_the_values_where_no_older_snapshot_is_left(
    tmp_path: Path, spark: SparkSession, metrics: str
) -> None:
    more = f", properties: {{write.metadata.metrics.default: {metrics}}}"
    tables = [Partitioned("identity", IDENTITY, more), Partitioned("truncated", TRUNCATED, more)]
    lake = Lake(tmp_path, spark, tables, 2)
    lake.drop()
    lake.append(10)
    lake.forget()
    assert all(map(is_told, lake.rollback().values()))
    lake.reads_right()


MERGE_ON_READ = ", properties: {write.delete.mode: merge-on-read, write.delete.granularity: partition}"


@pytest.mark.parametrize("format_version", [2, 3])
def test_rows_that_delete_files_removed_stay_removed(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    table = Partitioned("t", [strings("s", "s")], MERGE_ON_READ)
    lake = Lake(tmp_path, spark, [table], format_version)
    lake.sql(table, "INSERT INTO @ VALUES (20, 'n', 'eu'), (21, 'n', 'eu'), (22, 'n', 'us')")
    # One delete file of two data files, or a deletion vector of each.
    lake.sql(table, "DELETE FROM @ WHERE id IN (0, 20)")
    lake.sql(table, "ALTER TABLE @ UNSET TBLPROPERTIES ('write.delete.mode')")
    # The same id in another partition stays.
    lake.sql(table, "INSERT INTO @ VALUES (1, 'again', 'eu')")
    lake.delete_by_equality(table, 1, "s=us")
    table.rows |= {
        1: {"note": "again", "s": "eu"},
        21: {"note": "n", "s": "eu"},
        22: {"note": "n", "s": "us"},
    }
    del table.rows[0]
    lake.reads_right(by_pyiceberg=False)
    lake.drop()
    lake.append(10)
    assert is_told(lake.rollback()["t"])
    lake.reads_right(by_pyiceberg=False)
    by_file = f"SELECT count(*) FROM {lake.world.catalog}.db.t.delete_files"
    assert lake.world.spark.sql(by_file).collect()[0][0] == format_version, "none was lost"


def test_a_migration_and_a_reconciliation_restore_the_values_on_every_branch(
    tmp_path: Path, spark: SparkSession
) -> None:
    (table,) = tables = [Partitioned("t", MIXED)]
    lake = Lake(tmp_path, spark, tables, 2)
    first = dict(table.rows)
    lake.drop()
    lake.sql(table, "ALTER TABLE @ CREATE BRANCH side")
    lake.sql(table, f"INSERT INTO {lake.world.catalog}.db.t.branch_side (id) VALUES (30)")
    lake.append(10)
    lake.world.file("0003", "tables: [{name: db.t, restore_columns: [s, d]}]")
    lake.world.project.apply(spark=lake.world.spark)
    lake.reads_right()
    side = f"FROM {lake.world.catalog}.db.t.branch_side"
    found = lake.world.spark.sql(f"SELECT id, s {side}").collect()
    assert {row[0]: row[1] for row in found} == {**{i: row["s"] for i, row in first.items()}, 30: None}
    assert [row[0] for row in lake.world.spark.sql(f"SELECT id {side} WHERE s = 'eu'").collect()] == [0]
    lake.drop_by_hand()
    # The manifest is written again without the deleted file.
    lake.sql(table, "DELETE FROM @ WHERE id = 0")
    del table.rows[0]
    lake.world.project.reconcile(spark=lake.world.spark)
    lake.reads_right()


def test_values_that_nothing_records_are_named_and_the_others_are_counted(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Files of a folder that is partitioned like Hive's do not hold the column: manifests alone tell it.

    These files name no field ids, and another column of theirs is where the column is in the table; PyIceberg
    does not read files with a column that has no name in the table.
    """
    (table,) = tables = [Partitioned("t", [strings("s", "s")])]
    lake = Lake(tmp_path, spark, tables, 2)
    folder = tmp_path / "hive"
    rows = lake.world.spark.sql(
        "SELECT 20L id, 'n' note, 'x' other, 'eu' s UNION ALL SELECT 21L, 'n', 'x', 'us'"
    )
    rows.coalesce(1).write.partitionBy("s").parquet(str(folder))
    lake.call(table, "add_files", f"source_table => '`parquet`.`{folder}`'")
    table.rows |= {20: {"note": "n", "s": "eu"}, 21: {"note": "n", "s": "us"}}
    lake.drop()
    lake.append(10)
    assert "values of s that are still in the files: 6 of 7 rows (85 %)" in lake.rollback()["t"]
    lake.reads_right(by_pyiceberg=False)
    lake.world.project.apply(lake.world.project.plan(redo="0002"), spark=lake.world.spark)
    # The manifest is written again, without the file of row 0 and without any value.
    lake.sql(table, "DELETE FROM @ WHERE id = 0")
    lake.forget()
    told = (
        "values of partition field `s` that are not recorded anywhere: 2 files (2 rows); s reads null there"
    )
    assert told in lake.rollback()["t"]
    del table.rows[0]
    table.rows[20]["s"] = table.rows[21]["s"] = None
    lake.reads_right(by_pyiceberg=False)
