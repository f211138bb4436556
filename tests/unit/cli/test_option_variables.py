"""Short options, and options that environment variables give."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from icemigrate.cli import main
from icemigrate.cli.exit import run
from icemigrate.cli.group import COMMANDS, command_of
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


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_variable_unless_it_gives_up_data(name: str) -> None:
    for option in options(name):
        word = max(option.opts, key=len)
        variable = f"ICEMIGRATE_{word[2:].replace('-', '_').upper()}"
        is_reset = (name, word) == ("reset", "--auto-approve")
        is_excluded = word in {"--help", "--abandon", "--adopt", "--discard-new-data", "--overwrite"}
        assert option.envvar == (None if is_excluded or is_reset else variable)
        assert variable not in VARIABLES


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


@pytest.mark.parametrize("value", ["", "1"])
def test_what_gives_up_data_is_asked_for_on_the_command_line(
    value: str, project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEMIGRATE_DISCARD_NEW_DATA", value)
    code = main(["rollback", "--dry-run", "--to", "0"])
    err = capsys.readouterr().err
    message = "`ICEMIGRATE_DISCARD_NEW_DATA` is not read: write `--discard-new-data` on the command line"
    assert (message in err) is bool(value)
    assert (code == ExitCode.USAGE) is bool(value)


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
