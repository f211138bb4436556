"""Data steps give the same values, whatever the session's time zone is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = "tables: [{name: db.t, columns: [{name: id, type: int}, {name: at, type: timestamp}]}]"
FILL = "tables: [{name: db.t, columns: [{name: seen, type: timestamptz}], backfill: [{set: {seen: at}}]}]"


@pytest.mark.parametrize(("zone", "hour"), [("", 12), ("time_zone: Europe/Berlin\n", 11)])
def test_a_time_without_a_zone_is_in_the_zone_of_the_file(
    tmp_path: Path, spark: SparkSession, zone: str, hour: int
) -> None:
    desk = OwnProject(tmp_path, spark, "zone", "zone")
    (desk.folder / "migrations" / "0001_make.yaml").write_text(MAKE, encoding="utf-8")
    desk.project.apply(spark=desk.spark)
    table, session = f"{desk.catalog}.db.t", desk.spark
    session.sql(f"INSERT INTO {table} VALUES (1, TIMESTAMP_NTZ '2026-01-15 12:00:00')")
    (desk.folder / "migrations" / "0002_fill.yaml").write_text(zone + FILL, encoding="utf-8")
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        desk.project.apply(spark=desk.spark)
        assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"
    finally:
        session.conf.set("spark.sql.session.timeZone", before)
    ((seconds,),) = session.sql(f"SELECT unix_timestamp(seen) FROM {table}").collect()
    assert seconds % 86_400 == hour * 3_600
