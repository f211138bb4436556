"""What a reader of another branch sees when a migration changes the rows of main, by the command line."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = """
    allow: [destructive, incompatible]
    tables:
      - name: db.trades
"""
RETYPE = """
        retype: {price: {to: "decimal(12,2)", using: "cast(price as decimal(12,2))"}}
"""


class Branched(Desk):
    """A table with two branches made by hand: main has come by `old`, and `other` went its own way."""

    def entry(self, version: str, text: str) -> None:
        self.file(version, HEAD + text)

    def branched(self, columns: str, *rows: str, properties: str = "{}") -> Branched:
        """The first row is on both branches, the second on `other` alone, the third on main alone."""
        self.entry("0001", f"\n        columns: {columns}\n        properties: {properties}")
        self.run("apply", "--auto-approve")
        first, second, third = rows
        self.insert(first)
        for name in ("old", "other"):
            self.spark.sql(f"ALTER TABLE {self.table} CREATE BRANCH {name}")
        self.spark.sql(f"INSERT INTO {self.table}.branch_other VALUES {second}")
        self.insert(third)
        return self

    def branches(self) -> list[list[tuple[Any, ...]]]:
        """All columns and rows of both."""
        self.spark.sql(f"REFRESH TABLE {self.table}")
        rows = (
            self.spark.sql(f"SELECT * FROM {self.table}.branch_{n} ORDER BY id") for n in ("old", "other")
        )
        return [[tuple(row) for row in of.collect()] for of in rows]

    def told(self, rule: str) -> dict[str, str]:
        """The hints of a rule by the branch that they are about."""
        found = [d for d in self.project.plan().diagnostics if d.code == rule]
        return {re.findall(r"branch(?:es)? `(\w+)`", d.message)[0]: d.hint or "" for d in found}

    def bring_over(self, hint: str) -> None:
        """Do what a hint says."""
        for statement in hint.partition(": ")[2].partition("; or ")[0].split("; "):
            self.spark.sql(statement)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Branched:
    monkeypatch.chdir(tmp_path)
    return Branched(tmp_path, spark)


def test_a_retyped_column_reads_null_on_a_branch_until_its_values_are_brought_over(
    desk: Branched, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.branched("[{name: id, type: long}, {name: price, type: double}]", "(1, 1.5)", "(2, 2.5)", "(3, 3.5)")
    desk.entry("0002", RETYPE)
    told = desk.told("rows-left-on-branch")
    assert {name: "fast_forward" in hint for name, hint in told.items()} == {"old": True, "other": False}
    desk.run("apply", "--auto-approve")
    assert desk.branches() == [[(1, None)], [(1, None), (2, None)]]
    desk.run("rollback", "--auto-approve")
    assert desk.branches() == [[(1, 1.5)], [(1, 1.5), (2, 2.5)]]
    desk.run("apply", "--redo", "0002", "--auto-approve")
    for hint in told.values():
        desk.bring_over(hint)
    assert desk.branches() == [[(1, Decimal("1.50"))], [(1, Decimal("1.50")), (2, Decimal("2.50"))]]
    capsys.readouterr()
    desk.run("rollback", "--auto-approve")
    assert "branch `other` (2 rows) was written to without price" in capsys.readouterr().out
    assert desk.branches() == [[(1, None)], [(1, None), (2, None)]]


def test_a_branch_is_kept_readable_when_a_required_column_is_retyped(
    desk: Branched, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "[{name: id, type: long}, {name: price, type: double, required: true}]"
    desk.branched(columns, "(1, 1.5)", "(2, 2.5)", "(3, 3.5)")
    (before,) = desk.spark.sql(f"SELECT snapshot_id FROM {desk.table}.refs WHERE name = 'old'").collect()
    desk.entry("0002", RETYPE)
    assert main(["apply", "--auto-approve"]) == ExitCode.FINDINGS
    shown = capsys.readouterr().out
    assert "branches `old` (1 row), `other` (2 rows), which would become unreadable" in shown
    assert desk.branches() == [[(1, 1.5)], [(1, 1.5), (2, 2.5)]]
    desk.entry("0002", f"{RETYPE}        columns: [{{name: price, required: false}}]")
    told = desk.told("rows-left-on-branch")
    desk.run("apply", "--auto-approve")
    desk.entry("0003", "        columns: [{name: price, required: true}]")
    assert desk.told("branch-lacks-required").keys() == {"old"}
    desk.spark.sql(f"CALL {desk.catalog}.system.fast_forward('db.trades', 'old', 'main')")
    desk.bring_over(told["other"])
    desk.run("apply", "--auto-approve")
    one, two, three = (Decimal(text) for text in ("1.50", "2.50", "3.50"))
    assert desk.branches() == [[(1, one), (3, three)], [(1, one), (2, two)]]
    # What is refused: a branch of the rows as they were before.
    desk.spark.sql(f"ALTER TABLE {desk.table} CREATE BRANCH late AS OF VERSION {before[0]}")
    with pytest.raises(Exception, match="Missing required field: price"):
        desk.rows("*", ".branch_late")


def test_a_column_is_filled_before_it_is_required(desk: Branched) -> None:
    desk.branched("[{name: id, type: long}, {name: n, type: int}]", "(1, 1)", "(2, null)", "(3, null)")
    desk.spark.sql(f"ALTER TABLE {desk.table} DROP BRANCH other")
    desk.spark.sql(f"ALTER TABLE {desk.table} DROP BRANCH old")
    desk.entry(
        "0002",
        """
        columns: [{name: key, type: long, required: true}, {name: n, required: true}]
        identifier: [key]
        backfill: [{set: {key: id * 10, n: "coalesce(n, -1)"}}]
        """,
    )
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, n, key") == [(1, 1, 10), (3, -1, 30)]
    assert desk.project.plan().is_empty
    desk.run("rollback", "--auto-approve")
    assert desk.rows("*") == [(1, 1), (3, None)]


def test_older_files_of_a_branch_that_was_written_to_are_looked_at(desk: Branched) -> None:
    columns, properties = (
        "[{name: id, type: long}, {name: n, type: int}]",
        "{write.update.mode: merge-on-read}",
    )
    desk.branched(columns, "(1, 1)", "(2, 2)", "(3, 3)", properties=properties)
    desk.entry("0002", "        columns: [{name: c, type: long}]")
    desk.run("apply", "--auto-approve")
    desk.spark.sql(f"INSERT OVERWRITE {desk.table} SELECT id, n, id * 10 FROM {desk.table}")
    desk.spark.sql(f"UPDATE {desk.table}.branch_other SET c = id * 10")
    desk.spark.sql(f"INSERT INTO {desk.table}.branch_old VALUES (4, null, 40)")
    desk.entry("0003", "        columns: [{name: c, required: true}, {name: n, required: true}]")
    lacking = desk.told("branch-lacks-required")
    assert lacking.keys() == {"old", "other"}
    assert desk.told("branch-holds-nulls").keys() == {"old"}
    for hint in lacking.values():
        sql = hint.partition(": ")[2].partition("; or ")[0].replace("…", "coalesce(c, id * 10)")
        desk.spark.sql(sql.replace("* EXCEPT (c)", "id, coalesce(n, 0) AS n"))
    assert desk.branches() == [[(1, 1, 10), (4, 0, 40)], [(1, 1, 10), (2, 2, 20)]]
    assert desk.project.plan().ready
