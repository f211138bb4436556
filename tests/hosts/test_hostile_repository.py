"""A hostile repository against every command that reads files alone, the hooks, and every step of the Action.

No trick of it is executed, no file outside of it is read or written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from icemigrate.files.write.scaffold import init_files
from tests.hosts import hostile
from tests.hosts.hostile import SECRET, Hostile
from tests.hosts.projects import git, programs
from tests.hosts.test_action import ACTION, ROOT, act, runner
from tests.hosts.test_templates import HOOKS, TEMPLATE, job, variables
from tests.support.code_host_servers import REPOSITORY, CodeHost, GitLab, code_host

FORMATS = ("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
_SCRIPT = "import sys; from icemigrate.cli import main; sys.exit(main())"
"""What the script that pip installs runs; as there, the working directory is not on Python's path."""


def run(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with a `PATH` that begins with the working directory."""
    return subprocess.run(
        [sys.executable, "-I", "-c", _SCRIPT, *args],
        cwd=folder,
        env={
            "PATH": f":.:{os.environ['PATH']}",
            "HOME": str(folder.parent),
            "ICEMIGRATE_ARCHIVE": "off",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def no_harm(made: Hostile, *ran: subprocess.CompletedProcess[str] | str) -> None:
    """Nothing was executed, nothing from outside was printed, nobody saw a traceback."""
    assert made.executed() == []
    for one in ran:
        printed = one if isinstance(one, str) else one.stdout + one.stderr
        assert SECRET not in printed
        assert "Traceback" not in printed
        assert "bug in icemigrate" not in printed


@pytest.fixture
def made(tmp_path: Path) -> Hostile:
    return hostile.repository(tmp_path)


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with code_host() as one:
        yield one


def test_the_marks_tell_when_a_trick_is_executed(made: Hostile) -> None:
    hostile.add_code(made)
    subprocess.run([sys.executable, "-c", "import yaml"], cwd=made.top, check=False, capture_output=True)
    # `git` in the folder itself, as anybody might start it there.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    git_there = ["git", "rev-parse", "--verify", "refs/heads/main^{commit}"]
    subprocess.run(git_there, cwd=made.migrations, env=plain, check=False, capture_output=True)
    assert {"yaml", "git in migrations/"} <= set(made.executed())


def test_no_command_executes_code_of_the_repository(made: Hostile) -> None:
    hostile.add_code(made)
    outputs = [part for name in FORMATS for part in ("--format", f"{name}=reports/{name}.txt")]
    (made.top / "reports").mkdir()
    checked = run(made.top, "check", *outputs[2:], "--format", "text")
    based = run(made.top, "check", "--git-base", "origin/main")
    ran = [
        checked,
        based,
        run(made.top, "check", "--fix", "--git-base", "none"),
        run(made.top / "migrations", "check", "--project", "..", "--git-base", "main"),
        *(
            run(made.top, *line.split())
            for line in (
                "plan",
                "status",
                "show",
                "rules",
                "history",
                "rebase",
                "revert 2",
                "squash --through 2",
            )
        ),
        run(made.top, "new", "another one"),
        run(made.top, "check", GITHUB_WORKSPACE=str(made.top), GITHUB_BASE_REF="main", CI="true"),
    ]
    (made.top / "icemigrate.yaml").unlink()
    ran.append(run(made.top, "init"))
    no_harm(made, *ran, *(path.read_text() for path in (made.top / "reports").iterdir()))
    assert "0002_drop.yaml" in checked.stdout, "the change is looked at all the same"
    assert "IM111" in based.stdout
    assert [one.returncode for one in ran if one.returncode not in (0, 3)] == []


def test_a_module_that_is_run_imports_nothing_from_the_working_directory(made: Hostile) -> None:
    for name in (
        "yaml",
        "click",
        "msgspec",
        "deepdiff",
        "logging",
        "json",
        "pathlib",
        "subprocess",
        "importlib",
    ):
        made.write(f"{name}.py", f"open({str(made.marks)!r}, 'a').write({name!r})\n")
    ran = subprocess.run(
        [sys.executable, "-m", "icemigrate.cli", "check", "--git-base", "none"],
        cwd=made.top,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    no_harm(made, ran)


def test_no_command_reads_files_from_outside(made: Hostile) -> None:
    hostile.add_links(made)
    outside = made.state_outside()
    (made.top / "reports").mkdir()
    outputs = [part for name in FORMATS for part in ("--format", f"{name}=reports/{name}.txt")]
    ran = [
        run(made.top, "check", *outputs[2:], "--format", "text"),
        run(made.top, "check", "--git-base", "origin/main", "--format", "github"),
        run(made.top, "check", "--fix"),
        *(run(made.top, command) for command in ("plan", "status", "show", "rules")),
        run(made.top, "check", "--project", "migrations/through"),
        run(made.top, "check", "--project", "migrations/0003_secret.yaml"),
        run(made.top, "comment", "migrations/0003_secret.yaml"),
        run(made.top, "apply", "migrations/0003_secret.yaml", "--auto-approve"),
    ]
    no_harm(made, *ran, *(path.read_text() for path in (made.top / "reports").iterdir()))
    assert made.state_outside() == outside
    first = ran[0].stdout
    for name in ("0003_secret", "0004_relative", "0005_git", "0007_device", "0008_folder", "0011_through"):
        assert f"migrations/{name}.yaml:1:1: error: the file is not read: it leads" in first, name
    for name in ("0006_loop", "0009_pipe"):
        assert f"migrations/{name}.yaml:1:1: error: the file cannot be read:" in first, name
    assert first.count("[outside-repository]") >= 6 + 7


def test_sql_is_searched_within_the_repository_alone(made: Hostile) -> None:
    """The migrations are sound here, so that the search takes place."""
    made.link("models/secret.sql", made.outside / "secret.sql")
    made.link("models/outside", made.outside)
    made.link("models/loop", "..")
    made.link("models/again", ".")
    made.link("models/sources.yml", made.outside / "folder" / "sources.yml")
    os.mkfifo(made.top / "models" / "pipe.sql")
    made.write(
        "icemigrate.yaml",
        "project: lake\nimpact: [/, '../**/*.sql', models, 'models/**/*.sql', models/outside]\n",
    )
    ran = run(made.top, "check", "--git-base", "origin/main")
    no_harm(made, ran)
    assert "models/orders.sql:1:12: error: `note` is `note` of `shop.orders`" in ran.stdout
    for path in ("/", "../**/*.sql", "models/outside"):
        assert (
            f"cannot read the SQL at `{path}`: it leads out of the repository [outside-repository]"
            in ran.stdout
        )
    assert (
        "models/secret.sql:1:1: warning: this may use what migrations change, and was not searched: "
        "the file is not read: it leads out of the repository [IM114]" in ran.stdout
    )
    assert str(made.outside) not in ran.stdout


@pytest.mark.parametrize("migrations", ["../outside", "link", ".git", "/etc"])
def test_the_migrations_lie_in_the_repository(made: Hostile, migrations: str) -> None:
    made.link("link", made.outside)
    made.write("icemigrate.yaml", f"project: lake\nmigrations: {migrations}\n")
    outside = made.state_outside()
    for command in (["check", "--fix"], ["new", "a file"]):
        ran = run(made.top, *command)
        no_harm(made, ran)
        assert ran.returncode == 3
        assert "[outside-repository]" in ran.stdout + ran.stderr
    assert made.state_outside() == outside


def test_no_command_writes_through_links(made: Hostile) -> None:
    hostile.add_written_links(made)
    outside = made.state_outside()
    for command in (
        ["check", "--fix"],
        ["check", "--format", "json=check.json"],
        ["check", "--format", "json=reports/check.json"],
        ["plan"],
        ["plan", "--out", "check.json"],
        ["status"],
        ["comment", "check.md"],
        ["new", "another one"],
    ):
        ran = run(made.top, *command, GITHUB_REPOSITORY=REPOSITORY)
        no_harm(made, ran)
        assert ran.returncode != 0 or command[0] == "new", "the new file itself lies in the repository"
        assert made.state_outside() == outside, command


def test_init_and_new_write_into_no_linked_folder(made: Hostile) -> None:
    hostile.add_folder_links(made)
    outside = made.state_outside()
    for command in (["init"], ["new", "another one"]):
        ran = run(made.top, *command)
        no_harm(made, ran)
        assert ran.returncode != 0
        assert "it leads out of the repository" in ran.stderr
    assert made.state_outside() == outside


@pytest.mark.parametrize("hook", HOOKS)
def test_the_hooks_of_pre_commit(made: Hostile, hook: str) -> None:
    hostile.add_code(made)
    # As Git sets it for a hook.
    ran = run(
        made.top,
        *HOOKS[hook]["entry"].split()[1:],
        GIT_DIR=".",
        GIT_INDEX_FILE="index",
        GIT_PREFIX="migrations/",
    )
    no_harm(made, ran)
    assert ran.returncode in (0, 3)


@pytest.mark.parametrize("tricks", ["code", "links"])
def test_every_step_of_the_action(made: Hostile, host: CodeHost, tricks: str) -> None:
    (hostile.add_code if tricks == "code" else hostile.add_links)(made)
    outside = made.state_outside()
    acted = runner(made.top, host, CATALOG_CREDENTIAL="s3cret", PYTHONPATH=".", GITHUB_TOKEN="t0ken")
    code = act(acted, plan="true")
    assert acted.ran == ["Check", "Plan", "Comment", "Verdict"]
    assert code == 3
    no_harm(made, acted.log, acted.summary, *(comment["body"] for comment in host.comments))
    assert host.comments
    assert made.state_outside() == outside


def test_every_step_of_the_workflow_of_init(made: Hostile, host: CodeHost) -> None:
    hostile.add_code(made)
    tools = programs(made.top.parent / "tools")
    # The installation itself is the Action's, whose test runs it in a hostile workspace.
    (tools / "python").write_text(
        f'#!/bin/sh\ncase "$*" in *" pip "*) exit ;; *) exec {sys.executable} "$@" ;; esac\n'
    )
    acted = runner(made.top, host, PATH=f"{tools}:{os.environ['PATH']}", PYTHONPATH=".")
    acted.context |= {"github.token": host.token, "vars.ICEMIGRATE_SOURCE": "icemigrate"}
    text = init_files("lake")[".github/workflows/icemigrate.yaml"]
    (job_of_init,) = yaml.load(text, Loader=yaml.BaseLoader)["jobs"].values()
    assert acted.run(job_of_init["steps"], job_of_init["env"]) == 3
    assert acted.ran == ["Install icemigrate", "Check", "Tell"]
    no_harm(made, acted.log, acted.summary, *(comment["body"] for comment in host.comments))
    assert host.comments


def test_only_the_step_that_plans_sees_credentials(made: Hostile, host: CodeHost) -> None:
    acted = runner(made.top, host, CATALOG_CREDENTIAL="s3cret", AWS_SECRET_ACCESS_KEY="s3cret")
    seen = acted.temp / "seen"
    seen.mkdir()
    tools = programs(acted.temp / "icemigrate" / "bin")
    python = tools / "python"
    python.rename(tools / "real")
    python.write_text(f'#!/bin/sh\nenv > "{seen}/$4"\nexec "{tools}/real" "$@"\n')
    python.chmod(0o755)
    act(acted, makes_programs=False, plan="true")
    found = {path.name: path.read_text() for path in seen.iterdir()}
    assert set(found) == {"check", "plan", "comment"}
    assert [name for name, text in found.items() if "s3cret" in text] == ["plan"]
    assert [name for name, text in found.items() if host.token in text] == ["comment"]


def test_the_job_of_gitlab_writes_through_no_link(made: Hostile) -> None:
    hostile.add_written_links(made)
    (made.migrations / "icemigrate.lock").unlink()
    outside = made.state_outside()
    with code_host(GitLab()) as server:
        given = variables(CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", **server.environment(made.top.parent))
        code, log = job("icemigrate-check", made.top, given)
    assert code == 3
    no_harm(made, log, *(comment["body"] for comment in server.comments))
    assert made.state_outside() == outside
    assert not (made.top / TEMPLATE["icemigrate-check"]["artifacts"]["reports"]["junit"]).is_symlink()


def test_a_git_folder_that_leads_into_the_tree_is_not_read(made: Hostile, tmp_path: Path) -> None:
    """As in an archive that is unpacked; a commit holds no `.git`."""
    hostile.add_code(made)
    project = made.top / "nested"
    (project / "migrations").mkdir(parents=True)
    (project / "migrations" / "0001_create.yaml").write_text(
        made.migrations.joinpath("0001_create.yaml").read_text()
    )
    (project / "migrations" / "0002_drop.yaml").write_text(
        "tables: [{name: shop.orders, drop_columns: [note]}]\n"
    )
    for target in ("../migrations", str(made.migrations), "../migrations/deep/er"):
        (project / ".git").write_text(f"gitdir: {target}\n")
        plain, based = run(project, "check"), run(project, "check", "--git-base", "main")
        no_harm(made, plain, based)
        assert "which is among the files of a repository" in based.stderr
    (project / ".git").unlink()
    (project / ".git").symlink_to("../migrations")
    no_harm(made, run(project, "check"), run(project, "check", "--git-base", "main"))


def test_what_a_partial_clone_lacks_is_not_fetched(made: Hostile) -> None:
    started = made.top.parent / "ssh"
    started.write_text(f"#!/bin/sh\n{made.mark('ssh')}\nexit 1\n")
    started.chmod(0o755)
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": "ssh://git.example.invalid/x",
        "remote.origin.promisor": "true",
        "core.sshCommand": str(started),
        "core.fsmonitor": str(started),
        "protocol.ssh.allow": "always",
    }
    for name, value in settings.items():
        git(made.top, "config", name, value)
    (made.top / ".git" / "refs" / "remotes" / "origin" / "main").write_text("1234567890" * 4 + "\n")
    ran = (
        run(made.top, "check", "--git-base", "origin/main"),
        run(made.top, "check", GIT_SSH_COMMAND=str(started)),
    )
    no_harm(made, *ran)
    assert "this clone has no commit, branch or tag `origin/main`" in ran[0].stderr


def test_python_is_started_without_the_working_directory_everywhere() -> None:
    texts = [
        (ROOT / "action.yml").read_text(encoding="utf-8"),
        (ROOT / "ci" / "gitlab.yml").read_text(encoding="utf-8"),
        init_files("lake")[".github/workflows/icemigrate.yaml"],
    ]
    for text in texts:
        started = re.findall(r"^(?! *#).*?\bpython\"? (-\S+.*)", text, re.MULTILINE)
        assert started
        assert [arguments for arguments in started if not arguments.startswith("-I ")] == []


@pytest.mark.parametrize(
    ("event", "is_trusted"),
    [
        *((name, True) for name in ("push", "schedule", "workflow_dispatch", "merge_group", "pull_request")),
        *((name, False) for name in ("pull_request_target", "issue_comment", "workflow_run", "issues")),
        *(
            (name, False)
            for name in ("pull_request_review", "repository_dispatch", "fork", "watch", "discussion", "")
        ),
    ],
)
def test_a_plan_is_made_for_the_listed_events_alone(
    tmp_path: Path, host: CodeHost, event: str, is_trusted: bool
) -> None:
    (tmp_path / "workspace").mkdir()
    acted = runner(tmp_path / "workspace", host, GITHUB_EVENT_NAME=event)
    tools = programs(acted.temp / "icemigrate" / "bin")
    (tools / "python").write_text('#!/bin/sh\necho "ran $4"\n')
    context = {"steps.install.outputs.home": str(tools.parent), "inputs.plan": "true"}
    acted.context |= context | {"github.event.pull_request.head.repo.full_name": REPOSITORY}
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "plan"]
    assert acted.run([step]) == 0
    assert ("ran plan" in acted.log) is is_trusted
    assert ("No plan" in acted.log) is not is_trusted
    # Who runs it again is not who wrote it.
    acted.context |= {"github.event.pull_request.user.login": "dependabot[bot]"}
    acted.log = ""
    assert acted.run([step]) == 0
    assert "ran plan" not in acted.log
