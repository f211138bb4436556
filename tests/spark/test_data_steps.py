"""Data steps on real tables, by the command line: written on a branch, asked there, published, undone."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = count(1)

CREATE = """
    tables:
      - name: db.trades
        format_version: FORMAT
        properties: {write.update.mode: MODE}
        columns:
          - {name: id, type: long}
          - {name: venue, type: string}
          - {name: price, type: double}
          - {name: legs, type: "struct<side: string, size: int>"}
"""


class Desk:
    """A project on a catalog of its own, in the suite's JVM.

    :param settings: further keys of its environment, as YAML's flow style has them.
    """

    def __init__(self, folder: Path, first: SparkSession, settings: str = "") -> None:
        from icemigrate import Project
        from icemigrate.app.opening import open_project
        from icemigrate.app.spark import open_engine
        from icemigrate.project import choose_environment

        self.folder = folder
        self.catalog = f"steps{next(_numbers)}"
        (folder / "migrations").mkdir()
        (folder / "icemigrate.yaml").write_text(
            "project: desk\nenvironments:\n"
            f"  local: {{catalog: {{type: sqlite, name: {self.catalog}}}{settings}}}\n",
            encoding="utf-8",
        )
        self.project = Project(folder)
        self.engine = open_engine(choose_environment(open_project(folder), None, {}), first)

    @property
    def spark(self) -> SparkSession:
        return self.engine.session

    @property
    def table(self) -> str:
        return f"{self.catalog}.db.trades"

    def file(self, version: str, text: str) -> None:
        (self.folder / "migrations" / f"{version}_step.yaml").write_text(dedent(text), encoding="utf-8")

    def created(self, format_version: int = 2, mode: str = "copy-on-write") -> Desk:
        self.file("0001", CREATE.replace("FORMAT", str(format_version)).replace("MODE", mode))
        self.run("apply", "--auto-approve")
        self.insert("(1, 'xnys', 10.5, named_struct('side', 'buy', 'size', 1))")
        self.insert("(2, null, 20.5, named_struct('side', 'sell', 'size', 2))")
        return self

    def insert(self, values: str) -> None:
        self.spark.sql(f"INSERT INTO {self.table} VALUES {values}")

    def run(self, *words: str) -> None:
        assert main([*words]) == ExitCode.OK, words

    def rows(self, columns: str = "id, venue", at: str = "") -> list[tuple[Any, ...]]:
        self.spark.sql(f"REFRESH TABLE {self.table}")
        return [
            tuple(r) for r in self.spark.sql(f"SELECT {columns} FROM {self.table}{at} ORDER BY id").collect()
        ]

    def refs(self) -> set[str]:
        return {r[0] for r in self.spark.sql(f"SELECT name FROM {self.table}.refs").collect()}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, spark)


FILL = """
    tables:
      - name: db.trades
        renames: {venue: market}
        columns: [{name: cents, type: long}]
        drop_columns: [price]
        backfill:
          - set: {cents: cast(round(price * 100) as bigint), legs.side: upper(legs.side)}
          - {set: {market: "'none'"}, where: market is null}
        checks:
          - {name: one is missing, before: "select count(*) from {table} where venue is null", gives: 1}
          - {after: "select market, cents from {table}", gives: [[xnys, 1050], [none, 2050]]}
          - name: no row is lost
            after: select (select count(*) from {table}) - (select count(*) from {before})
            gives: 0
          - {name: every market is known, after: "select id from {table} where market is null"}
    allow: [destructive]
"""


@pytest.mark.parametrize(
    ("format_version", "mode"),
    [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")],
)
def test_rows_are_filled_asked_about_and_published(desk: Desk, format_version: int, mode: str) -> None:
    desk.created(format_version, mode)
    desk.file("0002", FILL)
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, market, cents, legs.side") == [(1, "xnys", 1050, "BUY"), (2, "none", 2050, "SELL")]
    assert desk.refs() == {"main", "icemigrate-0001", "icemigrate-0002", "icemigrate-0002-before"}
    assert desk.rows(at=" VERSION AS OF 'icemigrate-0002-before'") == [(1, "xnys"), (2, None)]
    assert "price" not in desk.spark.table(desk.table).columns
    assert desk.project.plan().is_empty
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, venue, price, legs.side") == [(1, "xnys", 10.5, "buy"), (2, None, 20.5, "sell")]
