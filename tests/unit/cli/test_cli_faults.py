"""Whatever is wrong with the world, a command says it once, ends with the right code, and changes nothing."""

from __future__ import annotations

import errno
import io
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import pytest

from icemigrate.catalog import sqlite_reader
from icemigrate.cli import main
from icemigrate.cli.approval import ApprovalPrompt
from icemigrate.commands import apply, rollback, status
from icemigrate.errors import EngineError, ExitCode, IcemigrateError
from icemigrate.execution.failures import Interrupted
from icemigrate.execution.spark_start import LazySpark
from icemigrate.iceberg.names import TableName
from icemigrate.render.status_text import rollback_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.results.command_results import RollbackResult
from icemigrate.results.status_results import LockStatus, UnlockResult
from tests.support.embedded_project import HISTORY, Embedded

FIRST = """
tables:
  - name: shop.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: amount, type: int}
    properties: {owner.team: sales}
"""
SECOND = """
tables:
  - name: shop.orders
    columns: [{name: amount, type: long}]
    properties: {owner.team: finance}
"""
ORDERS = TableName(("shop",), "orders")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project with one applied migration and one pending."""
    monkeypatch.chdir(tmp_path)
    made = Embedded(tmp_path)
    made.write("0001_create.yaml", FIRST)
    made.apply()
    made.write("0002_evolve.yaml", SECOND)
    return made


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = main(list(args))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "bug in icemigrate" not in err
    return code, out, err


def test_the_project_itself_is_fine(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "plan", "--detailed-exitcode")
    assert (code, err) == (ExitCode.CHANGES, "")
    assert "amount int → long" in out


def test_broken_yaml(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("0003_broken.yaml", "tables:\n  - name: [shop\n")
    for command in ("check", "plan", "status"):
        code, out, err = told(capsys, command)
        assert code == ExitCode.FINDINGS
        assert "migrations/0003_broken.yaml:" in out + err


def test_unknown_keys_of_all_files_are_told_at_once(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("0003_a.yaml", "tables:\n  - name: shop.orders\n    colums: []\n")
    project.write("0004_b.yaml", "tabels: []\n")
    code, out, _ = told(capsys, "check")
    assert code == ExitCode.FINDINGS
    assert "migrations/0003_a.yaml:3:5: error:" in out
    assert "did you mean `columns`?" in out
    assert "migrations/0004_b.yaml:1:1: error:" in out
    assert "did you mean `tables`?" in out


def test_a_folder_that_cannot_be_read(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.folder / "migrations"
    if os.geteuid() == 0:  # whom no mode keeps out
        refuse_listing(folder, monkeypatch)
    else:
        folder.chmod(0)
    code, _, err = told(capsys, "check")
    folder.chmod(0o755)
    assert code == ExitCode.ERROR
    assert err == "error: the migrations folder `migrations` cannot be read: permission denied\n"


def refuse_listing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = os.listdir

    def refused(listed: Path) -> list[str]:
        if listed == folder.resolve():
            raise PermissionError(13, "Permission denied")
        return listing(listed)

    monkeypatch.setattr(os, "listdir", refused)


def test_a_locked_database(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_reader.SqliteCatalog.__init__, "__defaults__", (0.0,))
    with closing(sqlite3.connect(project.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        code, out, err = told(capsys, "plan")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "is locked by another process" in err


def test_a_table_that_vanished(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.drop("shop.orders")
    code, out, _ = told(capsys, "plan")
    assert code == ExitCode.CONFLICT
    assert "no such table in the catalog" in out


def test_a_table_that_another_tool_altered(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.edit("shop.orders", {"owner.team": "nobody"})
    code, out, _ = told(capsys, "plan", "--out", "plan.json")
    assert code == ExitCode.CONFLICT
    for part in ("base    sales", "wanted  finance", "actual  nobody"):
        assert part in out
    assert not Path("plan.json").exists()
    fact = "shop.orders:properties.owner.team"
    assert f"plan --overwrite {fact}" in out
    code, out, _ = told(capsys, "plan", "--overwrite", fact)
    assert code == ExitCode.OK
    assert "owner.team" in out


def test_overwriting_what_nobody_disputes(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.edit("shop.orders", {"owner.team": "nobody"})
    code, _, err = told(capsys, "plan", "--overwrite", "shop.orders:properties.owner.tame")
    assert code == ExitCode.USAGE
    assert "did you mean `shop.orders:properties.owner.team`?" in err


def test_a_wrong_catalog_name(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    text = "environments:\n  local: {catalog: {type: sqlite, name: lake}}\n"
    (project.folder / "icemigrate.yaml").write_text(f"project: shop\n{text}", encoding="utf-8")
    code, out, err = told(capsys, "plan")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "lake" in err
    assert "local" in err


def test_damaged_metadata(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.metadata_file(ORDERS).write_text('{"format-version": 2, "schemas":', encoding="utf-8")
    code, out, err = told(capsys, "plan")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "shop.orders" in err


def test_missing_metadata(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.metadata_file(ORDERS).unlink()
    code, _, err = told(capsys, "plan")
    assert code == ExitCode.ERROR
    assert "shop.orders" in err


def test_a_history_of_a_newer_version(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.edit(str(HISTORY), {"icemigrate.format": "99"})
    for command in ("plan", "status", "history"):
        code, out, err = told(capsys, command)
        assert (code, out) == (ExitCode.ERROR, "")
        assert "newer icemigrate" in err
        assert "pip install --upgrade icemigrate" in err


def test_an_edited_file(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("0001_create.yaml", FIRST.replace("type: int", "type: long"))
    code, out, err = told(capsys, "plan")
    assert (code, out) == (ExitCode.FINDINGS, "")
    assert "[edited-file]" in err
    assert "shop.orders: columns.amount.type: applied" in err
    code, out, _ = told(capsys, "status")
    assert code == ExitCode.OK
    assert "edited" in out


def test_comments_and_layout_are_no_edit(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("0001_create.yaml", f"# a word\ndescription: Another one\n{FIRST}\n\n")
    assert told(capsys, "plan")[0] == ExitCode.OK


def test_a_missing_file(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    (project.folder / "migrations" / "0001_create.yaml").unlink()
    code, _, err = told(capsys, "plan")
    assert code == ExitCode.FINDINGS
    assert "0001 (create) is applied, but its file is missing [missing-file]" in err


def test_a_late_file(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.apply()
    project.write("0003_more.yaml", "tables: [{name: shop.more, columns: [{name: id, type: long}]}]\n")
    project.apply()
    (project.folder / "migrations" / "0002_evolve.yaml").rename(project.folder / "0002_evolve.yaml")
    project.write(
        "0000_late.yaml", "tables: [{name: shop.more, description: All, columns: [{name: id, type: long}]}]\n"
    )
    code, _, err = told(capsys, "plan")
    assert code == ExitCode.FINDINGS
    assert "[late-file]" in err
    assert "`icemigrate rebase 0000` renumbers it: `0004_late.yaml`" in err
    assert "[missing-file]" in err


def test_json_is_json_when_it_fails(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.edit(str(HISTORY), {"icemigrate.format": "99"})
    code, out, err = told(capsys, "plan", "--format", "json")
    failure = json.loads(out)
    assert failure["error"] == "HistoryError"
    assert failure["exit_code"] == code == ExitCode.ERROR
    assert failure["message"] in err


def json_of(capsys: pytest.CaptureFixture[str], command: str) -> str:
    code, out, err = told(capsys, command, "--format", "json")
    assert (code, err) == (ExitCode.OK, "")
    return out


def test_a_stale_plan_is_refused_with_the_difference(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "plan", "--out", "plan.json")[0] == ExitCode.OK
    project.edit("shop.orders", {"somebody.else": "was here"})
    code, _, err = told(capsys, "apply", "plan.json", "--auto-approve")
    assert code == ExitCode.CONFLICT
    assert "table shop.orders, properties.somebody.else: nothing → was here" in err
    assert "Starting Spark" not in err, "it is refused before that"


def test_what_makes_a_plan_stale_that_was_just_agreed_to_is_met_by_asking_again(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def agreed(_question: ApprovalPrompt) -> bool:
        project.edit("shop.orders", {"somebody.else": "was here"})
        return True

    monkeypatch.setattr(ApprovalPrompt, "is_agreed_to", agreed)
    code, _, err = told(capsys, "apply")
    assert code == ExitCode.CONFLICT
    assert "the plan is stale" in err
    assert err.endswith("    run `icemigrate apply` again\n")


def test_a_table_that_an_interrupted_run_made_is_ours(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "columns: [{name: id, type: long}]"
    project.write(
        "0003_more.yaml", f"tables: [{{name: shop.more, {columns}}}, {{name: shop.some, {columns}}}]\n"
    )
    project.engine.fails.add("shop.some")
    with pytest.raises(Interrupted):
        project.apply()
    project.engine.fails.clear()
    project.save()
    assert "there, incomplete" in told(capsys, "status")[1]
    project.edit("shop.more", {"icemigrate.created-by": f"{project.folder.name}/0001"})
    assert "there, not in the history" in told(capsys, "status")[1]
    project.edit("shop.more", {"icemigrate.created-by": "another_project/0003"})
    assert "there, unmanaged" in told(capsys, "status")[1]


def test_a_plan_is_applied_only_where_it_was_made_for(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "plan", "--out", "plan.json")[0] == ExitCode.OK
    code, _, err = told(capsys, "apply", "plan.json", "--env", "prod")
    assert code == ExitCode.USAGE
    assert "environment `local`" in err
    project.write("0002_evolve.yaml", SECOND.replace("finance", "audit"))
    code, _, err = told(capsys, "apply", "plan.json", "--auto-approve")
    assert code == ExitCode.CONFLICT
    assert "the plan is stale" in err


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        *((text, ExitCode.USAGE) for text in ("", "{}", "[]", "null")),
        *((text, ExitCode.CONFLICT) for text in ('{"plan_format": 99}', '{"plan_format": 2, "x": 2}')),
    ],
)
def test_a_file_that_is_no_plan(
    project: Embedded, capsys: pytest.CaptureFixture[str], text: str, exit_code: ExitCode
) -> None:
    Path("plan.json").write_text(text, encoding="utf-8")
    code, out, err = told(capsys, "apply", "plan.json", "--auto-approve")
    assert (code, out) == (exit_code, "")
    assert err.startswith("error: ")


def test_an_edited_plan_is_stale(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "plan", "--out", "plan.json")[0] == ExitCode.OK
    text = Path("plan.json").read_text(encoding="utf-8")
    Path("plan.json").write_text(text.replace("finance", "audit"), encoding="utf-8")
    code, out, err = told(capsys, "apply", "plan.json", "--auto-approve")
    assert (code, out) == (ExitCode.CONFLICT, "")
    assert "`plan.json` was edited after it was saved" in err


def test_a_migration_file_instead_of_a_plan(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "apply", "migrations/0002_evolve.yaml", "--auto-approve")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: `migrations/0002_evolve.yaml` is not a saved plan: it is not JSON\n"
        "    `icemigrate apply --to 0002` applies the migrations up to this version; "
        "`icemigrate plan --out FILE` writes a plan file\n"
    )


def test_nothing_to_apply_asks_nobody_and_starts_nothing(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.apply()
    assert told(capsys, "apply") == (0, "Nothing to apply: every migration is applied.\n", "")


def test_applying_without_a_terminal_needs_approval(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = told(capsys, "apply")
    assert code == ExitCode.USAGE
    assert "amount int → long" in out
    assert "--auto-approve" in err


DROP_AMOUNT = "allow: [destructive]\ntables: [{name: shop.orders, drop_columns: [amount]}]\n"


def test_spark_is_not_started_for_a_rollback_that_nobody_can_be_asked_about(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icemigrate.execution.engine_choice._metadata_engine", lambda *_, **__: None)
    # As where Spark alone can read the manifests, which show whether files still have values of the column.
    monkeypatch.setattr("icemigrate.spark.file_evidence.gather_without_jvm", lambda *_, **__: None)
    project.write("0002_evolve.yaml", DROP_AMOUNT)
    project.apply()
    code, out, err = told(capsys, "rollback")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: cannot ask for approval: standard input is not a terminal\n"
        "    `--auto-approve` rolls them back without asking\n"
    )


def test_a_rollback_is_planned_without_spark(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "icemigrate.execution.spark_start.open_engine", lambda *_: pytest.fail("Spark starts")
    )
    project.write("0002_evolve.yaml", DROP_AMOUNT)
    project.apply()
    code, out, err = told(capsys, "rollback", "--dry-run")
    assert (code, err) == (ExitCode.OK, "")
    assert "+ amount int, under its own field id 2" in out


@pytest.mark.parametrize(
    ("args", "plans"),
    [
        (("apply", "--reconcile"), "icemigrate.commands.reconcile.plan_reconcile"),
        (("maintain",), "icemigrate.commands.maintain.plan_maintenance"),
    ],
)
def test_nobody_to_ask_is_told_before_a_plan_starts_spark(
    project: Embedded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    plans: str,
) -> None:
    def needing_spark(*_: object, on_start: Callable[[], None], **__: object) -> NoReturn:
        on_start()
        raise AssertionError("Spark is started")

    monkeypatch.setattr(plans, needing_spark)
    code, out, err = told(capsys, *args)
    assert (code, out) == (ExitCode.USAGE, "")
    assert "standard input is not a terminal" in err
    assert "Starting Spark" not in err


@pytest.mark.parametrize(
    "args",
    [
        *("apply", "check", "drift", "history", "lock", "maintain", "plan", "rebase", "repair", "reset"),
        *("revert 1", "rollback", "show", "squash --through 1", "status", "unlock", "check --project other"),
    ],
)
def test_outside_of_a_project_the_message_shows_how_to_have_one(
    args: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    where = "`other`" if "other" in args else "this folder or a folder above it"
    assert told(capsys, *args.split()) == (
        ExitCode.ERROR,
        "",
        f"error: there is no icemigrate project in {where}\n"
        "    run `icemigrate init` to create one, or pass its folder with `--project`\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_quiet_init_and_new_write_only_their_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told(capsys, "init", "--ci", "none", "--quiet")[2] == ""
    assert told(capsys, "new", "more", "-q")[1:] == ("migrations/0002_more.yaml\n", "")
    assert "Edit it" in told(capsys, "new", "most")[2]


def make_disposable(project: Embedded) -> None:
    """Let `reset` work on the project."""
    text = "environments: {local: {catalog: {type: sqlite}, disposable: true}}"
    (project.folder / "icemigrate.yaml").write_text(f"project: {project.folder.name}\n{text}\n")


def test_a_working_directory_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for args in (("check",), ("status", "--project", str(tmp_path)), ("init",)):
        code, out, err = told(capsys, *args)
        assert (code, out) == (ExitCode.ERROR, "")
        assert err == "error: the working directory was deleted\n    change to another folder\n"


@pytest.mark.parametrize("args", [("apply", "."), ("comment", "."), ("plan", "--out", "."), ("apply", "..")])
def test_a_folder_is_no_file(
    args: tuple[str, ...], project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(capsys, *args)
    assert code != ExitCode.OK
    assert "is a directory" in err


@pytest.mark.parametrize(
    "args",
    [
        ("plan", "--to", "{}"),
        ("apply", "--redo", "{}"),
        ("apply", "--redo", "1..{}"),
        ("rollback", "--to", "{}"),
        ("rollback", "--only", "{}"),
        ("repair", "--abandon", "{}"),
        ("revert", "{}"),
        ("show", "--at", "{}"),
    ],
)
@pytest.mark.parametrize("digits", [19, 5_000])
def test_a_version_with_too_many_digits(
    args: tuple[str, ...], digits: int, project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(capsys, *(word.format("9" * digits) for word in args))
    assert code == ExitCode.USAGE
    assert err.startswith("error: ")


def test_closed_standard_input_is_no_terminal(
    project: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = told(capsys, "apply")
    assert code == ExitCode.USAGE
    assert "standard input is not a terminal" in err


def test_what_the_history_says_about_a_lock_is_one_line_without_codes(
    project: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
    words = "u\x1b[31m\u202e on h\n::error::x, at: st\x1b[8m"
    lock = LockStatus("u", "h", 12, noon, noon, "apply", "st", words)

    def asking(*_: object, approve: Callable[[LockStatus], bool], **__: object) -> UnlockResult:
        approve(lock)
        return UnlockResult("shop", "local", lock, taken=False)

    monkeypatch.setattr("icemigrate.commands.unlock.unlock", asking)
    _, out, err = told(capsys, "unlock")
    assert "\x1b" not in out + err
    assert "\u202e" not in out + err
    assert not [line for line in err.splitlines() if line.startswith("::")]


@pytest.mark.parametrize(
    ("command", "verb"),
    [("apply", "applies them"), ("rollback", "rolls them back"), ("reset", "resets the environment")],
)
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_without_a_terminal_every_command_that_asks_fails_alike(
    project: Embedded, capsys: pytest.CaptureFixture[str], command: str, verb: str, quiet: tuple[str, ...]
) -> None:
    project.write("0009_more.yaml", "tables: [{name: shop.orders, properties: {k: v}}]\n")
    make_disposable(project)
    code, out, err = told(capsys, command, *quiet)
    assert code == ExitCode.USAGE
    assert err.startswith("error: cannot ask for approval: standard input is not a terminal\n")
    assert f"`--auto-approve` {verb}" in err
    assert err.count("\n") == 2
    assert out != ""


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("apply", "icemigrate.commands.apply.apply"),
        ("rollback", "icemigrate.commands.rollback.rollback"),
        ("reset", "icemigrate.commands.reset.reset"),
    ],
)
def test_quiet_and_approved_the_plan_is_not_shown(
    project: Embedded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    function: str,
) -> None:
    def end(*_: object, **__: object) -> NoReturn:
        raise IcemigrateError("it runs")

    project.write("0009_more.yaml", "tables: [{name: shop.orders, properties: {k: v}}]\n")
    make_disposable(project)
    monkeypatch.setattr(function, end)
    assert told(capsys, command, "-q", "--auto-approve")[1:] == ("", "error: it runs\n")
    assert "shop.orders" in told(capsys, command, "--auto-approve")[1]


def test_an_interrupt_is_one_line(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sqlite_reader.SqliteCatalog, "load", interrupted)
    code, out, err = told(capsys, "plan")
    # The line that the terminal shows `^C` in is ended.
    assert (code, out, err) == (130, "", "\nInterrupted.\n")


def test_an_interrupt_during_the_imports_is_one_line(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class InterruptedModule(ModuleType):
        def __getattr__(self, name: str) -> NoReturn:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "icemigrate.cli.group", InterruptedModule("icemigrate.cli.group"))
    assert told(capsys, "status") == (ExitCode.INTERRUPTED, "", "\nInterrupted.\n")


def test_a_bug_is_called_one(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object) -> None:
        raise LookupError("no such\nthing")

    monkeypatch.setattr(sqlite_reader.SqliteCatalog, "load", broken)
    assert main(["plan"]) == ExitCode.ERROR
    assert capsys.readouterr().err == (
        "this is a bug in icemigrate: LookupError: no such thing (ICEMIGRATE_DEBUG=1 shows the traceback)\n"
    )
    monkeypatch.setenv("ICEMIGRATE_DEBUG", "1")
    assert main(["plan"]) == ExitCode.ERROR
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("LookupError: no such\nthing\n")


class Terminal(io.StringIO):
    """Standard input of somebody who sits at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_whoever_does_not_say_yes_gets_nothing(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    code, out, err = told(capsys, "apply")
    assert code == ExitCode.ERROR
    # The question stands beside the plan, not in it.
    assert "amount int → long" in out
    assert "Apply" not in out
    assert "Apply these changes? [y/N]" in err
    assert err.endswith("Cancelled: no changes were made.\n")


def test_the_end_of_input_is_no_answer(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert told(capsys, "apply")[0] == ExitCode.INTERRUPTED


def test_a_plan_that_is_not_ready_is_not_asked_about(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.drop("shop.orders")
    code, out, err = told(capsys, "apply", "--auto-approve")
    assert (code, err) == (ExitCode.CONFLICT, "")
    assert "no such table in the catalog" in out


def test_an_environment_of_spark_connect_says_what_it_lacks(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / "icemigrate.yaml").write_text(
        f"project: {project.folder.name}\nenvironments:\n  local:\n"
        '    catalog: {type: sqlite}\n    spark: {remote: "sc://localhost"}\n',
        encoding="utf-8",
    )
    code, out, _ = told(capsys, "apply", "--auto-approve", "--apply-with", "spark")
    assert code == ExitCode.FINDINGS
    assert "`apply_with: spark` commits metadata with Spark, and Spark Connect has no way to do so" in out
    assert "[needs-jvm]" in out
    code, _, err = told(capsys, "plan", "--rehearse")
    assert (code, "Spark Connect cannot make" in err) == (ExitCode.USAGE, True)


def test_a_connection_that_breaks_off_is_not_taken_for_a_reader_who_has_seen_enough(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(status, "status", broken)
    code, _, err = told(capsys, "status")
    assert (code, err) == (ExitCode.ERROR, "error: the connection was lost: run the command again\n")


def test_two_namespaces_cannot_become_one(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    (project.folder / "icemigrate.yaml").write_text(
        "environments:\n  local:\n    catalog: {type: sqlite}\n    namespaces: {a: c, b: c}\n",
        encoding="utf-8",
    )
    code, _, err = told(capsys, "plan")
    assert code == ExitCode.FINDINGS
    assert "icemigrate.yaml:4:27: error: `a` and `b` cannot both map to `c`" in err


@pytest.mark.parametrize("args", [("plan",), ("status",), ("plan", "--format", "json")])
def test_a_full_standard_output_is_a_fault_like_others(
    project: Embedded,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        code = main(list(args))
    assert code == ExitCode.ERROR
    message = capsys.readouterr().err
    assert message.startswith("error: cannot write to standard output: ")
    assert "bug" not in message


def test_a_closed_standard_output_takes_nothing_and_stops_nothing(
    project: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["plan"]) == ExitCode.OK


@pytest.mark.parametrize(
    "text", ['migrations: "a\\0b"\n', 'environments: {local: {catalog: {type: sqlite, uri: "a\\0b"}}}\n']
)
def test_a_nul_in_a_setting_is_a_mistake_with_its_place(
    project: Embedded, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    Path("icemigrate.yaml").write_text(text, encoding="utf-8")
    code, _, err = told(capsys, "plan")
    assert code == ExitCode.FINDINGS
    assert "icemigrate.yaml:1:" in err
    assert "NUL" in err


def test_who_comes_too_late_to_roll_back_is_told_who_was_faster() -> None:
    late = RollbackResult("shop", "local", (), 5, by_others=("0003",))
    assert rollback_text(late, PLAIN_STYLE) == "Nothing to do: another process already rolled back 0003.\n"


@pytest.mark.parametrize("module", [apply, rollback], ids=["apply", "rollback"])
def test_the_time_that_is_told_begins_when_spark_runs(
    project: Embedded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
) -> None:
    project.write("0002_evolve.yaml", "tables: [{name: shop.orders, properties: {owner.team: finance}}]\n")
    command = "apply" if module is apply else "rollback"
    if module is rollback:
        project.apply()

    def started(*_: object) -> NoReturn:
        raise EngineError("Spark would be started here")

    monkeypatch.setattr("icemigrate.execution.engine_choice._metadata_engine", lambda *_, **__: None)
    clock = SimpleNamespace(monotonic=lambda: pytest.fail("the clock runs before Spark does"))
    monkeypatch.setattr("icemigrate.execution.carry_out.time", clock)
    monkeypatch.setattr(LazySpark, "__call__", started)
    code, _, err = told(capsys, command, "--auto-approve")
    assert (code, err) == (ExitCode.ERROR, "error: Spark would be started here\n")
