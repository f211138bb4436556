"""Tables that exchange their names on a real catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "columns: [{name: id, type: int}]"
MAKE = f"tables: [{{name: db.a, {ID}}}, {{name: db.b, {ID}}}]"
SWAP = (
    "tables: [{name: db.a, renamed_from: db.b, columns: [{name: note, type: string}]}, "
    "{name: db.b, renamed_from: db.a}]"
)
ASIDE = "icemigrate_aside__b__swap__0002"


class _Swap(OwnProject):
    def write(self, name: str, text: str) -> None:
        (self.folder / "migrations" / name).write_text(text, encoding="utf-8")

    def ids(self, table: str) -> list[int]:
        return [row[0] for row in self.spark.sql(f"SELECT id FROM {self.catalog}.db.{table}").collect()]

    def tables(self) -> set[str]:
        return {row["tableName"] for row in self.spark.sql(f"SHOW TABLES IN {self.catalog}.db").collect()}

    def rename(self, old: str, new: str) -> None:
        self.spark.sql(f"ALTER TABLE {self.catalog}.db.{old} RENAME TO db.{new}")


@pytest.mark.parametrize("publish", ["atomic", "direct"])
def test_names_are_exchanged_undone_and_exchanged_after_a_failure(
    tmp_path: Path, spark: SparkSession, publish: str
) -> None:
    swap = _Swap(tmp_path, spark, "swap", "swap", f", publish: {publish}")
    swap.write("0001_make.yaml", MAKE)
    swap.project.apply(spark=swap.spark)
    for table, row in (("a", 1), ("b", 2)):
        swap.spark.sql(f"INSERT INTO {swap.catalog}.db.{table} VALUES ({row})")
    swap.write("0002_swap.yaml", SWAP)
    swap.project.apply(spark=swap.spark)
    assert (swap.ids("a"), swap.ids("b"), swap.tables()) == ([2], [1], {"a", "b"})
    assert swap.project.drift().tables == ()
    swap.project.rollback(spark=swap.spark)
    assert (swap.ids("a"), swap.ids("b"), swap.tables()) == ([1], [2], {"a", "b"})
    assert swap.project.drift().tables == ()
    # As a process leaves them that dies between the renames.
    swap.rename("b", ASIDE)
    swap.rename("a", "b")
    apply(swap.opened, plan(swap.opened, redo="0002").plan, spark=swap.spark)
    assert (swap.ids("a"), swap.ids("b"), swap.tables()) == ([2], [1], {"a", "b"})
