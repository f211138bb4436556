"""Columns that come back after Iceberg has written null for their partition values.

While the source of an identity or truncate field is dropped, every manifest of that spec that is written
again loses the values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.lost_partitions import IDENTITY, MIXED, OTHERS, TRUNCATED, Lake, Partitioned

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
    notes = lake.rollback()
    lake.reads_right()
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
