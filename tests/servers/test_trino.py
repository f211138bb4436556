"""What Trino, which knows nothing of icemigrate, reads of a history and of tables that went back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.lake import Lake, on
from tests.servers.seaweedfs import SeaweedFS
from tests.servers.trino import CATALOG, Trino, rest_properties

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


def test_trino_queries_the_history_and_the_tags(lake: Lake, reader: Trino) -> None:
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
