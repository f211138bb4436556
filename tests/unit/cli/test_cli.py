"""The command line as such: commands found by name, exit codes, what is imported, what is written where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import jsonschema
import pytest

import icemigrate
from icemigrate.cli import main
from icemigrate.cli.group import COMMANDS, LEAF_COMMANDS, command_of
from icemigrate.cli.group import icemigrate as program
from icemigrate.errors import ConflictError, ExitCode, Mistakes, StalePlan, UsageError
from tests.support.embedded_project import Embedded

SCHEMAS = Path(__file__).parents[3] / "schemas"
HEAVY = [
    *("pyspark", "py4j", "pyiceberg", "sqlalchemy", "pyarrow", "pandas", "numpy", "duckdb"),
    *("fastavro", "rich", "jsonschema", "deepdiff"),
]
FIRST = "tables: [{name: shop.orders, columns: [{name: id, type: long}]}]\n"
SECOND = "tables: [{name: shop.orders, drop_columns: [id], columns: [{name: key, type: long}]}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project with one pending migration."""
    monkeypatch.chdir(tmp_path)
    made = Embedded(tmp_path)
    made.write("0001_create.yaml", FIRST)
    return made


@pytest.mark.parametrize("name", LEAF_COMMANDS)
def test_a_command_is_what_the_table_says(name: str) -> None:
    command = command_of(name)
    assert isinstance(command, click.Command)
    assert command.name == name.split()[-1]
    assert command.help
    # The table's line and the command's own begin alike, so that neither goes astray.
    assert LEAF_COMMANDS[name].split()[0] == command.help.split()[0]


@pytest.mark.parametrize("name", ["table", *LEAF_COMMANDS])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: icemigrate {name}")
    assert err == ""


def test_help_imports_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from icemigrate.cli import main; main(['--help']);"
        "print(*(m for m in sys.modules if m.startswith(('icemigrate.', 'yaml'))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert loaded == {
        "icemigrate.cli",
        "icemigrate.cli.activity_lines",
        "icemigrate.cli.invocation",
        "icemigrate.cli.group",
        "icemigrate.cli.exit",
        "icemigrate.cli.option_types",
        "icemigrate.cli.options",
        "icemigrate.cli.outputs",
        "icemigrate.cli.streams",
        "icemigrate.system",
        "icemigrate.system.activity",
        "icemigrate.system.process",
        "icemigrate.system.waits",
        "icemigrate.frozen",
        "icemigrate.hidden_characters",
        "icemigrate.redaction",
        "icemigrate.diagnostics",
        "icemigrate.errors",
        "icemigrate.versions",
    }


@pytest.mark.parametrize(
    "args",
    [["check"], ["show"], ["new", "more"], ["plan"], ["status"], ["history"], ["plan", "--format", "json"]],
    ids=" ".join,
)
def test_quick_commands_import_nothing_heavy(project: Embedded, args: list[str]) -> None:
    code = (
        "import sys; from icemigrate.cli import main; code = main(sys.argv[1:]);"
        f"print('loaded:', *(m for m in {HEAVY!r} if m in sys.modules)); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=project.folder, capture_output=True, text=True, check=False
    )
    # `new` says there what comes next, so that standard output is the path alone.
    told = "Edit it, then run `icemigrate check --fix` to update the lock file.\n"
    assert (ran.returncode, ran.stderr) == (0, told if args[0] == "new" else "")
    assert ran.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["plann"],
        ["plan", "--frob"],
        ["plan", "--format", "yaml"],
        ["check", "extra"],
        ["new"],
        ["completion", "tcsh"],
        ["--env"],
        ["--project", "nowhere.yaml", "check"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_64(
    project: Embedded, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["plan", "--to", "1", "--to", "2", "--to", "2"], "`--to` is given 3 times, but takes one value"),
        (["rollback", "--to", "1", "--to", "2"], "`--to` is given twice"),
        (["--env", "local", "--env", "prod", "plan"], "`--env` is given twice"),
        (["--env", "local", "plan", "--env", "prod"], "`--env` is given twice"),
        (["--project", "a", "status", "--project", "b"], "`--project` is given twice"),
        (["history", "--project", "a", "--project", "b"], "`--project` is given twice"),
    ],
)
def test_an_option_of_one_value_is_given_once(
    project: Embedded, args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_flags_and_options_of_several_values_may_be_repeated(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["plan", "--no-color", "--no-color", "--overwrite", "a:b", "--overwrite", "c:d"]
    assert main(args) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert "this fact has no conflict" in err
    assert "given" not in err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"icemigrate {icemigrate.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == ExitCode.OK
    assert f"_ICEMIGRATE_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_completion_knows_the_commands() -> None:
    environment = {
        **os.environ,
        "_ICEMIGRATE_COMPLETE": "fish_complete",
        "COMP_WORDS": "icemigrate ",
        "COMP_CWORD": "st",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "icemigrate.cli"], capture_output=True, text=True, env=environment, check=False
    )
    assert "status" in ran.stdout
    assert "plan" not in ran.stdout


@pytest.mark.parametrize(
    "args", [["--version"], ["--help"], *([*name.split(), "--help"] for name in LEAF_COMMANDS)]
)
def test_help_ends_well_where_nobody_reads_on(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(args) == ExitCode.OK


def test_a_reader_that_closes_the_pipe_is_no_failure(project: Embedded) -> None:
    for number in range(2, 60):
        project.write(f"{number:04}_more.yaml", FIRST.replace("orders", f"orders_{number}"))
    process = subprocess.Popen(
        [sys.executable, "-m", "icemigrate.cli", "plan"],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == ExitCode.OK


def test_output_that_the_encoding_lacks_is_escaped(project: Embedded) -> None:
    project.write("0001_create.yaml", f"description: Größe → 表\n{FIRST}")
    for form in ("text", "json"):
        ran = subprocess.run(
            [sys.executable, "-m", "icemigrate.cli", "plan", "--format", form],
            cwd=project.folder,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )
        assert b"Gr\\u00f6\\u00dfe \\u2192 \\u8868" in ran.stdout
        if form == "json":
            assert json.loads(ran.stdout)["migrations"][0]["description"].endswith("表")


@pytest.mark.parametrize("command", ["check", "plan", "status", "history"])
def test_json_fits_its_schema(project: Embedded, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    project.apply()
    project.write("0002_change.yaml", SECOND)
    for _ in ("pending", "applied"):
        main([command, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        schema = json.loads((SCHEMAS / f"{command}.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(document, schema, format_checker=jsonschema.FormatChecker())
        project.write("0002_change.yaml", f"allow: [destructive]\n{SECOND}")
        if command != "check":
            project.apply()


def test_failures_as_json_fit_their_schema(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("0002_wrong.yaml", "tabels: []\n")
    assert main(["plan", "--format", "json"]) == ExitCode.FINDINGS
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((SCHEMAS / "error.schema.json").read_text(encoding="utf-8")))


def test_global_options_stand_before_or_behind_the_command(
    project: Embedded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["plan"]) == ExitCode.OK
    assert "\x1b[" in capsys.readouterr().out
    for args in (["--no-color", "plan"], ["plan", "--no-color"]):
        assert main(args) == ExitCode.OK
        assert "\x1b[" not in capsys.readouterr().out
    for args in (
        ["--env", "prod", "plan"],
        ["plan", "--env", "prod"],
    ):
        assert main(args) == ExitCode.USAGE
        assert "`prod`" in capsys.readouterr().err
    monkeypatch.setenv("ICEMIGRATE_ENV", "prod")
    assert main(["plan"]) == ExitCode.USAGE
    assert main(["plan", "--env", "local"]) == ExitCode.OK
    assert main(["--env", "local", "plan"]) == ExitCode.OK


def test_a_project_elsewhere(
    project: Embedded, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["check"]) == ExitCode.ERROR
    assert main(["--project", str(project.folder), "check"]) == ExitCode.OK


def test_the_json_of_a_plan_is_a_plan_to_apply(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--out", "saved.json", "--format", "json"]) == ExitCode.OK
    assert Path("saved.json").read_text(encoding="utf-8") == capsys.readouterr().out
    project.apply()
    assert main(["apply", "saved.json", "--auto-approve"]) == ExitCode.CONFLICT
    assert "the plan was already carried out" in capsys.readouterr().err


def test_detailed_exit_codes(project: Embedded) -> None:
    assert main(["plan"]) == ExitCode.OK
    assert main(["plan", "--detailed-exitcode"]) == ExitCode.CHANGES
    project.apply()
    assert main(["plan", "--detailed-exitcode"]) == ExitCode.OK
    project.write("0002_change.yaml", SECOND)
    assert main(["plan", "--detailed-exitcode"]) == ExitCode.FINDINGS


def test_show_prints_what_can_be_declared(
    project: Embedded, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.write("0002_change.yaml", f"allow: [destructive]\n{SECOND}")
    assert main(["show"]) == ExitCode.OK
    shown = capsys.readouterr().out
    other = Embedded(tmp_path_factory.mktemp("other"))
    other.write("0001_all.yaml", shown)
    assert main(["--project", str(other.folder), "show"]) == ExitCode.OK
    assert capsys.readouterr().out == shown


def test_init_keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "migrations" / "0001_create_events.yaml"
    kept.parent.mkdir()
    kept.write_text(FIRST, encoding="utf-8")
    assert main(["init", str(tmp_path)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert f"kept  {kept}\n" in out
    assert f"wrote {tmp_path / 'icemigrate.yaml'}\n" in out
    assert kept.read_text(encoding="utf-8") == FIRST
    assert main(["--project", str(tmp_path), "check"]) == ExitCode.OK


def test_the_python_api_returns_what_the_commands_print(project: Embedded) -> None:
    shop = icemigrate.Project(project.folder)
    assert shop.check().ok
    planned = shop.plan()
    assert planned.ready
    assert [m.version for m in planned.plan.migrations] == ["0001"]
    project.apply()
    assert shop.plan().is_empty
    assert shop.apply().applied == ()
    assert shop.status().version == "0001"
    assert [e.version for e in shop.history().entries] == ["0001"]
    assert "shop.orders" in shop.show("shop.orders")
    assert shop.name == project.folder.name.replace("-", "_")


def test_the_python_api_refuses_as_the_commands_do(project: Embedded) -> None:
    shop = icemigrate.Project(project.folder)
    stale = shop.plan()
    project.apply()
    with pytest.raises(StalePlan):
        shop.apply(stale.plan)
    project.write("0002_change.yaml", SECOND)
    with pytest.raises(Mistakes) as refused:
        shop.apply()
    assert [d.code for d in refused.value.diagnostics] == ["missing-allow"]
    project.write("0002_change.yaml", f"allow: [destructive]\n{SECOND}")
    project.drop("shop.orders")
    with pytest.raises(ConflictError):
        shop.apply()
    with pytest.raises(UsageError):
        icemigrate.Project(project.folder, environment="prod").plan()


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, icemigrate; print(*(m for m in sys.modules if m.startswith(('icemigrate.', 'click'))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    with pytest.raises(AttributeError):
        icemigrate.nothing  # noqa: B018


def test_the_program_is_a_group_of_all_commands() -> None:
    context = click.Context(program)
    assert program.list_commands(context) == list(COMMANDS)
    assert program.get_command(context, "nothing") is None
