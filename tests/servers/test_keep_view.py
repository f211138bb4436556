"""Views with old column names on every kind of catalog, and the refusal where a catalog has none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.spark_start import spark_settings
from icemigrate.project import choose_environment
from icemigrate.spark.session import start_spark
from tests.servers.lake import Kind, Lake, rest_kind
from tests.servers.seaweedfs import SeaweedFS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
    tables:
      - name: market_data.trades
        columns: [{name: symbol, type: string}, {name: volume, type: int}]
"""
RENAME = """
    tables:
      - name: market_data.trades
        renames: {volume: quantity}
        keep_view: 30d
"""
AGAIN = "tables: [{name: market_data.trades, renames: {quantity: amount}}]"


def keeps_the_old_names(lake: Lake) -> None:
    """Apply, replace and roll back a view."""
    view = lake.sql_name("trades__before_0002")
    lake.sql("INSERT INTO {t} VALUES ('A', 1)")
    lake.apply()
    assert lake.sql(f"SELECT volume FROM {view}") == lake.sql("SELECT quantity FROM {t}") == [(1,)]
    lake.write("0003_again", AGAIN)
    lake.apply()
    assert lake.sql(f"SELECT volume FROM {view}") == lake.sql("SELECT amount FROM {t}") == [(1,)]
    (kept,) = next(table.views for table in lake.api.status().tables if table.table == "market_data.trades")
    assert kept.exists
    assert kept.until is not None
    assert lake.api.rollback(to="0001", spark=lake.session).rolled_back == ("0003", "0002")
    with open_environment(lake.project, None) as world:
        assert world.catalog.views((lake.namespace,)) == ()


def test_a_view_keeps_the_old_names_or_is_refused(lake: Lake) -> None:
    lake.write("0001_create", CREATE)
    lake.apply()
    lake.write("0002_rename", RENAME)
    with open_environment(lake.project, None) as world:
        capabilities: Capabilities = world.catalog.capabilities
    if capabilities.views:
        keeps_the_old_names(lake)
    else:
        assert [d.code for d in lake.plan().diagnostics] == ["no-views"]


def test_a_rest_catalog_whose_settings_promise_views(
    seaweedfs_server: SeaweedFS, spark_jvm: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark_jvm is not None
    rest = rest_kind(seaweedfs_server)
    own = rest.environment.replace("lake_rest", "lake_views").replace(
        "type: rest\n", "type: rest\n          properties: {view-endpoints-supported: 'true'}\n"
    )
    kind = Kind("views", own, rest.variables)
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    project = kind.project(tmp_path, "kept_views", history="kept_views_meta.history")
    session = start_spark(spark_settings(choose_environment(project, None, kind.variables)))
    lake = Lake(kind, session, tmp_path, "kept_views")
    lake.write("0001_create", CREATE)
    lake.apply()
    lake.write("0002_rename", RENAME)
    keeps_the_old_names(lake)
