"""Tables that are partitioned no more: format version 1 keeps void fields; a field may lose its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icemigrate.iceberg.names import TableName
from tests.support.undo_project import UndoWorld

NAME = TableName(("db",), "t")


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_files_of_one_tell_what_they_hold(
    spark: SparkSession, tmp_path: Path, format_version: int
) -> None:
    world = UndoWorld(tmp_path, spark)
    columns = "columns: [{name: key, type: long}, {name: v, type: int}, {name: d, type: date}]"
    world.file(
        "0001",
        f"tables: [{{name: db.t, {columns}, partition_by: [d], format_version: {format_version}}}]",
    )
    world.file("0002", "tables: [{name: db.t, partition_by: []}]")
    world.project.apply(spark=world.spark)
    world.sql("INSERT INTO @ VALUES (1, 10, DATE '2026-01-01')", NAME)
    world.file("0003", "{allow: [destructive], because: x, tables: [{name: db.t, drop_columns: [v]}]}")
    world.project.apply(spark=world.spark)
    world.sql("INSERT INTO @ VALUES (2, DATE '2026-01-02')", NAME)
    planned = world.project.plan_rollback(spark=world.spark).plan
    (note,) = planned.migrations[0].tables[0].notes
    assert "1 of 2 rows" in note
    world.project.rollback(spark=world.spark)
    rows = world.spark.sql(f"SELECT key, v FROM `{world.catalog}`.`db`.`t` ORDER BY key").collect()
    assert [tuple(r) for r in rows] == [(1, 10), (2, None)]


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_files_whose_partition_has_lost_its_source_tell_what_they_hold(
    spark: SparkSession, tmp_path: Path, format_version: int
) -> None:
    world = UndoWorld(tmp_path, spark)
    columns = "columns: [{name: key, type: long}, {name: v, type: int}, {name: d, type: date}]"
    world.file(
        "0001",
        f"tables: [{{name: db.t, {columns}, partition_by: [d], format_version: {format_version}}}]",
    )
    world.project.apply(spark=world.spark)
    world.sql("INSERT INTO @ VALUES (1, 10, DATE '2026-01-01')", NAME)
    entry = "{name: db.t, partition_by: [], drop_columns: [d], columns: [{name: v, type: long}]}"
    world.file("0002", f"{{allow: [destructive], because: x, tables: [{entry}]}}")
    world.project.apply(spark=world.spark)
    world.project.rollback(spark=world.spark)
    rows = world.spark.sql(f"SELECT key, v, year(d) FROM `{world.catalog}`.`db`.`t`").collect()
    assert [tuple(r) for r in rows] == [(1, 10, 2026)]
