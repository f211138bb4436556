from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from pyspark.sql import SparkSession

from icemigrate.iceberg.names import TableName
from icemigrate.spark.spark_engine import SparkEngine
from tests.spark.conftest import Warehouse


def test_metadata_of_any_length_arrives_whole(
    spark: SparkSession, warehouse: Warehouse, namespace: str
) -> None:
    # What nothing compresses, so that it comes in several parts; and letters of more than one byte.
    columns = ", ".join(f"c{i} int COMMENT '{sha256(str(i).encode()).hexdigest()} 表'" for i in range(500))
    spark.sql(f"CREATE TABLE {warehouse.catalog}.{namespace}.wide ({columns}) USING iceberg")
    engine, name = SparkEngine(spark, warehouse.catalog), TableName((namespace,), "wide")
    location = engine.metadata_location(name)
    assert location is not None
    saved = json.loads(Path(location.removeprefix("file:")).read_text(encoding="utf-8"))
    assert engine.metadata_json(name) == saved
