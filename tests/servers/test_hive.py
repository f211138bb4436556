"""Migrations of tables in a Hive metastore, which Python commits and Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from icemigrate.catalog import CatalogSettings
from icemigrate.errors import EngineError
from icemigrate.execution.spark_start import LazySpark
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine import hive_client
from icemigrate.metadata_engine.hive_client import HiveClient, find_table
from icemigrate.metadata_engine.hive_store import open_hive_store
from icemigrate.metadata_engine.table_store import TableCommit
from icemigrate.project import choose_environment
from icemigrate.project.namespace_mapping import catalog_settings
from tests.servers.lake import Kind, Lake, on
from tests.support.small_commits import created, set_properties

pytestmark = on("hive")

TRADES = TableName(("hive",), "trades")
_BY_COMMIT = {"metadata_location", "previous_metadata_location"}
_BY_SERVER = {"numFiles", "totalSize", "transient_lastDdlTime"}


@pytest.fixture
def settings(kind: Kind, tmp_path: Path) -> CatalogSettings:
    project = kind.project(tmp_path, "hive", history="hive.history")
    return catalog_settings(choose_environment(project, None, kind.variables))


def entry(lake: Lake) -> tuple[dict[str, str], Any]:
    """The parameters and the storage descriptor of ``trades`` in the metastore."""
    client = HiveClient(catalog_settings(choose_environment(lake.project, None, lake.kind.variables)))
    with client.connected() as call:
        table = find_table(call, lake.name())
    client.close()
    ignored = _BY_COMMIT | _BY_SERVER
    return {key: value for key, value in table.parameters.items() if key not in ignored}, table.sd


@pytest.mark.parametrize("version", [2, 3])
def test_python_applies_and_undoes_what_spark_reads(lake: Lake, version: int) -> None:
    lake.apply_with("metadata")
    lake.write(
        "0001_make",
        f"""
        description: Make trades
        tables:
          - name: market_data.trades
            format_version: {version}
            columns:
              - {{name: symbol, type: string, description: of the exchange}}
              - {{name: at, type: timestamptz}}
              - {{name: legs, type: "list<struct<price: decimal(9, 2), sizes: map<string, long>>>"}}
            partition_by: ["day(at)"]
            sort_by: [symbol]
            properties: {{my.key: one}}
        """,
    )
    with patch.object(LazySpark, "__call__", side_effect=AssertionError("Spark was started")):
        lake.api.apply()
    lake.sql("INSERT INTO {t} (symbol, at) VALUES ('A', TIMESTAMP '2026-03-02 09:00:00')")
    lake.write(
        "0002_change",
        """
        description: Change trades
        allow: [destructive]
        because: the venue replaces the legs
        tables:
          - name: market_data.trades
            drop_columns: [legs]
            columns: [{name: venue, type: string}]
            properties: {my.key: two}
        """,
    )
    lake.api.apply()
    lake.session.catalog.refreshTable(lake.sql_name())
    assert lake.sql("SELECT symbol, venue FROM {t}") == [("A", None)]
    by_python = entry(lake)
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('my.key' = 'two')")
    assert entry(lake) == by_python
    lake.sql("ALTER TABLE {t} ADD COLUMN theirs int")
    (drift,) = lake.api.drift().tables
    assert "theirs" in str(drift)
    assert lake.api.rollback().rolled_back == ("0002",)
    lake.session.catalog.refreshTable(lake.sql_name())
    assert lake.sql("SELECT symbol, legs, theirs FROM {t}") == [("A", None, None)]
    assert lake.table().format_version == version


def test_a_lock_of_another_client_and_a_type_that_hive_does_not_have_are_refused(
    settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_hive_store(settings), HiveClient(settings)
    base = created(store, TRADES)
    monkeypatch.setattr(hive_client, "LONGEST_LOCK_WAIT_S", 0.0)
    with other.locked(TRADES), pytest.raises(EngineError, match="holds the lock of table"):
        store.commit([set_properties(base, TRADES, a="1")])
    (after,) = store.commit([set_properties(base, TRADES, a="1")])
    field = {"id": 9, "name": "at", "required": False, "type": "timestamp_ns"}
    schema = {**after.json["schemas"][-1], "fields": [field]}
    updates = (
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-schema", "schema": schema, "last-column-id": 9},
        {"action": "set-current-schema", "schema-id": -1},
    )
    with pytest.raises(EngineError, match="type `timestamp_ns`, which Hive does not have"):
        store.commit([TableCommit(TRADES, after, updates)])
    assert store.load(TRADES) == after
    assert len(list(Path(after.location.removeprefix("file:")).parent.glob("*.metadata.json"))) == 2
    other.close()
    store.close()
