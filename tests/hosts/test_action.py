"""The GitHub Action and the workflow of `init`: their steps in a shell, with what GitHub sets for them.

The comment goes to a server on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icemigrate.commands.init import init, source_of
from tests.hosts.projects import FIRST, SECOND, commit, git, programs
from tests.support.action_steps import Runner, load
from tests.support.code_host_servers import REPOSITORY, CodeHost, code_host

ROOT = Path(__file__).parents[2]
ACTION = load(ROOT / "action.yml")


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with code_host() as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository whose pull request adds the second file: `origin/main` is what GitHub fetched."""
    folder = tmp_path / "workspace"
    migrations = folder / "migrations"
    migrations.mkdir(parents=True)
    (migrations / "0001_create.yaml").write_text(FIRST)
    git(folder, "init", "--quiet")
    commit(folder, "before")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (migrations / "0002_drop.yaml").write_text(SECOND)
    commit(folder, "after")
    return folder


def runner(workspace: Path, host: CodeHost, head: str = REPOSITORY, **more: str) -> Runner:
    temp = workspace.parent / "temp"
    temp.mkdir(exist_ok=True)
    environment = {
        **host.environment(temp, head),
        "GITHUB_BASE_REF": "main",
        "GITHUB_ACTOR": "ada",
        "PYTHONPATH": str(ROOT),
        **more,
    }
    return Runner(workspace, temp, environment)


def act(made: Runner, *, makes_programs: bool = True, **inputs: str) -> int:
    """The action's steps but for the installation, which a test of its own runs."""
    home = made.temp / "icemigrate"
    if makes_programs:
        programs(home / "bin")
    given = {name: spec["default"] for name, spec in ACTION["inputs"].items()} | {
        name.replace("_", "-"): value for name, value in inputs.items()
    }
    made.context |= {
        "github.token": made.environment["GITHUB_TOKEN"],
        "github.action_path": str(ROOT),
        "steps.install.outputs.home": str(home),
    }
    event = json.loads(Path(made.environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    head = event.get("pull_request", {}).get("head", {}).get("repo") or {}
    made.context["github.event.pull_request.head.repo.full_name"] = head.get("full_name", "")
    user = event.get("pull_request", {}).get("user") or {}
    made.context["github.event.pull_request.user.login"] = user.get("login", "")
    made.context |= {f"inputs.{name}": made.value(value) for name, value in given.items()}
    return made.run([step for step in ACTION["runs"]["steps"] if step.get("id") != "install"])


def outputs(made: Runner) -> dict[str, str]:
    return {name: made.value(spec["value"]) for name, spec in ACTION["outputs"].items()}


def test_the_action_checks_what_a_pull_request_adds(workspace: Path, host: CodeHost) -> None:
    made = runner(workspace, host)
    assert act(made) == 3
    assert made.ran == ["Check", "Comment", "Verdict"]
    assert "::error file=migrations/0002_drop.yaml,line=1,col=1,title=icemigrate missing-allow::" in made.log
    assert "file=migrations/0001" not in made.log, "the base has that"
    assert made.summary.startswith("### ❌ icemigrate check")
    (comment,) = host.comments
    assert comment["body"] == f"<!-- icemigrate: check -->\n{made.summary}"
    told = outputs(made)
    assert told["exit-code"] == "3"
    assert told["plan-exit-code"] == ""
    assert json.loads(Path(told["json"]).read_text(encoding="utf-8"))["ok"] is False
    assert json.loads(Path(told["sarif"]).read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert "<failure" in Path(told["junit"]).read_text(encoding="utf-8")


def test_the_next_push_updates_the_comment(workspace: Path, host: CodeHost) -> None:
    assert act(runner(workspace, host)) == 3
    path = workspace / "migrations" / "0002_drop.yaml"
    path.write_text("allow: [destructive]\n" + SECOND)
    made = runner(workspace, host)
    assert act(made, args="--git-base none") == 0
    (comment,) = host.comments
    assert "✅" in comment["body"].splitlines()[1]
    assert "updated the comment" in made.log


def test_a_plan_is_made_where_that_is_trusted(workspace: Path, host: CodeHost) -> None:
    (workspace / "migrations" / "0002_drop.yaml").unlink()
    made = runner(workspace, host)
    assert act(made, args="--git-base none", plan="true") == 0
    assert made.ran == ["Check", "Plan", "Comment", "Verdict"]
    assert outputs(made)["plan-exit-code"] == "0"
    assert "CREATE TABLE local.shop.orders" in made.log
    (comment,) = host.comments
    body = comment["body"]
    assert body.index("### ✅ icemigrate check") < body.index("### icemigrate plan")


@pytest.mark.parametrize("actor", ["ada", "dependabot[bot]"])
def test_no_plan_for_those_who_get_no_credentials(workspace: Path, host: CodeHost, actor: str) -> None:
    (workspace / "migrations" / "0002_drop.yaml").unlink()
    head = "mallory/lake" if actor == "ada" else REPOSITORY
    made = runner(workspace, host, head, GITHUB_ACTOR=actor)
    assert act(made, args="--git-base none", plan="true") == 0
    assert "::notice title=icemigrate::No plan" in made.log
    assert "CREATE TABLE" not in made.log
    assert outputs(made)["plan-exit-code"] == ""


def test_a_plan_that_cannot_be_made_fails_and_is_told(workspace: Path, host: CodeHost) -> None:
    (workspace / "migrations" / "0002_drop.yaml").unlink()
    (workspace / "icemigrate.yaml").write_text(
        "environments: {prod: {catalog: {type: rest, name: lake, uri: '${NOT_SET}'}}}\n"
    )
    made = runner(workspace, host)
    assert act(made, args="--git-base none", plan="true", environment="prod") == 3
    (comment,) = host.comments
    assert "### ❌ icemigrate: 1 environment variable is not set" in comment["body"]


def test_with_detailed_exitcode_something_to_do_is_fine(workspace: Path, host: CodeHost) -> None:
    (workspace / "migrations" / "0002_drop.yaml").unlink()
    made = runner(workspace, host)
    assert act(made, args="--git-base none", plan="true", plan_args="--detailed-exitcode") == 0
    assert outputs(made)["plan-exit-code"] == "2"


def test_without_the_right_to_comment_the_summary_is_enough(workspace: Path, host: CodeHost) -> None:
    host.may_write = False
    made = runner(workspace, host, "mallory/lake")
    assert act(made) == 3, "what the check said, and nothing else"
    assert "::warning title=icemigrate::There is no comment" in made.log
    assert host.comments == []
    assert host.token not in made.log


def test_a_push_is_checked_without_a_comment(workspace: Path, host: CodeHost) -> None:
    made = runner(workspace, host, GITHUB_EVENT_NAME="push", GITHUB_BASE_REF="")
    assert act(made, comment="true") == 3
    assert host.asked == []


def test_inputs_are_words_and_no_commands(workspace: Path, host: CodeHost) -> None:
    (workspace / "migrations" / "0002_drop.yaml").unlink()
    made = runner(workspace, host)
    assert act(made, args="--git-base none; touch $(echo hacked) *", key="lake-1") == 64
    assert not (workspace / "hacked").exists()
    made = runner(workspace, host)
    assert act(made, args="--git-base none", project="$(touch hacked)") == 64
    assert not (workspace / "hacked").exists()


def test_a_project_in_a_folder_is_told_from_the_top(workspace: Path, host: CodeHost) -> None:
    lake = workspace / "lake"
    lake.mkdir()
    shutil.move(workspace / "migrations", lake / "migrations")
    (lake / "icemigrate.yaml").write_text("project: market\n")
    made = runner(workspace, host)
    assert act(made, args="--git-base none", project="lake", key="lake") == 3
    assert "::error file=lake/migrations/0002_drop.yaml," in made.log
    assert host.comments[0]["body"].startswith("<!-- icemigrate: lake -->\n")


def test_the_action_installs_its_own_source(tmp_path: Path, workspace: Path, host: CodeHost) -> None:
    # A copy, since building leaves files beside the source; what it needs comes from this environment.
    source = tmp_path / "action"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "schemas", source / "schemas")
    shutil.copytree(
        ROOT / "icemigrate",
        source / "icemigrate",
        symlinks=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    tools = tmp_path / "tools"
    tools.mkdir()
    # The new environment has the packages of this one, as if it had downloaded them.
    found = tools / "packages.pth"
    found.write_text(f"import sys; sys.path.insert(0, {packages!r})\n")
    (tools / "python").write_text(
        f'#!/bin/sh\n"{sys.executable}" "$@"\nfor folder in "$4"/lib/python*/site-packages; do\n'
        f'  cp "{found}" "$folder"\ndone\n'
    )
    (tools / "python").chmod(0o755)
    made = runner(
        workspace,
        host,
        PATH=f"{tools}{os.pathsep}{os.environ['PATH']}",
        PIP_NO_INDEX="1",
        PIP_NO_DEPS="1",
        PIP_NO_BUILD_ISOLATION="0",
    )
    made.context |= {"github.action_path": str(source)}
    for name in ("venv", "pip", "logging", "ensurepip", "setuptools", "sitecustomize", "click"):
        (workspace / f"{name}.py").write_text("open('executed', 'w')\n")
    (install,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "install"]
    assert made.run([install]) == 0, made.log
    home = Path(made.context["steps.install.outputs.home"])
    assert made.log.splitlines()[-1].startswith("icemigrate ")
    assert not list(tmp_path.rglob("executed")), "no module of the workspace is imported"
    ran = subprocess.run(
        [home / "bin" / "icemigrate", "check"],
        cwd=workspace,
        env={"PYTHONPATH": packages, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (3, "")


def test_every_input_is_described_and_used() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name, spec in ACTION["inputs"].items():
        assert spec["description"]
        assert f"inputs.{name}" in text, name


def workflow(folder: Path) -> dict[str, Any]:
    init(folder)
    commit(folder, "a project")
    document: dict[str, Any] = load(folder / ".github" / "workflows" / "icemigrate.yaml")
    return document


def test_the_workflow_that_init_writes_checks_and_tells(tmp_path: Path, host: CodeHost) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    git(folder, "init", "--quiet")
    document = workflow(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (folder / "migrations" / "0002_drop.yaml").write_text(
        "tables: [{name: demo.events, drop_columns: [kind]}]\n"
    )
    commit(folder, "drop it")
    tools = programs(tmp_path / "bin")
    # What pip is called with, which the action's own test runs in earnest.
    (tools / "python").write_text(
        f'#!/bin/sh\ncase "$*" in *" pip "*) echo "python $*" ;; *) exec {sys.executable} "$@" ;; esac\n'
    )
    (tools / "python").chmod(0o755)
    made = runner(folder, host, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    made.context |= {"github.token": host.token, "vars.ICEMIGRATE_SOURCE": "./icemigrate.whl"}
    job = document["jobs"]["check"]
    assert made.run(job["steps"], job["env"]) == 3
    assert made.ran == ["Install icemigrate", "Check", "Tell"]
    assert f"python -I -m pip install {folder}/./icemigrate.whl\n" in made.log
    assert "::error file=migrations/0002_drop.yaml," in made.log
    assert host.comments[0]["body"].endswith(made.summary)
    assert document["permissions"] == {"contents": "read", "pull-requests": "write"}


def test_the_workflow_says_what_it_lacks_where_nobody_knows_where_to_install_from(
    tmp_path: Path, host: CodeHost
) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    git(folder, "init", "--quiet")
    document = workflow(folder)
    assert document["jobs"]["check"]["env"]["ICEMIGRATE_SOURCE"] == "${{ vars.ICEMIGRATE_SOURCE }}"
    made = runner(folder, host)
    made.context |= {"github.token": host.token, "vars.ICEMIGRATE_SOURCE": ""}
    job = document["jobs"]["check"]
    assert made.run(job["steps"], job["env"]) == 1
    assert "::error title=icemigrate::Set the variable ICEMIGRATE_SOURCE" in made.log


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        ({}, None),
        ({"url": "file:///srv/icemigrate", "dir_info": {"editable": True}}, None),
        (
            {"url": "https://git.example.com/i.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "icemigrate @ git+https://git.example.com/i.git@c0ffee",
        ),
        (
            {"url": "https://me:secret@files.example.com/i.whl", "archive_info": {}},
            "icemigrate @ https://files.example.com/i.whl",
        ),
        ({"url": "https://files.example.com/'i.whl", "archive_info": {}}, None),
    ],
)
def test_what_pip_noted_is_what_the_workflow_installs(noted: dict[str, Any], source: str | None) -> None:
    assert source_of(noted) == source
