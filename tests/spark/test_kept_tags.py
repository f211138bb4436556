"""How long a migration's tags keep the rows before it, where an environment says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.test_rollback import ROW_1, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000
DROP = "{allow: [destructive], tables: [{name: db.trades, drop_columns: [price]}]}"


def grow_older(shop: Shop, days: int) -> None:
    """Make all that the table has as old as that, as a table that nobody wrote to for so long would be."""
    with (
        closing(sqlite3.connect(shop.folder / ".icemigrate" / "catalog.db", timeout=60)) as database,
        database,
    ):
        query = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 'trades'"
        (location,) = database.execute(query).fetchone()
        file = Path(location.removeprefix("file:"))
        metadata = json.loads(file.read_text())
        for part in (metadata, *metadata["snapshots"], *metadata["snapshot-log"], *metadata["metadata-log"]):
            for key in part.keys() & {"timestamp-ms", "last-updated-ms"}:
                part[key] -= days * DAY_MS
        older = file.with_name("00099-older.metadata.json")
        older.write_text(json.dumps(metadata))
        database.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = 'trades'",
            (location.replace(file.name, older.name),),
        )


def test_rows_that_are_older_than_their_tag_is_kept_outlive_an_expiry(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, settings=", keep_tags: 14d")
    shop.insert(ROW_1)
    grow_older(shop, days=20)
    shop.apply("0002", DROP)
    (limit,) = shop.sql(
        "SELECT max_reference_age_in_ms FROM @.trades.refs WHERE name = 'icemigrate-shop-0002-before'"
    )
    assert 34 * DAY_MS <= limit[0] < 35 * DAY_MS
    # What a tag of its own with the same words comes to: it is that old already.
    shop.sql("ALTER TABLE @.trades CREATE TAG plain RETAIN 14 DAYS")
    shop.insert("(2, 'BB', 'Y', TIMESTAMP '2026-01-02 10:00:00')", "id, symbol, venue, at")
    shop.sql(
        f"CALL {shop.catalog}.system.expire_snapshots(table => 'db.trades',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    refs = {row[0] for row in shop.sql("SELECT name FROM @.trades.refs")}
    # The tag of the first migration, which was applied 20 days ago, is over as well.
    assert refs == {"main", "icemigrate-shop-0002", "icemigrate-shop-0002-before"}
    before = "SELECT CAST(price AS string) FROM @.trades VERSION AS OF 'icemigrate-shop-0002-before'"
    assert shop.sql(before) == [("1.25",)]
    # Three weeks later its time is over, and that of the migration's own tag too.
    grow_older(shop, days=21)
    shop.sql(
        f"CALL {shop.catalog}.system.expire_snapshots(table => 'db.trades',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert {row[0] for row in shop.sql("SELECT name FROM @.trades.refs")} == {"main"}
    assert shop.rollback() == ("0002",)
    assert shop.sql("SELECT id, CAST(price AS string) FROM @.trades ORDER BY id") == [(1, "1.25"), (2, None)]
