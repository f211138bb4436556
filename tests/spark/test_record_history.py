"""``record: history``: no table gets a tag, and undoing works from the history alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo import UndoOptions
from tests.spark.test_rollback import ROW_1, ROW_2, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = """
    tables:
      - {name: db.quotes, columns: [{name: a, type: int}, {name: b, type: string}]}
      - {name: db.old, columns: [{name: a, type: int}]}
"""
# A type that grows is the one change whose way back ends with the next file, so that is another table's.
CHANGE = """
    allow: [destructive]
    tables:
      - name: db.trades
        renames: {symbol: ticker}
        drop_columns: [venue, price]
        columns: [{name: note, type: string}]
        partition_by: ["bucket(4, ticker) as b"]
        properties: {k: v}
      - {name: db.deals, renamed_from: db.quotes, columns: [{name: a, type: long}]}
      - {name: db.old, drop: true}
      - {name: db.fresh, columns: [{name: a, type: int}]}
"""


@pytest.fixture(params=["atomic", "direct"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Shop:
    shop = Shop(tmp_path, spark, settings=f", record: history, publish: {request.param}")
    shop.apply("0002", MORE)
    shop.insert(ROW_1)
    shop.sql("INSERT INTO @.quotes VALUES (1, 'q')")
    shop.sql("INSERT INTO @.old VALUES (5)")
    return shop


def references(shop: Shop) -> set[str]:
    """Whatever any table has, wherever it is called what by now."""
    found = set()
    for namespace in shop.sql(f"SHOW NAMESPACES IN {shop.catalog}"):
        for table in shop.sql(f"SHOW TABLES IN {shop.catalog}.`{namespace[0]}`"):
            if table[1] != "history":
                name = f"{shop.catalog}.`{namespace[0]}`.`{table[1]}`"
                found |= {row[0] for row in shop.sql(f"SELECT name FROM {name}.refs")}
    return found


def snapshots(shop: Shop, table: str) -> int:
    return int(shop.sql(f"SELECT count(*) FROM @.{table}.snapshots")[0][0])


def expire(shop: Shop, table: str) -> None:
    shop.sql(
        f"CALL {shop.catalog}.system.expire_snapshots(table => 'db.{table}',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1, clean_expired_metadata => true)"
    )


@pytest.mark.parametrize("is_expired", [False, True], ids=["kept", "expired"])
def test_all_comes_back_without_a_tag(shop: Shop, is_expired: bool) -> None:
    before = shop.columns(), shop.columns("db.quotes"), shop.columns("db.old")
    shop.apply("0003", CHANGE)
    assert references(shop) == {"main"}
    assert snapshots(shop, "trades") == 1, "not even a snapshot"
    shop.insert("(2, 'BB', TIMESTAMP '2026-01-02 10:00:00', 'new')", "id, ticker, at, note")
    shop.sql("INSERT INTO @.fresh VALUES (9)")
    if is_expired:
        expire(shop, "trades")
        expire(shop, "deals")
        found = shop.engine.metadata_json(TableName.parse("db.trades"))
        assert found is not None
        assert not any(f["name"] == "venue" for s in found["schemas"] for f in s["fields"])
    assert shop.rollback() == ("0003",)
    assert (shop.columns(), shop.columns("db.quotes"), shop.columns("db.old")) == before
    assert shop.sql("SELECT id, symbol, CAST(price AS string), venue FROM @.trades ORDER BY id") == [
        (1, "AA", "1.25", "X"),
        (2, "BB", None, None),
    ]
    assert shop.sql("SELECT * FROM @.quotes") == [(1, "q")]
    assert shop.sql("SELECT * FROM @.old") == [(5,)]
    assert {t[1] for t in shop.sql(f"SHOW TABLES IN {shop.catalog}.db")} == {"trades", "quotes", "old"}
    assert shop.standing() == {"0001": "applied", "0002": "applied", "0003": "held"}
    shop.insert(ROW_2.replace("(2", "(3"))
    assert shop.sql("SELECT id, venue FROM @.trades ORDER BY id") == [(1, "X"), (2, None), (3, "Y")]
    assert references(shop) == {"main"}


def test_what_the_way_back_of_hangs_on_files_is_known_without_a_tag(shop: Shop) -> None:
    shop.apply("0003", CHANGE)
    shop.sql("INSERT INTO @.deals VALUES (2, 'wide')")
    expire(shop, "deals")
    result = shop.project.plan_rollback(spark=shop.spark)
    assert not result.ready
    # With the snapshot of then, expiry took what tells an older file from a newer one: all count as new.
    assert ["2 data files were added since" in d.message for d in result.diagnostics] == [True]
    assert shop.rollback(options=UndoOptions(partial=True)) == ("0003",)
    assert shop.sql("SELECT * FROM @.quotes ORDER BY a") == [(1, "q"), (2, "wide")]
    assert shop.sql("SELECT venue FROM @.trades") == [("X",)]
