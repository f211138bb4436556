"""Columns that come back and are filled, on real tables: what readers wrote to them is not lost unasked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
    tables:
      - name: db.trades
        columns:
          - {name: id, type: long}
          - {name: zip, type: int}
          - {name: region, type: string}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark)
    desk.file("0001", CREATE)
    desk.run("apply", "--auto-approve")
    desk.insert("(1, 501, 'eu'), (2, 10115, 'us')")
    return desk


FILL = """
    tables:
      - name: db.trades
        columns: [{name: currency, type: string}]
        backfill: [{set: {currency: "'EUR'"}WHERE}]
"""
RETYPE = """
    allow: [destructive]
    tables:
      - name: db.trades
        retype: {zip: {to: string, using: "lpad(cast(zip as string), 5, '0')"}}
"""


def test_what_was_written_before_a_rollback_is_there_after_the_redo(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", FILL.replace("WHERE", ""))
    desk.file("0003", RETYPE)
    desk.run("apply", "--auto-approve")
    desk.insert("(4, '04001', 'us', 'USD')")
    desk.run("rollback", "--only", "0003", "--auto-approve")
    desk.run("rollback", "--only", "0002", "--auto-approve")
    desk.insert("(5, 33, 'us')")

    assert main(["apply", "--redo", "0002", "--auto-approve"]) == ExitCode.FINDINGS
    told = "".join(capsys.readouterr())
    assert "overwrites restored values of currency; add the condition" in told
    desk.file("0002", FILL.replace("WHERE", ", where: currency is null"))
    desk.run("apply", "--redo", "0002", "--auto-approve")
    filled = [(1, "EUR"), (2, "EUR"), (4, "USD"), (5, "EUR")]
    assert desk.rows("id, currency") == filled
    desk.run("apply", "--redo", "0003", "--auto-approve")
    assert desk.rows("id, zip") == [(1, "00501"), (2, "10115"), (4, "04001"), (5, "00033")]

    # With the consent all is overwritten, and the undo goes back to the rows from before.
    desk.run("rollback", "--to", "0001", "--auto-approve")
    desk.file("0002", "    allow: [destructive]" + FILL.replace("WHERE", ""))
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert {currency for _, currency in desk.rows("id, currency")} == {"EUR"}
    desk.run("rollback", "--auto-approve")
    desk.file("0002", FILL.replace("WHERE", ", where: currency is null"))
    desk.run("apply", "--redo", "0002", "--auto-approve")
    assert desk.rows("id, currency") == filled


def test_a_restored_column_that_was_filled_goes_back_to_its_values(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", "{allow: [destructive], tables: [{name: db.trades, drop_columns: [region]}]}")
    restore = "tables: [{name: db.trades, restore_columns: [region], backfill: [{set: {region: \"'XX'\"}}]}]"
    desk.file("0003", f"{{{restore}}}")
    desk.run("apply", "--auto-approve", "--to", "0002")
    desk.insert("(3, 33)")
    assert main(["check"]) == ExitCode.FINDINGS
    assert "overwrites restored values of region" in "".join(capsys.readouterr())
    desk.file("0003", f"{{allow: [destructive], {restore}}}")
    desk.run("plan")
    told = "".join(capsys.readouterr())
    assert "note: values of region that are still in the files: 2 of 3 rows (66 %)" in told
    assert "`{name: region, refill: true}` restores the values that a tag or a snapshot still has" in told
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, region") == [(1, "XX"), (2, "XX"), (3, "XX")]
    desk.run("rollback", "--auto-approve")
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, region") == [(1, "eu"), (2, "us"), (3, None)]


def test_a_row_that_reads_the_old_columns_default_keeps_what_was_written_to_the_new_one(desk: Desk) -> None:
    lot = "format_version: 3, columns: [{name: lot, type: int, default: 5}]"
    desk.file("0002", f"{{allow: [irreversible], tables: [{{name: db.trades, {lot}}}]}}")
    retype = "retype: {lot: {to: string, using: \"concat('L', lot)\"}}, columns: [{name: lot, default: null}]"
    desk.file("0003", f"{{allow: [destructive], tables: [{{name: db.trades, {retype}}}]}}")
    desk.run("apply", "--auto-approve", "--to", "0002")
    desk.insert("(3, 33, 'us', 7)")
    desk.run("apply", "--auto-approve")
    desk.insert("(4, 44, 'us', 'mine')")
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, lot") == [(1, 5), (2, 5), (3, 7), (4, 5)]
    desk.insert("(5, 55, 'us', 5)")
    desk.run("apply", "--redo", "0003", "--auto-approve")
    assert desk.rows("id, lot") == [(1, "L5"), (2, "L5"), (3, "L7"), (4, "mine"), (5, "L5")]
