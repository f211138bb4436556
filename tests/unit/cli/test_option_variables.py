"""Short options, and options that environment variables give."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from icemigrate.cli import main
from icemigrate.cli.exit import run
from icemigrate.cli.group import command_of
from icemigrate.cli.group import icemigrate as program
from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice
from icemigrate.cli.options import global_options
from icemigrate.cli.progress import show_progress
from icemigrate.errors import ExitCode
from icemigrate.events import TablePublishing
from icemigrate.iceberg.names import TableName
from icemigrate.system.waits import announce_wait
from scripts.docs_reference import VARIABLES
from tests.support.embedded_project import Embedded

FIRST = "tables: [{name: shop.orders, columns: [{name: id, type: long}]}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project with one pending migration."""
    monkeypatch.chdir(tmp_path)
    made = Embedded(tmp_path)
    made.write("0001_create.yaml", FIRST)
    return made


def options(name: str) -> list[click.Option]:
    return [param for param in command_of(name).params if isinstance(param, click.Option)]


SHARED = {f"ICEMIGRATE_{word}" for word in ("ENV", "FORMAT", "LOCK_TIMEOUT", "NO_COLOR", "PROJECT", "QUIET")}
SHARED |= {"ICEMIGRATE_VERBOSE"}


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("plan", {"OUT", "TO", "REDO", "REHEARSE", "RECONCILE", "TABLE", "DETAILED_EXITCODE"}),
        ("apply", {"APPLY_WITH", "TO", "REDO", "BASELINE", "RECONCILE", "TABLE", "AUTO_APPROVE"}),
        ("import", {"EXCLUDE", "DESCRIPTION", "DRY_RUN"}),
        ("check", {"GIT_BASE", "FIX"}),
        ("rollback", {"APPLY_WITH", "DRY_RUN", "DETAILED_EXITCODE", "AUTO_APPROVE"}),
        ("maintain", {"DRY_RUN", "AUTO_APPROVE"}),
        ("reset", {"DRY_RUN"}),
        ("repair", set()),
    ],
)
def test_the_variables_of_a_command(name: str, own: set[str]) -> None:
    variables = {str(option.envvar) for option in options(name) if option.envvar}
    assert variables - SHARED == {f"ICEMIGRATE_{word}" for word in own}
    assert not variables & set(VARIABLES)


@pytest.mark.parametrize(
    "variable", ["TO", "ONLY", "PARTIAL", "DISCARD_NEW_DATA", "ORPHANS", "OVERWRITE", "ALLOW"]
)
def test_no_variable_says_what_is_undone_removed_or_accepted(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ICEMIGRATE_{variable}", "1")
    for name in ("rollback", "maintain", "reset"):
        given = command_of(name).make_context(name, []).params
        assert {key for key, value in given.items() if value} == set()


def test_a_variable_gives_what_a_run_does_and_the_run_says_so(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("0002_more.yaml", "tables: [{name: shop.other, columns: [{name: id, type: long}]}]\n")
    monkeypatch.setenv("ICEMIGRATE_TO", "1")
    monkeypatch.setenv("ICEMIGRATE_DETAILED_EXITCODE", "1")
    assert main(["plan"]) == ExitCode.CHANGES
    out, err = capsys.readouterr()
    assert "shop.orders" in out
    assert "shop.other" not in out
    assert "note: `--to` is set by ICEMIGRATE_TO=1\n" in err
    assert "note: `--detailed-exitcode` is set by ICEMIGRATE_DETAILED_EXITCODE=1\n" in err
    main(["plan", "--to", "2", "-q"])
    out, err = capsys.readouterr()
    assert "shop.other" in out
    assert err == ""


@pytest.mark.parametrize(
    ("variable", "value", "args"),
    [
        ("ICEMIGRATE_TO", "1", ["plan", "--help"]),
        ("ICEMIGRATE_REHEARSE", "0", ["plan"]),
        ("ICEMIGRATE_TO", "1", ["-q", "plan"]),
        ("ICEMIGRATE_TO", "1", ["rollback", "--dry-run"]),
    ],
)
def test_no_note_where_a_variable_changes_nothing(
    variable: str,
    value: str,
    args: list[str],
    project: Embedded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(args) == ExitCode.OK
    assert "note: `--" not in capsys.readouterr().err


def test_reset_is_approved_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEMIGRATE_AUTO_APPROVE", "1")
    approved = {n: command_of(n).make_context(n, []).params["auto_approve"] for n in ("rollback", "reset")}
    assert approved == {"rollback": True, "reset": False}


@pytest.mark.parametrize("name", ["apply", "rollback", "maintain", "unlock"])
def test_y_approves(name: str) -> None:
    assert [option.name for option in options(name) if "-y" in option.opts] == ["auto_approve"]


@pytest.mark.parametrize("args", [["-e", "prod", "plan"], ["plan", "-e", "prod"]])
def test_e_names_the_environment(
    project: Embedded, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == ExitCode.USAGE
    assert "there is no environment `prod`" in capsys.readouterr().err


def test_a_variable_gives_an_option_and_the_command_line_comes_first(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEMIGRATE_FORMAT", "json")
    assert main(["check"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert main(["check", "--format", "text"]) == ExitCode.OK
    assert not capsys.readouterr().out.startswith("{")
    monkeypatch.setenv("ICEMIGRATE_FORMAT", "nonsense")
    assert main(["check"]) == ExitCode.USAGE


@pytest.mark.parametrize(("value", "color"), [("1", False), ("0", True), ("", True)])
def test_a_flag_that_turns_something_off_does_so_by_its_variable_too(
    value: str, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEMIGRATE_NO_COLOR", value)
    settings = InvocationOptions()
    program.make_context("icemigrate", ["rules"], obj=settings)
    assert settings.color is color


@pytest.mark.parametrize("is_quiet", [True, False])
def test_quiet_shows_no_wait(is_quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    @global_options
    def waits() -> None:
        announce_wait("Waiting for the lock …")

    assert run(waits, ["-q"] if is_quiet else []) == ExitCode.OK
    assert capsys.readouterr().err == ("" if is_quiet else "Waiting for the lock …\n")


def test_quiet_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    settings = InvocationOptions()
    with program.make_context("icemigrate", ["-q", "rules"], obj=settings), show_progress(settings) as shown:
        shown(TablePublishing("0001", TableName.parse("db.t"), 2))
        SparkStartNotice().before_start()
    assert settings.quiet
    assert capsys.readouterr().err == ""
