"""Late files, ``repair`` and ``squash`` on real tables: what the history shows, and that no row moves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import Mistakes
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRADES = (
    "tables: [{name: db.trades, columns: [{name: id, type: int}, {name: price, type: 'decimal(9,2)'}]}]\n"
)
VENUE = "tables: [{name: db.trades, columns: [{name: venue, type: string}]}]\n"


class Shop(OwnProject):
    """A shop whose files change."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark, "shop", "files")
        self.migrations = folder / "migrations"

    def apply(self, **files: str) -> tuple[str, ...]:
        for name, text in files.items():
            (self.migrations / f"{name.removeprefix('v')}.yaml").write_text(text, encoding="utf-8")
        return self.project.apply(spark=self.spark).applied

    def sql(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.spark.sql(text.replace("@", self.catalog)).collect()]

    def rows(self) -> list[tuple[object, ...]]:
        """The history as its readers see it, in the order of what was done."""
        ended = "outcome <> 'started' ORDER BY finished_at"
        return self.sql(f"SELECT version_text, action, outcome FROM @.icemigrate.history WHERE {ended}")

    def metadata(self) -> object:
        """Where the table stands: no commit may have moved it."""
        return self.sql("SELECT max(timestamp), count(*) FROM @.db.trades.metadata_log_entries")


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    shop = Shop(tmp_path, spark)
    shop.apply(v0001_trades=TRADES, v0003_venue=VENUE)
    shop.sql("INSERT INTO @.db.trades VALUES (1, 1.25, 'X')")
    return shop


def test_repair_and_squash_write_to_the_history_alone(shop: Shop) -> None:
    before = shop.metadata()
    (shop.migrations / "0001_trades.yaml").write_text(f"allow: [destructive]\n{TRADES}", encoding="utf-8")
    with pytest.raises(Mistakes):
        shop.project.plan()
    assert [r.version for r in shop.project.repair(spark=shop.spark).repaired] == ["0001"]
    assert shop.project.plan().is_empty
    shop.project.squash("0003")
    assert shop.apply() == ("0003",)
    assert shop.project.plan().is_empty
    assert shop.metadata() == before
    # Rows are appended and never changed: the earlier ones are still there.
    assert shop.rows() == [
        ("0001", "apply", "applied"),
        ("0003", "apply", "applied"),
        ("0001", "repair", "repaired"),
        ("0003", "squash", "squashed"),
    ]
    assert [e.version for e in shop.project.history().entries] == ["0003"]
    # What comes after a squash is applied and taken back as ever.
    assert shop.apply(v0004_size="tables: [{name: db.trades, columns: [{name: size, type: int}]}]\n") == (
        "0004",
    )
    assert shop.project.rollback(spark=shop.spark).rolled_back == ("0004",)
    assert shop.sql("SELECT id, CAST(price AS string), venue FROM @.db.trades") == [(1, "1.25", "X")]


def test_a_late_file_is_applied_and_a_later_one_still_taken_back(shop: Shop) -> None:
    assert shop.apply(v0002_size="tables: [{name: db.trades, columns: [{name: size, type: int}]}]\n") == (
        "0002",
    )
    shop.sql("INSERT INTO @.db.trades VALUES (2, 2.50, 'Y', 7)")
    assert shop.project.rollback(only="0003", spark=shop.spark).rolled_back == ("0003",)
    assert shop.sql("SELECT * FROM @.db.trades ORDER BY id")[1][2] == 7


def test_a_squash_runs_on_an_empty_catalog(shop: Shop, tmp_path: Path, spark: SparkSession) -> None:
    shop.project.squash("0003")
    other = Shop(tmp_path / "other", spark)
    for path in shop.migrations.iterdir():
        (other.migrations / path.name).write_bytes(path.read_bytes())
    assert other.apply() == ("0003",)
    columns = "SELECT * FROM @.db.trades LIMIT 0"
    assert (
        shop.spark.sql(columns.replace("@", shop.catalog)).dtypes
        == other.spark.sql(columns.replace("@", other.catalog)).dtypes
    )
    # It was done here like any migration, and so it can be taken back.
    assert other.project.rollback(spark=other.spark).rolled_back == ("0003",)
