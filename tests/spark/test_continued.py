"""A run that continues an interrupted one does what that one was asked for, and every command reports it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.cli import main
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.errors import ExitCode
from icemigrate.events import (
    Event,
    MigrationStarted,
    StatementFinished,
    StatementStarted,
    TablePublished,
    TablePublishing,
)
from icemigrate.execution.environment_session import open_environment
from icemigrate.planning.undo import DEFAULT_UNDO_OPTIONS, UndoOptions
from tests.spark.test_data_steps import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
    tables:
      - name: db.trades
        identifier: [id]
        columns:
          - {name: id, type: long, required: true}
          - {name: n, type: int}
"""
RETYPE = """
    allow: [destructive]
    tables:
      - {name: db.trades, retype: {n: {to: string, using: cast(n as string)}}}
"""
RENAME = """
    tables:
      - {name: db.deals, renamed_from: db.trades, renames: {n: size}, columns: [{name: venue, type: string}]}
"""
DROP = "{allow: [destructive], tables: [{name: db.trades, drop_columns: [n]}]}"


class Killed(BaseException):
    """The process ends here: nothing of it runs any more."""


def kill_at(kind: type[Event]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if isinstance(event, kind):
            raise Killed

    return listen


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Desk:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, spark)
    desk.file("0001", CREATE)
    desk.run("apply", "--auto-approve")
    desk.insert("(1, 10), (2, 20)")
    return desk


def apply_until(desk: Desk, kind: type[Event], **asked: Any) -> None:
    made = plan(desk.opened, **asked).plan
    with pytest.raises(Killed):
        apply(desk.opened, made, spark=desk.spark, on_event=kill_at(kind))


def roll_back_until(desk: Desk, kind: type[Event], options: UndoOptions = DEFAULT_UNDO_OPTIONS) -> None:
    made = plan_rollback(desk.opened, options=options, spark=desk.spark).plan
    with pytest.raises(Killed):
        rollback(desk.opened, made, options=options, spark=desk.spark, on_event=kill_at(kind))


@pytest.mark.parametrize("again", [[], ["--redo", "0002"]])
def test_a_redo_that_dies_is_continued_as_a_redo(
    desk: Desk, again: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", RETYPE)
    desk.run("apply", "--auto-approve")
    desk.insert("(3, 'precious')")
    desk.run("rollback", "--auto-approve")
    apply_until(desk, TablePublished, redo="0002")
    assert main(["plan"]) == ExitCode.OK
    assert "0002 was interrupted (apply --redo 0002 by" in "".join(capsys.readouterr())
    desk.run("apply", *again, "--auto-approve")
    assert desk.rows("id, n") == [(1, "10"), (2, "20"), (3, "precious")]


def test_a_restored_column_that_was_being_filled_keeps_its_values_where_it_dies(desk: Desk) -> None:
    desk.file("0002", DROP)
    desk.run("apply", "--auto-approve")
    desk.insert("(3)")
    fill = "backfill: [{set: {n: 7}, where: n is null}]"
    desk.file("0003", f"{{tables: [{{name: db.trades, restore_columns: [n], {fill}}}]}}")
    apply_until(desk, StatementStarted)
    desk.run("apply", "--auto-approve")
    assert desk.rows("id, n") == [(1, 10), (2, 20), (3, 7)]
    with open_environment(desk.opened, None) as world:
        history = world.history()
        record = history.undo_record(history.applied[-1].version)
    assert record is not None
    assert record.tables[0].rows_changed, "its undo is one of rows, as that of a run that did not die"
    desk.run("rollback", "--auto-approve")
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, n") == [(1, 10), (2, 20), (3, None)]


def test_a_rollback_that_dies_before_it_does_anything_is_continued_with_its_options(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", DROP)
    desk.run("apply", "--auto-approve")
    desk.spark.sql(f"INSERT OVERWRITE {desk.table} SELECT * FROM {desk.table}")
    asked = UndoOptions(refill=True, metadata_only=True)
    roll_back_until(desk, MigrationStarted, asked)
    roll_back_until(desk, StatementStarted, asked)
    assert main(["rollback", "--discard-new-data", "--auto-approve"]) == ExitCode.USAGE
    told = "".join(capsys.readouterr())
    assert "`--discard-new-data` contradicts `--metadata-only`" in told
    assert "omit `--discard-new-data`: the rollback is continued with `--metadata-only`" in told
    ended = plan_rollback(desk.opened, options=UndoOptions(refill=False), spark=desk.spark)
    assert "with `--metadata-only`" in str(ended.diagnostics), "a refill can be ended"
    desk.run("rollback", "--auto-approve")
    assert "this run continues it, with `--metadata-only`, `--refill`" in "".join(capsys.readouterr())
    assert desk.rows("id, n") == [(1, 10), (2, 20)]


@pytest.mark.parametrize("kind", [MigrationStarted, StatementStarted, StatementFinished])
@pytest.mark.parametrize("options", [DEFAULT_UNDO_OPTIONS, UndoOptions(partial=True)])
def test_a_rollback_of_an_interrupted_apply_that_is_interrupted_too_undoes_all_of_it(
    desk: Desk, kind: type[Event], options: UndoOptions
) -> None:
    desk.file("0002", RENAME)
    apply_until(desk, TablePublished)
    roll_back_until(desk, kind, options)
    roll_back_until(desk, MigrationStarted, options)
    desk.run("rollback", "--auto-approve")
    assert desk.rows("id, n") == [(1, 10), (2, 20)]
    assert desk.spark.table(desk.table).columns == ["id", "n"]
    assert [row.tableName for row in desk.spark.sql(f"SHOW TABLES IN {desk.catalog}.db").collect()] == [
        "trades"
    ]


def test_what_an_apply_was_to_overwrite_is_overwritten_by_the_run_that_continues_it(desk: Desk) -> None:
    desk.file("0002", "{tables: [{name: db.trades, properties: {k: ours}}]}")
    desk.spark.sql(f"ALTER TABLE {desk.table} SET TBLPROPERTIES ('k' = 'theirs')")
    assert main(["plan"]) == ExitCode.CONFLICT
    apply_until(desk, TablePublishing, overwrite=["db.trades:properties.k"])
    desk.run("apply", "--auto-approve")
    assert desk.spark.sql(f"SHOW TBLPROPERTIES {desk.table} ('k')").collect()[0][1] == "ours"


def test_every_command_reports_a_rollback_that_was_interrupted(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.file("0002", DROP)
    desk.run("apply", "--auto-approve")
    roll_back_until(desk, StatementFinished)
    desk.file("0003", "{tables: [{name: db.other, columns: [{name: id, type: int}]}]}")
    for words in (
        ["plan"],
        ["plan", "--detailed-exitcode"],
        ["plan", "--reconcile"],
        ["apply", "--auto-approve"],
        ["apply", "--auto-approve", "--reconcile"],
        ["status"],
        ["drift"],
        ["maintain", "--dry-run"],
    ):
        capsys.readouterr()
        assert main(words) == ExitCode.CONFLICT, words
        told = "".join(capsys.readouterr())
        assert "0002" in told, words
        assert "nterrupted" in told, words
        assert "every migration file is applied" not in told, words
        assert "bug" not in told, words
    for words in (["plan"], ["drift"], ["maintain", "--dry-run"]):
        assert main([*words, "--format", "json"]) == ExitCode.CONFLICT
        told = json.loads(capsys.readouterr().out)
        assert "0002" in str(told.get("unfinished", told.get("interrupted")))
    assert main(["apply", "--redo", "0002", "--auto-approve"]) == ExitCode.USAGE
    assert "`icemigrate rollback` finishes it, then `icemigrate apply --redo 0002`" in capsys.readouterr().err
    desk.run("rollback", "--auto-approve")
    desk.run("apply", "--auto-approve")
    desk.run("status")
