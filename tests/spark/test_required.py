"""A column that is there becomes required: only where every file holds it and every row has a value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import Mistakes
from icemigrate.events import Event, StatementFinished
from icemigrate.execution.failures import Undone
from tests.spark.test_rollback import ROW_1, Shop, shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["shop"]

WANTED = """
    allow: [incompatible]
    tables:
      - name: db.trades
        columns:
          - {name: symbol, required: true}
          - {name: note, required: true}
"""


def _with_note(shop: Shop) -> None:
    """Two files: one from before a column was there, and one that holds it."""
    shop.insert(ROW_1)
    shop.apply("0002", "tables: [{name: db.trades, columns: [{name: note, type: string}]}]")
    shop.insert(
        "(2, 'BB', 2, 'Y', TIMESTAMP '2026-01-02 10:00:00', 'n')", "id, symbol, price, venue, at, note"
    )


def test_files_that_lack_a_column_are_known_from_manifests(shop: Shop) -> None:
    _with_note(shop)
    shop.file("0003", WANTED)
    (told,) = [d for d in shop.project.plan().diagnostics if d.code == "required-not-in-every-file"]
    assert told.message.startswith("`note` cannot be required: 1 row is in a file that lacks it (file:/")
    assert str(told.place).endswith("0003_m.yaml:7:32")
    with pytest.raises(Mistakes):
        shop.project.apply(spark=shop.spark)
    # Written again, every file holds it, and manifests count the nulls.
    shop.sql("UPDATE @.trades SET note = 'late' WHERE note IS NULL")
    assert shop.project.plan().ready
    shop.sql("INSERT INTO @.trades (id, symbol, venue) VALUES (3, 'CC', 'Z')")
    (told,) = [d for d in shop.project.plan().diagnostics if d.code == "required-holds-nulls"]
    assert told.message == "`note` cannot be required: there is a null in it, which Spark would read as 0"
    shop.sql("DELETE FROM @.trades WHERE id = 3")
    shop.project.apply(spark=shop.spark)
    assert shop.sql("SELECT id, note FROM @.trades ORDER BY id") == [(1, "late"), (2, "n")]


def test_where_manifests_do_not_tell_the_rows_are_asked_before_anything_is_done(shop: Shop) -> None:
    shop.sql("ALTER TABLE @.trades SET TBLPROPERTIES ('write.metadata.metrics.default'='none')")
    _with_note(shop)
    shop.file("0003", WANTED.replace("symbol, required: true", "price, required: true"))
    plan = shop.project.plan()
    assert plan.ready
    (work,) = plan.plan.migrations[0].tables[0].rows
    assert work.text == "check before: every row has a value of price, note"
    with pytest.raises(Undone, match="there are rows without a value of note") as refused:
        shop.project.apply(spark=shop.spark)
    assert "0003_m.yaml:7:32" in refused.value.message
    assert shop.standing()["0002"] == "applied"
    assert [f.required for f in shop.fields() if f.name in ("price", "note")] == [False, False]


PROMOTED = """
    tables:
      - {name: db.days, renames: {id: key}, columns: [{name: day, type: timestamp}]}
"""


@pytest.mark.parametrize("settings", ["", ", publish: direct"])
def test_rows_that_come_while_it_runs_must_allow_it_too(
    tmp_path: Path, spark: SparkSession, settings: str
) -> None:
    shop = Shop(tmp_path, spark, settings=settings)
    shop.apply(
        "0002",
        "tables: [{name: db.days, format_version: 3, columns: "
        "[{name: id, type: int}, {name: day, type: date}]}]",
    )
    shop.insert(ROW_1)
    came: list[str] = []

    def write(row: str) -> Callable[[Event], None]:
        def listen(event: Event) -> None:
            if isinstance(event, StatementFinished) and "RENAME" in event.text and row not in came:
                came.append(row)
                shop.sql(row)

        return listen

    shop.file("0003", WANTED.split("          - {name: note")[0] + "        renames: {venue: place}")
    null = "INSERT INTO @.trades VALUES (2, NULL, 2.5, 'Y', NULL)"
    with pytest.raises(Undone, match="after the check for nulls in `symbol`, which becomes required"):
        shop.project.apply(spark=shop.spark, on_event=write(null))
    assert shop.sql("SELECT id, symbol FROM @.trades ORDER BY id") == [(1, "AA"), (2, None)]
    shop.sql("DELETE FROM @.trades WHERE id = 2")
    shop.project.apply(spark=shop.spark)

    shop.file("0004", PROMOTED)
    with pytest.raises(Undone, match="cannot read them after the change of `day` from `date` to `timestamp`"):
        shop.project.apply(
            spark=shop.spark, on_event=write("INSERT INTO @.days VALUES (1, DATE '2026-01-01')")
        )
    assert shop.sql("SELECT id, CAST(day AS STRING) FROM @.days") == [(1, "2026-01-01")]
