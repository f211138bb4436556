from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.errors import EngineError
from icemigrate.events import Event, StatementStarted
from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo import UndoOptions
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFILL = UndoOptions(refill=True)

CREATE = """
    description: Make trades
    tables:
      - name: db.trades
        columns:
          - {name: id, type: int, required: true}
          - {name: symbol, type: string}
          - {name: price, type: "decimal(9,2)"}
          - {name: at, type: "struct<zone: string, venue: string>"}
          - {name: legs, type: "list<struct<a: int, b: int>>"}
        identifier: IDENTIFIER
        format_version: FORMAT
"""

DROP = """
    description: Drop what nobody needs
    allow: [destructive]
    tables:
      - {name: db.trades, drop_columns: [price, at.venue], renames: {symbol: ticker}}
"""


class Shop(OwnProject):
    """A shop that drops columns, and wants their values back."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        format_version: int,
        identifier: str = "[]",
        record: str = "tags",
    ) -> None:
        super().__init__(folder, spark, "shop", "refill", f", record: {record}")
        create = CREATE.replace("FORMAT", str(format_version)).replace("IDENTIFIER", identifier)
        self.apply("0001", create)

    def apply(self, version: str, text: str) -> None:
        file = self.folder / "migrations" / f"{version}_m.yaml"
        file.write_text(dedent(text), encoding="utf-8")
        self.project.apply(spark=self.spark)

    def notes(self, options: UndoOptions) -> list[str]:
        plan = self.project.plan_rollback(options=options, spark=self.spark).plan
        return [n for m in plan.migrations for t in m.tables for n in t.notes]

    def rollback(self, options: UndoOptions, **more: Any) -> tuple[str, ...]:
        return self.project.rollback(options=options, spark=self.spark, **more).notes

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(text.replace("@", f"{self.catalog}.db")).collect()]

    def decay(self) -> None:
        """Write, drop the columns, and let life go on until no file of now holds their values."""
        self.sql(
            "INSERT INTO @.trades SELECT CAST(id AS INT), concat('S', id), CAST(id AS DECIMAL(9,2)), "
            "IF(id = 5, NULL, named_struct('zone', 'UTC', 'venue', concat('V', id))), "
            "array(named_struct('a', 1, 'b', 2)) FROM range(6)"
        )
        self.sql("UPDATE @.trades SET price = NULL WHERE id = 4")
        self.apply("0002", DROP)
        self.sql("UPDATE @.trades SET ticker = 'T1' WHERE id = 1")
        self.sql("DELETE FROM @.trades WHERE id = 2")
        self.compact()
        self.sql("INSERT INTO @.trades VALUES (100, 'NEW', named_struct('zone', 'CET'), NULL)")

    def compact(self) -> None:
        rewrite = "system.rewrite_data_files(table => 'db.trades', options => map('rewrite-all', 'true'))"
        self.sql(f"CALL {self.catalog}.{rewrite}")

    def values(self, symbol: str = "symbol") -> list[tuple[Any, ...]]:
        columns = f"id, {symbol}, CAST(price AS STRING), at.zone, at.venue, at IS NULL"
        return self.sql(f"SELECT {columns} FROM @.trades ORDER BY id")

    def table(self) -> Any:
        found = self.engine.table(TableName.parse("db.trades"))
        assert found is not None
        return found


ALL_BACK = [
    (0, "S0", "0.00", "UTC", "V0", False),
    (1, "T1", "1.00", "UTC", "V1", False),
    (3, "S3", "3.00", "UTC", "V3", False),
    (4, "S4", None, "UTC", "V4", False),
    (5, "S5", "5.00", None, None, True),
    (100, "NEW", None, "CET", None, False),
]

BEFORE = "icemigrate-shop-0002-before"


def at_publication(do: Callable[[], object]) -> Callable[[Event], None]:
    """Does something once, right before the values are published."""
    return once("fast_forward", do)


def once(text: str, do: Callable[[], object]) -> Callable[[Event], None]:
    """Does something once, when a statement with this text begins."""
    left = [do]

    def listen(event: Event) -> None:
        if left and isinstance(event, StatementStarted) and text in event.text:
            left.pop()()

    return listen


@pytest.mark.parametrize(("format_version", "identifier"), [(3, "[]"), (2, "[id]")])
def test_values_that_were_compacted_away_come_back_to_every_row_that_is_still_there(
    tmp_path: Path, spark: SparkSession, format_version: int, identifier: str
) -> None:
    shop = Shop(tmp_path, spark, format_version, identifier)
    shop.decay()
    properties = shop.table().properties
    offered = [n for n in shop.notes(UndoOptions()) if "--refill" in n]
    assert [n.split(" when ")[0] for n in offered] == [
        "up to 6 rows lost the value of price",
        "up to 6 rows lost the value of at.venue",
    ]
    assert f"{BEFORE} keeps it" in offered[0]
    newer = "INSERT INTO @.trades VALUES (101, 'LAST', 7, NULL, NULL)"
    notes = shop.rollback(REFILL, on_event=at_publication(lambda: shop.sql(newer)))
    assert shop.values() == [*ALL_BACK, (101, "LAST", "7.00", None, None, True)]
    told = [n.removeprefix("0002: db.trades: ") for n in notes]
    assert "another writer committed first; attempt 2 of 5" in told
    assert f"brought back from {BEFORE}: 4 values of price, 4 values of at.venue" in told
    assert f"gone since: 1 of 6 rows with a value in {BEFORE}" in told
    # It is not seen as somebody who writes the table.
    metadata = shop.engine.metadata_json(TableName.parse("db.trades"))
    assert metadata is not None
    ours = [s for s in metadata["snapshots"] if s["summary"].get("icemigrate.refill") == "0002"]
    assert len(ours) == 4, "two columns of two structs, and all again"
    # Nothing of it is left: neither a setting nor the branch.
    after = shop.table()
    assert after.properties == properties
    assert [n for n, ref in after.refs.items() if ref.kind == "branch"] == ["main"]


def test_a_refill_that_the_storage_refuses_fails_before_anything_is_committed(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 3)
    shop.sql("INSERT INTO @.trades (id, price) VALUES (1, 7)")
    shop.apply("0002", DROP)
    shop.compact()
    shop.sql("ALTER TABLE @.trades SET TBLPROPERTIES ('write.data.path' = '/proc/icemigrate')")
    before = shop.table()
    with pytest.raises(
        EngineError, match=r"rejects `\.parquet` files, which the refill of `db\.trades`"
    ) as failed:
        shop.rollback(REFILL)
    assert "`icemigrate rollback --no-refill` ends an undo" in (failed.value.hint or "")
    assert shop.table() == before
    shop.sql("ALTER TABLE @.trades UNSET TBLPROPERTIES ('write.data.path')")
    shop.rollback(REFILL)
    assert shop.sql("SELECT id, price FROM @.trades") == [(1, 7)]


def test_a_refill_that_was_cut_short_is_gone_on_with_and_needs_no_tag(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 3, "[]", record="history")
    shop.decay()
    assert shop.table().refs.keys() == {"main"}

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(EngineError, match="Ctrl-C"):
        shop.rollback(REFILL, on_event=at_publication(die))
    assert [row[2] for row in shop.values()] == [None] * 6  # the column is back, its values are not
    notes = shop.rollback(UndoOptions())
    assert shop.values() == ALL_BACK
    assert "4 values of price, 4 values of at.venue" in notes[-2]
    assert "write.merge.mode" not in shop.table().properties
    assert shop.table().refs.keys() == {"main"}


def test_where_rows_cannot_be_told_apart_the_plan_says_where_the_values_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 2, "[]")
    shop.decay()
    (note, _) = [n for n in shop.notes(REFILL) if "lost the value" in n]
    assert "without identifier fields that are the same then and now, rows cannot be matched" in note
    query = note.split(f"{BEFORE} keeps it: ")[1]
    assert query == f"SELECT price FROM {shop.catalog}.db.trades VERSION AS OF '{BEFORE}'"
    kept = sorted(str(price) for (price,) in shop.sql(query))
    assert kept == ["0.00", "1.00", "2.00", "3.00", "5.00", "None"]
    shop.rollback(REFILL)
    assert [row[2] for row in shop.values()] == [None] * 6


RESTORE = """
    description: They are needed after all
    tables:
      - name: db.trades
        restore_columns: [{name: price, refill: true}, {name: at.venue, refill: true}]
"""


def test_a_migration_restores_columns_with_values_that_were_rewritten_away(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 3, "[]")
    shop.decay()
    file = shop.folder / "migrations" / "0003_m.yaml"
    file.write_text(dedent(RESTORE), encoding="utf-8")

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(EngineError, match="Ctrl-C"):
        shop.project.apply(spark=shop.spark, on_event=once("when it runs", die))
    result = shop.project.apply(spark=shop.spark)
    with_new_names = [(i, "T1" if i == 1 else symbol, *rest) for i, symbol, *rest in ALL_BACK]
    assert shop.values("ticker") == with_new_names
    told = [n for n in result.notes if "brought back" in n]
    assert told == [
        f"0003: db.trades: brought back from {BEFORE}: 4 values of price, 4 values of at.venue",
    ]
    # Its tag reads with the values, and its undo leaves them in their files.
    tagged = "SELECT count(price) FROM @.trades VERSION AS OF 'icemigrate-shop-0003'"
    assert shop.sql(tagged) == [(4,)]
    assert "write.merge.mode" not in shop.table().properties
    shop.rollback(UndoOptions())
    assert "price" not in [f.name for f in shop.table().schema.fields]
    shop.project.apply(shop.project.plan(redo="0003"), spark=shop.spark)
    assert shop.values("ticker") == with_new_names


DEFAULTED = """
    tables:
      - name: db.by_row
        columns: &columns
          - {name: id, type: int, required: true}
          - {name: lot, type: int, required: true, default: 5}
          - {name: note, type: string, default: none}
          - {name: at, fields: [{name: zone, type: string}, {name: desk, type: int, default: 7}]}
        format_version: 3
      - {name: db.by_id, columns: *columns, format_version: 3, identifier: [id],
         properties: {write.merge.mode: copy-on-write, write.metadata.metrics.column.note: none}}
      - name: db.twice
        columns: [{name: id, type: int, required: true}, {name: lot, type: int}]
        identifier: [id]
"""
DROPPED = """
    allow: [destructive]
    tables:
      - {name: db.by_row, drop_columns: [lot, note, at.desk]}
      - {name: db.by_id, drop_columns: [lot, note, at.desk]}
      - {name: db.twice, drop_columns: [lot]}
"""
DEFAULTS_BACK = [
    (1, 1, "a", "UTC", 10),
    (2, 2, None, "CET", None),
    (3, 5, "none", None, None),  # no struct, and none comes to be
    (9, 5, "none", "NEW", 7),
]


def test_a_row_that_reads_a_default_gets_what_it_had_and_one_table_holds_up_no_other(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 2)
    shop.apply("0002", DEFAULTED)
    for name in ("by_row", "by_id"):
        shop.sql(
            f"INSERT INTO @.{name} VALUES (1, 1, 'a', named_struct('zone', 'UTC', 'desk', 10)), "
            "(2, 2, NULL, named_struct('zone', 'CET', 'desk', NULL)), (3, 5, 'none', NULL), (4, 4, 'd', NULL)"
        )
    shop.sql("INSERT INTO @.twice VALUES (1, 10), (1, 11)")
    shop.apply("0003", DROPPED)
    shop.sql("INSERT INTO @.by_row VALUES (9, named_struct('zone', 'NEW'))")
    shop.sql("INSERT INTO @.by_id VALUES (9, named_struct('zone', 'NEW'))")
    for name in ("by_row", "by_id", "twice"):
        rewrite = f"rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))"
        shop.sql(f"CALL {shop.catalog}.system.{rewrite}")
        shop.sql(f"DELETE FROM @.{name} WHERE id = 4")
    assert "rows whose files do not have lot read its default: 5" in shop.notes(UndoOptions())
    offered = (
        "up to 5 rows lost the value of lot when their files were rewritten and read its default 5 instead"
    )
    assert [n for n in shop.notes(UndoOptions()) if n.replace("4 rows", "5 rows").startswith(offered)]

    def write() -> None:
        shop.sql("UPDATE @.by_id SET lot = 50 WHERE id = 3")

    notes = shop.rollback(REFILL, on_event=once("db.by_id CREATE OR REPLACE", write))
    rows = "SELECT id, lot, note, at.zone, at.desk FROM @.{} ORDER BY id"
    assert shop.sql(rows.format("by_row")) == DEFAULTS_BACK
    written = [(3, 50, *row[2:]) if row[0] == 3 else row for row in DEFAULTS_BACK]
    assert shop.sql(rows.format("by_id")) == written
    told, kept = [n.removeprefix("0003: ") for n in notes], "icemigrate-shop-0003-before"
    stays = "it was written while the column existed"
    assert f"db.by_id: 1 row reads another value of lot than in {kept} and keeps it: {stays}" in told
    query = f"SELECT id, lot FROM {shop.catalog}.db.twice VERSION AS OF '{kept}'"
    untold = "no value of lot is restored: 2 rows have only 1 different identifier there"
    assert f"db.twice: {untold}; {kept} keeps them: {query}" in told


def test_a_row_that_was_written_by_an_expired_snapshot_keeps_its_value(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, 2, record="history")
    # The others are called as statements call what they ask.
    others = "".join(f", {{name: {name}, type: int}}" for name in "tnb")
    columns = f"[{{name: id, type: int}}, {{name: lot, type: int, default: 5}}{others}]"
    shop.apply("0002", f"tables: [{{name: db.by_row, columns: {columns}, format_version: 3}}]")
    for number in (1, 2):  # a file each
        shop.sql(f"INSERT INTO @.by_row VALUES ({number}, {number}, 0, 0, 0)")
    shop.sql("ALTER TABLE @.by_row CREATE TAG `icemigrate-shop-0002`")
    shop.sql("UPDATE @.by_row SET lot = 10 WHERE id = 1")
    shop.apply("0003", "{allow: [destructive], tables: [{name: db.by_row, drop_columns: [lot]}]}")
    shop.sql("UPDATE @.by_row SET n = 1 WHERE id = 2")
    now = "older_than => current_timestamp(), retain_last => 1"
    shop.sql(f"CALL {shop.catalog}.system.expire_snapshots(table => 'db.by_row', {now})")
    notes = shop.rollback(REFILL)
    # The file of the first holds the newer value; that of the second was written without the column.
    assert shop.sql("SELECT id, lot, n FROM @.by_row ORDER BY id") == [(1, 10, 0), (2, 2, 1)]
    (stays,) = [n for n in notes if "another value of lot" in n]
    assert "it was written while the column existed, or may have been: the snapshots" in stays
