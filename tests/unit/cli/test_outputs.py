"""``--format`` several times: what goes to which file, and what standard output holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from icemigrate.cli import main
from icemigrate.cli.check import command as check_command
from icemigrate.cli.outputs import OutputType
from icemigrate.cli.plan import command as plan_command
from icemigrate.errors import ExitCode
from icemigrate.render.formats import names_for
from icemigrate.results.command_results import CheckResult, PlanResult
from tests.support.embedded_project import Embedded

FIRST = "tables: [{name: shop.orders, columns: [{name: id, type: long}]}]\n"
SECOND = "tables: [{name: shop.orders, drop_columns: [id], columns: [{name: key, type: long}]}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project in a folder of a repository, whose second file lacks a consent."""
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "repository" / "lake"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(folder)
    made = Embedded(folder)
    made.write("0001_create.yaml", FIRST)
    made.write("0002_change.yaml", SECOND)
    return made


@pytest.mark.parametrize(("command", "kind"), [(check_command, CheckResult), (plan_command, PlanResult)])
def test_a_command_offers_every_format_that_shows_its_result(command: object, kind: type) -> None:
    (option,) = [p for p in command.params if p.name == "format"]  # type: ignore[attr-defined]
    assert isinstance(option.type, OutputType)
    assert option.type.names == names_for(kind)


def test_several_outputs_at_once(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    formats = ["text", "sarif=check.sarif", "json=check.json", "gitlab=quality.json", "markdown=check.md"]
    assert main(["check", *(word for name in formats for word in ("--format", name))]) == ExitCode.FINDINGS
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0].startswith("migrations/0002_change.yaml:1:1: error: ")
    assert json.loads((project.folder / "check.json").read_text())["ok"] is False
    # For whoever knows the repository alone, paths begin at its top.
    issue = json.loads((project.folder / "quality.json").read_text())[0]
    assert issue["location"]["path"] == "lake/migrations/0002_change.yaml"
    (run,) = json.loads((project.folder / "check.sarif").read_text())["runs"]
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "lake/migrations/0002_change.yaml"
    assert "lake/migrations/0002" in (project.folder / "check.md").read_text(encoding="utf-8")
    assert sorted(p.name for p in project.folder.iterdir()) == [
        *("check.json", "check.md", "check.sarif", "migrations", "quality.json")
    ]


def test_with_files_alone_standard_output_is_empty(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--format", "junit=junit.xml"]) == ExitCode.FINDINGS
    assert capsys.readouterr() == ("", "")
    assert "<failure" in (project.folder / "junit.xml").read_text()


def test_the_host_says_where_the_repository_is(
    project: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.setenv(variable, str(project.folder.parent.parent))
        main(["check", "--format", "github"])
        assert "file=repository/lake/migrations/" in capsys.readouterr().out
        monkeypatch.setenv(variable, "/somewhere/else")
        main(["check", "--format", "github"])
        assert "file=lake/migrations/" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        (["text", "json"], "several outputs go to standard output (`NAME=FILE` writes to a file)"),
        (["json=a", "text=a"], "several outputs go to `a`"),
        (["sarff=x"], "there is no format `sarff`: did you mean `sarif`?"),
        (["yaml"], "there is no format `yaml`: one of `text`, `json`, `markdown`"),
        (["json="], "`json=` names no file"),
    ],
)
def test_wrong_usage(
    project: Embedded, formats: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *(word for name in formats for word in ("--format", name))]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert [p.name for p in project.folder.iterdir()] == ["migrations"]


def test_a_file_that_cannot_be_written_is_one_error(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["check", "--format", "json", "--format", "sarif=no/such/folder/check.sarif"])
    assert code == ExitCode.ERROR
    out, err = capsys.readouterr()
    # What stands there for a program is the fault alone.
    assert json.loads(out)["error"] == "IcemigrateError"
    assert err == "error: `no/such/folder/check.sarif` cannot be written: no such file or directory\n"


def test_a_folder_is_no_file(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format", "sarif=migrations"]) == ExitCode.ERROR
    assert capsys.readouterr().err == "error: `migrations` cannot be written: is a directory\n"


def test_a_file_that_is_there_is_replaced_as_a_whole(project: Embedded) -> None:
    real = project.folder / "real.json"
    real.write_text("old" * 10_000)
    main(["check", "--format", "json=real.json"])
    assert json.loads(real.read_text())["ok"] is False


def test_a_link_outside_of_the_repository_is_the_users_own_and_stays(
    project: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    real, link = elsewhere / "real.json", elsewhere / "link.json"
    real.write_text("old" * 10_000)
    link.symlink_to(real)
    main(["check", "--format", f"json={link}"])
    assert link.is_symlink()
    assert json.loads(real.read_text())["ok"] is False


@pytest.mark.parametrize("is_folder", [False, True])
def test_an_output_is_not_written_through_a_link_of_the_repository(
    project: Embedded,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    is_folder: bool,
) -> None:
    target = tmp_path_factory.mktemp("elsewhere") / "check.json"
    target.write_text("mine")
    if is_folder:
        (project.folder / "out").symlink_to(target.parent)
    else:
        (project.folder / "out").mkdir()
        (project.folder / "out" / "check.json").symlink_to(target)
    assert main(["check", "--format", "json=out/check.json"]) == ExitCode.ERROR
    assert "error: `out/check.json` cannot be written: it " in capsys.readouterr().err
    assert target.read_text() == "mine"


def test_what_is_no_file_is_written_to_as_it_is(project: Embedded) -> None:
    pipe = project.folder / "pipe"
    os.mkfifo(pipe)
    code = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", code, "check", "--format", "json=pipe"]) as ran:
        assert json.loads(pipe.read_text(encoding="utf-8"))["ok"] is False
    assert ran.returncode == ExitCode.FINDINGS
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "log"])
@pytest.mark.parametrize("mode", ["a", "w"])
def test_what_stands_in_the_file_that_standard_output_goes_to_stays(
    project: Embedded, name: str, mode: str
) -> None:
    log = project.folder / "log"
    log.write_text("earlier\n")
    code = (
        "import sys; from icemigrate.cli import main; print('before'); "
        "code = main(sys.argv[1:]); print('after'); sys.exit(code)"
    )
    with log.open(mode) as stream:
        arguments = [sys.executable, "-c", code, "check", "--format", f"json={name}"]
        assert subprocess.run(arguments, stdout=stream, check=False).returncode == ExitCode.FINDINGS
    lines = log.read_text().splitlines()
    if mode == "a":
        assert lines.pop(0) == "earlier"
    assert (lines[0], lines[-1]) == ("before", "after")
    assert json.loads("".join(lines[1:-1]))["ok"] is False


def test_a_descriptor_that_a_script_opened_is_written_to(project: Embedded) -> None:
    code = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"
    with (project.folder / "log").open("w") as stream:
        stream.write("earlier\n")
        stream.flush()
        number = stream.fileno()
        arguments = [sys.executable, "-c", code, "check", "--format", f"json=/dev/fd/{number}"]
        subprocess.run(arguments, pass_fds=[number], check=False)
    first, rest = (project.folder / "log").read_text().split("\n", 1)
    assert first == "earlier"
    assert json.loads(rest)["ok"] is False


def test_mistakes_of_the_project_file_reach_every_output(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / "icemigrate.yaml").write_text("projcet: market\n")
    formats = ["github", "sarif=check.sarif", "json=check.json", "text=check.txt", "markdown=check.md"]
    assert main(["check", *(word for name in formats for word in ("--format", name))]) == ExitCode.FINDINGS
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"::error file=lake/icemigrate\.yaml,line=1,col=1,title=icemigrate unknown-key::.*\n", out
    )
    assert "[unknown-key]" in err
    (run,) = json.loads((project.folder / "check.sarif").read_text())["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["unknown-key"]
    assert json.loads((project.folder / "check.json").read_text())["exit_code"] == ExitCode.FINDINGS
    assert "[unknown-key]" in (project.folder / "check.txt").read_text()
    assert "unknown-key" in (project.folder / "check.md").read_text(encoding="utf-8")


def test_a_plan_too_has_several_outputs(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    (project.folder / "migrations" / "0002_change.yaml").unlink()
    assert main(["plan", "--format", "text", "--format", "markdown=plan.md"]) == ExitCode.OK
    assert "(1 migration, 1 table)." in capsys.readouterr().out
    assert "### icemigrate plan" in (project.folder / "plan.md").read_text(encoding="utf-8")


def test_a_name_that_is_no_text_is_told_in_every_output(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / "migrations" / os.fsdecode(b"0003_\xff.yaml")).write_text("tabels: []\n")
    names = names_for(CheckResult)
    formats = [f"{name}={name}.out" for name in names]
    assert main(["check", *(word for name in formats for word in ("--format", name))]) == ExitCode.FINDINGS
    for name in names:
        assert "0003" in (project.folder / f"{name}.out").read_text(encoding="utf-8")
        main(["check", "--format", name])
        assert "0003" in capsys.readouterr().out
    for name in ("json", "gitlab", "sarif"):
        json.loads((project.folder / f"{name}.out").read_text(encoding="utf-8"))
    assert "0003_%FF.yaml" in (project.folder / "sarif.out").read_text(encoding="utf-8")
    ElementTree.parse(project.folder / "junit.out")
