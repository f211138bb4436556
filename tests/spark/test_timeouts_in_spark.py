"""Spark's own client of a catalog gives up on one that accepts the connection and never answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import EngineError
from icemigrate.execution.spark_start import open_engine
from icemigrate.iceberg.names import TableName
from icemigrate.project.project_values import CatalogDescription, Environment
from tests.support.stuck_server import HTTP, POSTGRES, StuckServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("way", ["silent", "stalls"])
@pytest.mark.parametrize("kind", ["rest", "sql"])
def test_spark_gives_up(spark: SparkSession, fresh_name: str, kind: str, way: str) -> None:
    assert spark is not None
    server = StuckServer(way, HTTP if kind == "rest" else POSTGRES)
    scheme, path = ("http", "") if kind == "rest" else ("postgresql", "/c")
    uri = f"{scheme}://127.0.0.1:{server.port}{path}"
    name = f"stuck_{fresh_name}"
    catalog = CatalogDescription(name, kind, uri, "file:/tmp/none", timeout_s=1)  # type: ignore[arg-type]
    engine = open_engine(Environment("prod", catalog), None)
    with pytest.raises(EngineError) as caught:
        engine.table(TableName(("db",), "t"))
    server.close()
    assert "did not respond to Spark in time" in str(caught.value)
    assert "`timeout` of the environment's catalog" in (caught.value.hint or "")
