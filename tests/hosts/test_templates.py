"""The template for GitLab CI and the hooks for pre-commit: what they run, run."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.hosts.projects import FIRST, SECOND, commit, git, programs
from tests.support.action_steps import load
from tests.support.code_host_servers import GitLab, code_host

ROOT = Path(__file__).parents[2]
TEMPLATE = load(ROOT / "ci" / "gitlab.yml")
HOOKS = {hook["id"]: hook for hook in load(ROOT / ".pre-commit-hooks.yaml")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A merge request that drops a column."""
    folder = tmp_path / "repository"
    (folder / "migrations").mkdir(parents=True)
    (folder / "migrations" / "0001_create.yaml").write_text(FIRST)
    git(folder, "init", "--quiet")
    commit(folder, "before")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (folder / "migrations" / "0002_drop.yaml").write_text(SECOND)
    commit(folder, "after")
    return folder


def variables(**more: str) -> dict[str, str]:
    """Those of the template, as GitLab sets them."""
    return {name: spec["value"] for name, spec in TEMPLATE["variables"].items()} | more


def job(name: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a job's script as GitLab's runner does: its lines one after another, in one shell."""
    tools = programs(folder.parent / "bin")
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(TEMPLATE[name]["script"])],
        cwd=folder,
        env={
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CI_PROJECT_DIR": str(folder),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def test_gitlab_gets_findings_beside_the_lines_and_among_the_tests(repository: Path) -> None:
    given = variables(
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
        CI_MERGE_REQUEST_DIFF_BASE_SHA=subprocess.check_output(
            ["git", "rev-parse", "origin/main"], cwd=repository, text=True
        ).strip(),
    )
    code, log = job("icemigrate-check", repository, given)
    assert code == 3
    assert "migrations/0002_drop.yaml:1:1: error:" in log
    reports = TEMPLATE["icemigrate-check"]["artifacts"]["reports"]
    quality = json.loads((repository / reports["codequality"]).read_text(encoding="utf-8"))
    assert {issue["location"]["path"] for issue in quality} == {"migrations/0002_drop.yaml"}
    assert len({issue["fingerprint"] for issue in quality}) == len(quality)
    assert list(ElementTree.parse(repository / reports["junit"]).iter("failure"))


@pytest.mark.parametrize("may_write", [True, False])
def test_gitlab_gets_a_comment_where_there_is_a_token(repository: Path, may_write: bool) -> None:
    with code_host(GitLab(may_write=may_write)) as host:
        given = variables(CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", **host.environment(repository.parent))
        for _ in range(2):
            code, log = job("icemigrate-check", repository, given)
            assert code == 3
            assert ("There is no comment" in log) is not may_write
    assert len(host.comments) == (1 if may_write else 0)
    assert [c["body"] for c in host.comments if "missing-allow" not in c["body"]] == []


def test_gitlab_plans_where_that_is_asked_for(repository: Path) -> None:
    (repository / "migrations" / "0002_drop.yaml").unlink()
    code, log = job("icemigrate-plan", repository, variables(ICEMIGRATE_PLAN_ARGS="--to 0001"))
    assert code == 0
    assert "CREATE TABLE local.shop.orders" in log
    for path in TEMPLATE["icemigrate-plan"]["artifacts"]["paths"]:
        assert (repository / path).stat().st_size > 0


def test_gitlab_plans_no_change_of_a_fork() -> None:
    rules = [" ".join(rule["if"].split()) for rule in TEMPLATE["icemigrate-plan"]["rules"]]
    assert all(rule.startswith('$ICEMIGRATE_PLAN == "true" && ') for rule in rules)
    for_requests = [rule for rule in rules if "merge_request_event" in rule]
    assert for_requests
    assert all(
        rule.endswith("&& $CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID")
        for rule in for_requests
    )


def test_what_prepares_a_job_of_gitlab_is_a_script() -> None:
    script = "\n".join(TEMPLATE[".icemigrate"]["before_script"])
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert '"$ICEMIGRATE_SOURCE"' in script
    lacks = TEMPLATE[".icemigrate"]["before_script"][0]
    ran = subprocess.run(["bash", "-c", lacks], env={}, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "ICEMIGRATE_SOURCE: set it to what pip installs" in ran.stderr
    for name in ("icemigrate-check", "icemigrate-plan"):
        assert TEMPLATE[name]["extends"] == ".icemigrate"


def hook(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a hook as pre-commit does: its entry, in the repository's top."""
    one = HOOKS[name]
    assert one["pass_filenames"] == "false"
    tools = programs(folder.parent / "bin")
    return subprocess.run(
        one["entry"].split(),
        cwd=folder,
        env={"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_stops_a_commit_with_mistakes(name: str, repository: Path) -> None:
    ran = hook(name, repository)
    assert ran.returncode == 3
    assert "[missing-allow]" in ran.stdout
    path = repository / "migrations" / "0002_drop.yaml"
    path.write_text("allow: [destructive]\n" + SECOND)
    assert hook(name, repository).returncode == 0


def test_a_hook_that_fixes_writes_the_lock_file(repository: Path) -> None:
    lock = repository / "migrations" / "icemigrate.lock"
    hook("icemigrate-check", repository)
    assert not lock.exists()
    (repository / "migrations" / "0002_drop.yaml").write_text("allow: [destructive]\n" + SECOND)
    hook("icemigrate-check-fix", repository)
    assert lock.exists()


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        ("migrations/0001_a.yaml", True),
        ("lake/migrations/2026/0001_a.yml", True),
        ("icemigrate.yaml", True),
        ("migrations/icemigrate.lock", True),
        ("src/app.py", False),
        ("old-icemigrate.yaml", False),
    ],
)
def test_a_hook_starts_when_its_files_change(path: str, starts: bool) -> None:
    for one in HOOKS.values():
        assert bool(re.search(one["files"], path)) is starts


def test_the_hooks_have_what_pre_commit_asks_for() -> None:
    known = {"id", "name", "description", "entry", "language", "files", "pass_filenames"}
    for one in HOOKS.values():
        assert {"id", "name", "entry", "language"} <= one.keys() <= known | {"require_serial"}
        assert one["language"] == "python"
