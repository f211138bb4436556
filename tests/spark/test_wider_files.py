"""A column does not come back under a type that is narrower than what its files were written under."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

APPLY = ("apply", "--auto-approve")
REFUSED = "`age` cannot be restored as `int`: 1 data file was written under `long`"
AGE = "tables: [{name: db.trades, columns: [{name: age, type: TYPE}]}]"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    made = Desk(tmp_path, spark)
    made.file("0001", "tables: [{name: db.trades, columns: [{name: id, type: long}]}]")
    made.file("0002", AGE.replace("TYPE", "int"))
    return made


def refuse(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == ExitCode.FINDINGS, words
    told = "".join(capsys.readouterr())
    assert "[narrow-type]" in told
    return told


def test_a_redo_does_not_bring_back_a_type_that_its_files_are_wider_than(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0003", AGE.replace("TYPE", "long"))
    desk.run(*APPLY)
    desk.insert("(1, 36)")
    desk.run("rollback", "--partial", "--auto-approve")
    desk.run("rollback", "--to", "1", "--auto-approve")
    told = refuse(capsys, *APPLY, "--redo", "2")
    assert REFUSED in told
    assert "write `long` as the type of `age` in the file of 0002" in told
    desk.file("0002", AGE.replace("TYPE", "long"))
    desk.run(*APPLY, "--redo", "2")
    assert desk.rows("id, age") == [(1, 36)]
    desk.run(*APPLY, "--redo", "3")
    desk.run("check", "--fix")
    assert desk.rows("id, age") == [(1, 36)]


def test_a_wider_type_that_nothing_was_written_under_is_no_reason_to_refuse_a_redo(desk: Desk) -> None:
    desk.file("0003", AGE.replace("TYPE", "long"))
    desk.run(*APPLY, "--to", "2")
    desk.insert("(1, 36)")
    desk.run(*APPLY)
    desk.run("rollback", "--to", "1", "--auto-approve")
    desk.run(*APPLY, "--redo", "2")
    assert desk.rows("id, age") == [(1, 36)]


def test_what_another_client_widened_and_dropped_comes_back_as_wide(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.run(*APPLY)
    desk.spark.sql(f"ALTER TABLE {desk.table} ALTER COLUMN age TYPE bigint")
    desk.insert("(1, 36)")
    desk.spark.sql(f"ALTER TABLE {desk.table} DROP COLUMN age")
    assert REFUSED in refuse(capsys, *APPLY, "--reconcile")
    desk.run("drift", "--accept")
    desk.run(*APPLY)
    desk.file("0004", "tables: [{name: db.trades, restore_columns: [age]}]")
    told = refuse(capsys, *APPLY)
    assert "write `columns: [{name: age, type: long}]` beside it" in told
    both = "restore_columns: [age], columns: [{name: age, type: long}]"
    desk.file("0004", f"tables: [{{name: db.trades, {both}}}]")
    desk.run(*APPLY)
    assert desk.rows("id, age") == [(1, 36)]


def test_a_rollback_brings_a_column_back_as_wide_as_another_client_had_made_it(desk: Desk) -> None:
    desk.run(*APPLY)
    desk.spark.sql(f"ALTER TABLE {desk.table} ALTER COLUMN age TYPE bigint")
    desk.insert("(1, 36)")
    desk.file("0003", "{allow: [destructive], tables: [{name: db.trades, drop_columns: [age]}]}")
    desk.run(*APPLY)
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, age") == [(1, 36)]
