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
def test_only_settings_have_variables(name: str) -> None:
    variables = {str(option.envvar) for option in options(name) if option.envvar}
    shared = {f"ICEMIGRATE_{setting}" for setting in ("ENV", "NO_COLOR", "PROJECT", "QUIET", "VERBOSE")}
    some = {f"ICEMIGRATE_{setting}" for setting in ("AUTO_APPROVE", "FORMAT", "GIT_BASE", "LOCK_TIMEOUT")}
    assert variables <= shared | some
    assert name == "completion" or shared <= variables
    assert not variables & set(VARIABLES)


@pytest.mark.parametrize("variable", ["ICEMIGRATE_TO", "ICEMIGRATE_AUTO_APPROVE", "ICEMIGRATE_PARTIAL"])
def test_a_variable_for_one_command_does_not_change_what_another_does(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    for name in ("rollback", "reset"):
        context = command_of(name).make_context(name, [])
        given = {key for key, value in context.params.items() if value}
        is_setting = name == "rollback" and variable == "ICEMIGRATE_AUTO_APPROVE"
        assert given == ({"auto_approve"} if is_setting else set())


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
