from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.errors import ConflictError, Mistakes, UsageError
from icemigrate.planning.undo import UndoOptions
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.iceberg.types import Field

CREATE = """
    description: Make trades
    tables:
      - name: db.trades
        columns:
          - {name: id, type: int, required: true}
          - {name: symbol, type: string}
          - {name: price, type: "decimal(9,2)"}
          - {name: venue, type: string, required: true}
          - {name: at, type: timestamp}
        partition_by: [day(at) as day]
        sort_by: [at]
        format_version: FORMAT
"""


class Shop(OwnProject):
    """A shop that takes migrations back; see :class:`~tests.support.spark_project.OwnProject`."""

    def __init__(
        self, folder: Path, spark: SparkSession, format_version: int = 2, settings: str = ""
    ) -> None:
        super().__init__(folder, spark, "shop", "rollback", settings)
        self.file("0001", CREATE.replace("FORMAT", str(format_version)))
        self.project.apply(spark=spark)

    def file(self, version: str, text: str) -> None:
        (self.folder / "migrations" / f"{version}_m.yaml").write_text(dedent(text), encoding="utf-8")

    def apply(self, version: str, text: str) -> None:
        self.file(version, text)
        self.project.apply(spark=self.spark)

    def rollback(self, **choice: Any) -> tuple[str, ...]:
        return self.project.rollback(spark=self.spark, **choice).rolled_back

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(text.replace("@", f"{self.catalog}.db")).collect()]

    def insert(self, values: str, columns: str = "id, symbol, price, venue, at") -> None:
        self.sql(f"INSERT INTO @.trades ({columns}) VALUES {values}")

    def fields(self, table: str = "db.trades") -> tuple[Field, ...]:
        from icemigrate.iceberg.names import TableName

        found = self.engine.table(TableName.parse(table))
        assert found is not None
        return found.schema.fields

    def columns(self, table: str = "db.trades") -> list[str]:
        return [f"{f.name}#{f.id}" for f in self.fields(table)]

    def standing(self) -> dict[str, str]:
        return {e.version: e.standing for e in self.project.history().entries}


ROW_1 = "(1, 'AA', 1.25, 'X', TIMESTAMP '2026-01-01 10:00:00')"
ROW_2 = "(2, 'BB', 2.50, 'Y', TIMESTAMP '2026-01-02 10:00:00')"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


BAD = """
    description: A bad one
    allow: [destructive]
    tables:
      - name: db.trades
        renames: {symbol: ticker}
        drop_columns: [venue, price]
        columns: [{name: note, type: string}]
        partition_by: ["bucket(4, ticker) as b"]
        properties: {k: v}
"""


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_bad_migration_is_taken_back_with_its_columns_values_and_redone(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    shop = Shop(tmp_path, spark, format_version)
    shop.insert(f"{ROW_1}, {ROW_2}")
    before = shop.columns()
    shop.apply("0002", BAD)
    shop.insert("(3, 'CC', TIMESTAMP '2026-01-03 10:00:00', 'mine')", "id, ticker, at, note")
    shop.sql("ALTER TABLE @.trades ADD COLUMN theirs string")
    plan = shop.project.plan_rollback(spark=shop.spark).plan
    notes = [n for t in plan.migrations[0].tables for n in t.notes]
    assert "values of price, venue that are still in the files: 2 of 3 rows (66 %)" in notes
    assert shop.rollback() == ("0002",)
    assert shop.columns() == [*before, "theirs#7"]
    assert shop.sql("SELECT id, symbol, CAST(price AS string), venue FROM @.trades ORDER BY id") == [
        (1, "AA", "1.25", "X"),
        (2, "BB", "2.50", "Y"),
        (3, "CC", None, None),
    ]
    assert shop.standing() == {"0001": "applied", "0002": "held"}
    assert shop.project.plan().is_empty
    shop.insert("(4, 'DD', 4, 'Z', TIMESTAMP '2026-01-04 10:00:00')")
    # Mended: the price stays this time.
    shop.file("0002", BAD.replace("[venue, price]", "[venue]"))
    redo = shop.project.plan(redo="2")
    assert shop.project.apply(redo, spark=shop.spark).applied == ("0002",)
    assert shop.standing() == {"0001": "applied", "0002": "applied"}
    assert shop.columns() == ["id#1", "ticker#2", "price#3", "at#5", "note#6", "theirs#7"]
    assert shop.sql("SELECT id, ticker, note FROM @.trades ORDER BY id") == [
        (1, "AA", None),
        (2, "BB", None),
        (3, "CC", "mine"),
        (4, "DD", None),
    ]


def test_a_type_goes_back_only_while_no_file_was_added(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", "{tables: [{name: db.trades, columns: [{name: id, type: long}]}]}")
    shop.insert(ROW_2)
    with pytest.raises(Mistakes) as refused:
        shop.rollback()
    assert "1 data file was added since" in refused.value.diagnostics[0].message
    assert shop.sql("SELECT id FROM @.trades ORDER BY id") == [(1,), (2,)]
    assert shop.rollback(options=UndoOptions(partial=True)) == ("0002",)
    assert shop.sql("SELECT id FROM @.trades ORDER BY id") == [(1,), (2,)]


def test_a_type_goes_back_while_no_file_was_added(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", "{tables: [{name: db.trades, columns: [{name: id, type: long}]}]}")
    assert shop.rollback() == ("0002",)
    assert dict(shop.spark.table(f"{shop.catalog}.db.trades").dtypes)["id"] == "int"
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]


def test_a_decimal_goes_back_only_while_no_file_was_added(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", '{tables: [{name: db.trades, columns: [{name: price, type: "decimal(12,2)"}]}]}')
    assert shop.rollback() == ("0002",)
    assert shop.sql("SELECT CAST(price AS string) FROM @.trades") == [("1.25",)]
    shop.project.apply(shop.project.plan(redo="0002"), spark=shop.spark)
    shop.insert(ROW_2)
    with pytest.raises(Mistakes) as refused:
        shop.rollback()
    assert "1 data file was added since" in refused.value.diagnostics[0].message


def test_required_again_only_while_no_null_was_written(shop: Shop) -> None:
    optional = "{tables: [{name: db.trades, columns: [{name: venue, required: false}]}]}"
    shop.apply("0002", optional)
    shop.insert(ROW_1)
    assert shop.rollback() == ("0002",)
    shop.project.apply(shop.project.plan(redo="0002"), spark=shop.spark)
    shop.insert("(2, 'BB', 2, NULL, TIMESTAMP '2026-01-03 10:00:00')")
    with pytest.raises(Mistakes) as refused:
        shop.rollback()
    assert "`venue` (1 null) cannot be required again" in refused.value.diagnostics[0].message


def test_where_metrics_are_off_nulls_are_counted_in_the_rows_and_shares_are_unknown(shop: Shop) -> None:
    shop.sql("ALTER TABLE @.trades SET TBLPROPERTIES ('write.metadata.metrics.default'='none')")
    shop.insert(ROW_1)
    shop.apply(
        "0002",
        "{allow: [destructive], tables: [{name: db.trades, drop_columns: [symbol],"
        " columns: [{name: venue, required: false}, {name: id, required: false}]}]}",
    )
    shop.insert("(2, 2, 'X', TIMESTAMP '2026-01-03 10:00:00')", "id, price, venue, at")
    result = shop.project.plan_rollback(spark=shop.spark)
    assert result.ready
    notes = [n for t in result.plan.migrations[0].tables for n in t.notes]
    assert "values of symbol that are still in the files: 0 of 2 rows (0 %), unknown for 1" in notes
    # What is written to another branch counts too.
    shop.sql("ALTER TABLE @.trades CREATE BRANCH side")
    shop.insert("(3, 3, NULL, TIMESTAMP '2026-01-03 10:00:00')", "id, price, venue, at")
    shop.sql("INSERT INTO @.trades.branch_side (id, venue) VALUES (NULL, NULL), (NULL, 'Y')")
    result = shop.project.plan_rollback(spark=shop.spark)
    assert [d.message for d in result.diagnostics if d.code == "required-again"] == [
        "0002: `id` (2 nulls), `venue` (1 null) cannot be required again: "
        "nulls were written since, and Spark would read them as 0"
    ]


IN_S = """
  {name: s, fields: [
    {name: a b, type: int, required: ?},
    {name: l, required: ?, element: {required: ?, fields: [{name: x, type: int, required: ?}]}},
    {name: m, required: ?, key: string, value: {required: ?, fields: [{name: y, type: int, required: ?}]}}]}
"""
ALL_IN_S = ("s.`a b`", *(f"`s.{p}`" for p in ("l", "l.element", "l.element.x", "m", "m.value", "m.value.y")))


def test_nulls_of_wide_and_nested_tables_are_counted_in_one_pass_over_the_rows(shop: Shop) -> None:
    """Of a file's leaves beyond the first hundred there are no metrics, nor of what is in lists and maps."""
    wide = [f"c{i}" for i in range(120)]

    def declared(required: str) -> str:
        columns = [f"{{name: {c}, type: int, required: {required}}}" for c in wide]
        return f"tables: [{{name: db.wide, columns: [{', '.join(columns)}, {IN_S.replace('?', required)}]}}]"

    shop.apply("0002", declared("true"))
    shop.apply("0003", declared("false"))
    row = ", ".join("1" for _ in wide)
    whole = "named_struct('a b', 1, 'l', array(named_struct('x', 1)), 'm', map('k', named_struct('y', 1)))"
    # A struct that is null itself may be so before and after: nothing in it is missing.
    shop.sql(f"INSERT INTO @.wide VALUES ({row}, {whole}), ({row}, NULL)")
    assert shop.project.plan_rollback(spark=shop.spark).ready
    shop.sql(
        f"INSERT INTO @.wide VALUES ({row}, named_struct('a b', CAST(NULL AS INT), 'l', "
        "array(named_struct('x', CAST(NULL AS INT)), NULL), "
        "'m', map('k', named_struct('y', CAST(NULL AS INT)), 'n', NULL)))"
    )
    nulls = ", ".join("NULL" for _ in wide)
    shop.sql(f"INSERT INTO @.wide VALUES ({nulls}, named_struct('a b', 1, 'l', NULL, 'm', NULL))")
    (told,) = shop.project.plan_rollback(spark=shop.spark).diagnostics
    named = [*(f"`{c}` (1 null)" for c in wide), *(f"{p} (1 null)" for p in ALL_IN_S)]
    # A message of more than 2,000 characters lacks its middle.
    assert told.message.startswith(f"0003: {', '.join(named[:90])}, ")
    assert told.message.endswith(
        f", {', '.join(named[-20:])} cannot be required again: "
        "nulls were written since, and Spark would read them as 0"
    )
    shop.sql("DELETE FROM @.wide WHERE c0 IS NULL OR s IS NOT NULL AND s.`a b` IS NULL")
    assert shop.rollback() == ("0003",)


def test_expiry_that_removed_the_schema_does_not_matter(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", "{allow: [destructive], tables: [{name: db.trades, drop_columns: [venue, price]}]}")
    shop.insert("(2, 'BB', TIMESTAMP '2026-01-02 10:00:00')", "id, symbol, at")
    for tag in ("icemigrate-shop-0001", "icemigrate-shop-0002", "icemigrate-shop-0002-before"):
        shop.sql(f"ALTER TABLE @.trades DROP TAG IF EXISTS `{tag}`")
    shop.sql(
        f"CALL {shop.catalog}.system.expire_snapshots(table => 'db.trades',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1, clean_expired_metadata => true)"
    )
    assert shop.rollback() == ("0002",)
    assert shop.sql("SELECT id, venue FROM @.trades ORDER BY id") == [(1, "X"), (2, None)]
    shop.insert("(3, 'CC', 3, 'Z', TIMESTAMP '2026-01-05 10:00:00')")
    assert shop.sql("SELECT id, venue FROM @.trades ORDER BY id") == [(1, "X"), (2, None), (3, "Z")]


def test_tables_that_were_dropped_made_and_renamed_come_back(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply(
        "0002",
        """
        allow: [destructive]
        tables:
          - {name: db.trades, drop: true}
          - {name: db.quotes, columns: [{name: a, type: int}]}
        """,
    )
    shop.sql("INSERT INTO @.quotes VALUES (7)")
    assert shop.rollback() == ("0002",)
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]
    assert {t[1] for t in shop.sql(f"SHOW TABLES IN {shop.catalog}.db")} == {"trades"}
    shop.project.apply(shop.project.plan(redo="0002"), spark=shop.spark)
    assert shop.sql("SELECT a FROM @.quotes") == [(7,)]
    assert shop.rollback() == ("0002",)
    shop.apply("0003", "{tables: [{name: db.deals, renamed_from: db.trades, renames: {id: key}}]}")
    assert shop.rollback() == ("0003",)
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]


def test_one_alone_only_where_nothing_later_depends_on_it(shop: Shop) -> None:
    shop.apply("0002", "{tables: [{name: db.trades, columns: [{name: x, type: int}]}]}")
    shop.apply("0003", "{tables: [{name: db.trades, columns: [{name: y, type: int}]}]}")
    shop.apply("0004", "{tables: [{name: db.trades, columns: [{name: x, type: long}]}]}")
    with pytest.raises(ConflictError, match=r"0004 \(db.trades.x\)"):
        shop.rollback(only="0002")
    assert shop.rollback(only="3") == ("0003",)
    assert shop.columns() == ["id#1", "symbol#2", "price#3", "venue#4", "at#5", "x#6"]
    assert shop.rollback(to="0001") == ("0004", "0002")
    assert shop.columns() == ["id#1", "symbol#2", "price#3", "venue#4", "at#5"]
    assert shop.standing() == {"0001": "applied", "0002": "held", "0003": "held", "0004": "held"}
    with pytest.raises(UsageError, match="already rolled back"):
        shop.rollback(only="0003")


def test_a_plan_that_fits_no_more_is_not_carried_out(shop: Shop) -> None:
    from icemigrate.commands.rollback import rollback
    from icemigrate.errors import StalePlan
    from icemigrate.project import open_project

    shop.apply("0002", "{tables: [{name: db.trades, properties: {k: v}}]}")
    shown = shop.project.plan_rollback(spark=shop.spark).plan
    shop.sql("ALTER TABLE @.trades ADD COLUMN theirs string")
    with pytest.raises(StalePlan):
        rollback(open_project(shop.folder), shown, spark=shop.spark)
    assert shop.standing()["0002"] == "applied"


def test_a_migration_that_fails_on_its_way_is_undone(shop: Shop) -> None:
    from icemigrate.execution.failures import Undone

    shop.insert(ROW_1)
    shop.file(
        "0002",
        """
        tables:
          - {name: db.trades, columns: [{name: x, type: int}]}
          - {name: db.other, columns: [{name: a, type: int}], location: /proc/nowhere}
        """,
    )
    with pytest.raises(Undone):
        shop.project.apply(spark=shop.spark)
    assert shop.columns() == ["id#1", "symbol#2", "price#3", "venue#4", "at#5"]
    assert shop.standing() == {"0001": "applied"}


def test_what_was_there_before_the_migration_is_there_again(shop: Shop) -> None:
    shop.sql("ALTER TABLE @.trades ADD COLUMN note STRING")
    shop.sql("ALTER TABLE @.trades ALTER COLUMN id TYPE BIGINT")
    shop.sql("ALTER TABLE @.trades SET TBLPROPERTIES ('k' = 'theirs')")
    shop.insert("(3000000000, 'AA', 'kept', 'X')", "id, symbol, note, venue")
    shop.file(
        "0002",
        """
        allow: [destructive]
        tables:
          - name: db.trades
            columns: [{name: note, type: string}, {name: size, type: long}]
            properties: {k: ours}
            drop_columns: [symbol]
        """,
    )
    plan = shop.project.plan(overwrite=["db.trades:properties.k"])
    shop.project.apply(plan, spark=shop.spark)
    shop.insert("(4000000000, 'new', 'Y', 7)", "id, note, venue, size")
    assert shop.rollback() == ("0002",)
    assert shop.columns() == ["id#1", "symbol#2", "price#3", "venue#4", "at#5", "note#6"]
    assert shop.sql("SELECT id, symbol, note FROM @.trades ORDER BY id") == [
        (3000000000, "AA", "kept"),
        (4000000000, None, "new"),
    ]
    assert ("k", "theirs") in shop.sql("SHOW TBLPROPERTIES @.trades")


def test_format_version_1_keeps_a_column_that_it_was_partitioned_by(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, format_version=1)
    shop.apply(
        "0002",
        """
        tables:
          - name: db.trades
            columns: [{name: note, type: string}, {name: size, type: int}]
            partition_by: [day(at) as day, note]
        """,
    )
    shop.insert("(1, 'X', 'kept', 7)", "id, venue, note, size")
    assert shop.rollback() == ("0002",)
    assert shop.columns() == ["id#1", "symbol#2", "price#3", "venue#4", "at#5", "note#6"]
    shop.insert(ROW_2)
    assert shop.sql("SELECT id, note FROM @.trades ORDER BY id") == [(1, "kept"), (2, None)]
    shop.project.apply(shop.project.plan(redo="0002"), spark=shop.spark)
    assert shop.sql("SELECT id, note, size FROM @.trades ORDER BY id") == [(1, "kept", 7), (2, None, None)]
