"""What other engines read of a history and of tables that were rolled back, whether Spark or Python committed
the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.servers.lake import Lake, on
from tests.servers.seaweedfs import SeaweedFS
from tests.servers.trino import CATALOG, Trino, rest_properties
from tests.spark.duckdb_rows import duckdb_rows

pytestmark = on("rest")

CREATE = """\
description: Make trades
tables:
  - name: market_data.trades
    columns: [{name: symbol, type: string}, {name: volume, type: int}, {name: qualifiers, type: int}]
"""
EVOLVE = """\
description: Call volume quantity
allow: [destructive]
tables:
  - name: market_data.trades
    renames: {volume: quantity}
    drop_columns: [qualifiers]
"""


@pytest.fixture(scope="module")
def reader(seaweedfs_server: SeaweedFS, trino_server: Trino) -> Iterator[Trino]:
    lake = seaweedfs_server
    properties = rest_properties(
        lake.catalog,
        lake.s3,
        lake.access_key,
        lake.secret_key,
        warehouse=lake.warehouse,
        security="OAUTH2",
        oauth2__credential=f"{lake.access_key}:{lake.secret_key}",
    )
    with trino_server.knowing(properties) as server:
        yield server


@pytest.mark.parametrize("engine", ["spark", "metadata"])
def test_other_engines_query_the_history_and_the_tags(
    lake: Lake, reader: Trino, seaweedfs_server: SeaweedFS, engine: str
) -> None:
    lake.apply_with(engine)
    lake.write("0001_make", CREATE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7)")
    lake.write("0002_evolve", EVOLVE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('B', 20)")
    lake.api.rollback(spark=lake.session)

    history = f"{CATALOG}.{lake.history_name}"
    told = reader.query(
        f"SELECT version_text, description, outcome, tables, finished_at >= started_at FROM {history}"
        " WHERE outcome <> 'started' ORDER BY finished_at"
    )
    trades = ["market_data.trades"]
    assert told == [
        ["0001", "Make trades", "applied", trades, True],
        ["0002", "Call volume quantity", "applied", trades, True],
        ["0002", "Call volume quantity", "rolled_back", trades, True],
    ]

    table = f"{CATALOG}.{lake.namespace}.trades"
    now = reader.query(f"SELECT symbol, volume, qualifiers FROM {table} ORDER BY symbol")
    assert now == [["A", 10, 7], ["B", 20, None]]
    assert reader.query(f"SELECT * FROM {table} FOR VERSION AS OF 'icemigrate-market-0001'") == []
    before = (
        f"SELECT symbol, volume, qualifiers FROM {table} FOR VERSION AS OF 'icemigrate-market-0002-before'"
    )
    assert reader.query(before) == [["A", 10, 7]]
    rows = [("A", 10, 7), ("B", 20, None)]
    assert lake.sql("SELECT symbol, volume, qualifiers FROM {t} ORDER BY symbol") == rows
    with closing(lake.pyiceberg()) as catalog:
        read = catalog.load_table((*lake.name().namespace, lake.name().name))
        found = read.scan().to_arrow().sort_by("symbol").to_pylist()
    assert [(row["symbol"], row["volume"], row["qualifiers"]) for row in found] == rows
    by_duckdb = "SELECT symbol, volume, qualifiers FROM iceberg_scan(?) ORDER BY symbol"
    secret = seaweedfs_server.duckdb_secret
    _, found_too = duckdb_rows([(secret, ()), (by_duckdb, (read.metadata_location,))])
    assert [tuple(row) for row in found_too] == rows
