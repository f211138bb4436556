"""A column that is there becomes required: only where every file holds it and every row has a value."""

from __future__ import annotations

import pytest

from icemigrate.errors import Mistakes
from icemigrate.executor import Undone
from tests.spark.test_rollback import ROW_1, Shop, shop

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
    assert told.message.startswith("`note` cannot be required: 1 row stands in files that lack it")
    assert str(told.place).endswith("0003_m.yaml:7:32")
    with pytest.raises(Mistakes):
        shop.project.apply(spark=shop.spark)
    # Written again, every file holds it; that no value is null is asked of the rows.
    shop.sql("UPDATE @.trades SET note = 'late' WHERE note IS NULL")
    shop.sql("INSERT INTO @.trades (id, symbol, venue) VALUES (3, 'CC', 'Z')")
    assert shop.project.plan().ready
    with pytest.raises(Undone, match="columns of which rows have no value: it must give none and gives note"):
        shop.project.apply(spark=shop.spark)
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
    with pytest.raises(Undone, match="it must give none and gives note") as refused:
        shop.project.apply(spark=shop.spark)
    assert "0003_m.yaml:6:33" in refused.value.message
    assert shop.standing()["0002"] == "applied"
    assert [f.required for f in shop.fields() if f.name in ("price", "note")] == [False, False]
