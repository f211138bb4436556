"""What ``check`` tells of a change beside its base, from real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate import Project
from icemigrate.cli import main
from icemigrate.commands.check import check
from icemigrate.commands.comparison_base import GitBase, chosen_base
from icemigrate.commands.squash import squash
from icemigrate.diagnostics import Severity
from icemigrate.errors import GitError
from icemigrate.project import open_project
from icemigrate.render.findings_text import check_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.vcs import git
from tests.support.git_projects import QUOTES, TRADES, GitProject, column, is_of_rule

DROP = "tables: [{name: db.trades, drop_columns: [price]}]\n"
"""A consent is missing."""
NEAR = "tables: [{name: db.trade, columns: [{name: id, type: long}]}]\n"
"""A warning: the name is very near to another one."""


@pytest.fixture
def shop(tmp_path: Path) -> GitProject:
    """Two migrations on ``main``, and a branch on which nothing was done yet."""
    shop = GitProject.make(tmp_path / "shop")
    shop.commit(_0001_trades=TRADES, _0002_quotes=QUOTES)
    shop.branch("work")
    return shop


def move_main(shop: GitProject, **files: str) -> None:
    """Let ``main`` go on."""
    shop.switch("main")
    shop.commit(**files)
    shop.switch("work")


def test_a_change_that_adds_a_sound_file_is_fine(shop: GitProject) -> None:
    assert shop.findings() == []
    shop.write("0003_venue.yaml", column("venue"))
    assert shop.findings() == []
    shop.commit()
    assert shop.findings() == []


def test_findings_of_new_files_are_told_and_warnings_of_old_ones_are_not(shop: GitProject) -> None:
    move_main(shop, _0003_near=NEAR)
    shop.git("merge", "--quiet", "main")
    assert [f.split()[1] for f in shop.findings(None)] == ["near-name"]
    shop.write("0004_drop.yaml", DROP)
    assert shop.findings() == ["0004_drop.yaml:1 missing-allow"]


def at_home(
    shop: GitProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str
) -> str:
    """What the command tells a person."""
    for name in ("CI", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    main(["check", "--project", str(shop.folder), *args])
    return capsys.readouterr().out


LEFT_OUT = "Omitted: 2 older findings of files that are already on {}; `icemigrate check --git-base none`"


def test_at_home_old_warnings_are_left_out_and_counted(
    shop: GitProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    move_main(shop, _0003_near=NEAR)
    shop.git("merge", "--quiet", "main")
    told = at_home(shop, monkeypatch, capsys)
    assert "near-name" not in told
    assert LEFT_OUT.format("main") in told
    assert "near-name" in at_home(shop, monkeypatch, capsys, "--git-base", "none")
    assert "near-name" in at_home(shop, monkeypatch, capsys, "--format", "json"), "programs get all of it"
    shop.write("0003_near.yaml", NEAR + "# changed\n")
    told = at_home(shop, monkeypatch, capsys)
    assert "near-name" in told
    assert LEFT_OUT.format("main").replace("2 older findings", "1 older finding") in told
    monkeypatch.setenv("CI", "true")
    main(["check", "--project", str(shop.folder)])
    assert "near-name" in capsys.readouterr().out


def test_at_home_errors_are_told_and_an_edited_file_is_no_error(
    shop: GitProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    move_main(shop, _0003_drop=DROP)
    shop.git("merge", "--quiet", "main")
    assert "missing-allow" in at_home(shop, monkeypatch, capsys)
    shop.write("0003_drop.yaml", column("venue"))
    assert "edited-migration" not in at_home(shop, monkeypatch, capsys)


def test_at_home_the_remotes_branch_is_the_main_one_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = GitProject.make(tmp_path / "origin")
    origin.commit(_0001_trades=TRADES, _0002_near=NEAR)
    origin.git("branch", "--quiet", "--move", "trunk")
    origin.git("clone", "--quiet", str(origin.top), str(tmp_path / "clone"))
    clone = GitProject(tmp_path / "clone", tmp_path / "clone")
    assert LEFT_OUT.format("origin/trunk") in at_home(clone, monkeypatch, capsys)
    clone.commit(_0003_near=NEAR.replace("trade", "tradez"))
    told = at_home(clone, monkeypatch, capsys)
    assert "0003_near.yaml:1:17: warning" in told
    assert LEFT_OUT.format("origin/trunk") in told


def test_on_main_without_a_remote_findings_of_committed_files_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = GitProject.make(tmp_path / "alone")
    alone.write("0001_trades.yaml", TRADES)
    alone.write("0002_near.yaml", NEAR)
    assert "near-name" in at_home(alone, monkeypatch, capsys), "there is no commit yet"
    alone.commit()
    told = at_home(alone, monkeypatch, capsys)
    assert "near-name" not in told
    assert LEFT_OUT.format("main") in told


def test_where_no_branch_is_known_to_be_the_main_one_all_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = GitProject.make(tmp_path / "alone")
    alone.commit(_0001_trades=TRADES, _0002_near=NEAR)
    alone.git("branch", "--quiet", "--move", "trunk")
    assert "near-name" in at_home(alone, monkeypatch, capsys), "no branch is called main, and no remote"
    shutil.rmtree(alone.top / ".git")
    assert "near-name" in at_home(alone, monkeypatch, capsys)


def test_what_rules_have_against_old_files_is_no_matter_of_a_change(shop: GitProject) -> None:
    move_main(shop, _0003_drop=f"allow: [destructive]\n{DROP}")
    shop.git("merge", "--quiet", "main")
    assert "IM104" in str(shop.findings(None, with_rules=True))
    assert shop.findings(with_rules=True) == []
    shop.write("0004_drop.yaml", f"allow: [destructive]\n{DROP.replace('price', 'id')}")
    assert {f.partition(":")[0] for f in shop.findings(with_rules=True)} == {"0004_drop.yaml"}


def test_an_error_of_an_old_file_is_told_as_such(shop: GitProject) -> None:
    move_main(shop, _0003_drop=DROP)
    shop.git("merge", "--quiet", "main")
    shop.write("0004_bad.yaml", "tables: [{name: db.trades, colums: []}]\n")
    assert shop.findings() == ["!0003_drop.yaml:1 missing-allow", "0004_bad.yaml:1 unknown-key"]


def test_an_old_file_that_is_wrong_through_a_new_one_is_the_changes_matter(shop: GitProject) -> None:
    move_main(shop, _0005_cost="tables: [{name: db.trades, renames: {price: cost}}]\n")
    shop.git("merge", "--quiet", "main")
    assert shop.findings() == []
    shop.write("0004_drop.yaml", f"allow: [destructive]\n{DROP}")
    assert shop.findings() == ["0005_cost.yaml:1 unknown-column"]


def test_comments_line_breaks_and_layout_are_no_edit(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", f"# Of trades\r\n{TRADES}")
    assert shop.findings() == []
    shop.write("0001_trades.yaml", TRADES.replace("\n", "\r\n"))
    assert shop.findings() == []


def test_git_that_converts_line_breaks_changes_nothing(shop: GitProject) -> None:
    (shop.top / ".gitattributes").write_text("*.yaml text eol=crlf\n")
    shop.commit(_0003_near=NEAR)
    shop.path("0003_near.yaml").unlink()
    shop.git("checkout", "--quiet", "--", ".")
    assert b"\r\n" in shop.path("0003_near.yaml").read_bytes()
    assert shop.findings("HEAD") == []


def test_a_file_whose_comment_changed_is_looked_at(shop: GitProject) -> None:
    move_main(shop, _0003_near=NEAR)
    shop.git("merge", "--quiet", "main")
    assert shop.findings() == []
    shop.write("0003_near.yaml", f"{NEAR}# That is meant.\n")
    assert [f.split()[1] for f in shop.findings()] == ["near-name"]


def test_an_edited_migration_is_an_error(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    result = check(open_project(shop.folder), GitBase("main", "main"))
    found = next(d for d in result.diagnostics if not is_of_rule(d))
    assert (found.code, found.severity) == ("edited-migration", Severity.ERROR)
    assert "git checkout" in (found.hint or "")
    assert result.base == "main"


def test_the_lock_file_is_not_to_be_renewed_for_what_is_to_be_brought_back(shop: GitProject) -> None:
    check(open_project(shop.folder), fix=True)
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    shop.write("0003_venue.yaml", column("venue"))
    assert shop.findings(None) == ["0001_trades.yaml:1 lock-stale", "0003_venue.yaml:1 lock-stale"]
    assert shop.findings() == ["0001_trades.yaml:1 edited-migration", "0003_venue.yaml:1 lock-stale"]


def test_the_way_back_that_is_told_works(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    told = check(open_project(shop.folder), GitBase("main", "main")).diagnostics
    found = next(d for d in told if not is_of_rule(d))
    assert found.hint is not None
    command = found.hint.partition("`git ")[2].partition("`")[0]
    shop.git(*command.split())
    assert shop.findings() == []


def test_an_edit_of_the_base_itself_is_not_this_changes_matter(shop: GitProject) -> None:
    move_main(shop, _0001_trades=TRADES.replace("double", "float"))
    shop.write("0003_venue.yaml", column("venue"))
    assert shop.findings() == []


def test_mending_a_file_that_could_not_be_read_is_no_edit(shop: GitProject) -> None:
    move_main(shop, _0003_bad="tables: [")
    shop.git("merge", "--quiet", "main")
    assert shop.findings() == ["!0003_bad.yaml:1 yaml-syntax"]
    shop.write("0003_bad.yaml", column("venue"))
    assert shop.findings() == []


def test_a_deleted_migration_is_an_error(shop: GitProject) -> None:
    shop.path("0002_quotes.yaml").unlink()
    assert shop.findings() == ["0002_quotes.yaml:1 deleted-migration"]


def test_another_name_for_the_same_version_is_no_edit(shop: GitProject) -> None:
    shop.path("0002_quotes.yaml").rename(shop.path("2_of_quotes.yml"))
    assert shop.findings() == []


def test_another_number_is_recognized_as_the_same_file(shop: GitProject) -> None:
    shop.path("0002_quotes.yaml").rename(shop.path("0003_quotes.yaml"))
    assert shop.findings() == ["0003_quotes.yaml:1 renumbered-migration"]
    shop.write("0003_quotes.yaml", QUOTES.replace("long", "int"))
    assert shop.findings() == ["0002_quotes.yaml:1 deleted-migration"]


def test_a_squash_deletes_what_it_stands_for(shop: GitProject) -> None:
    squash(open_project(shop.folder), "0002")
    assert shop.findings() == []


def test_a_squash_of_edited_files_does_not(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    squash(open_project(shop.folder), "0002")
    assert shop.findings() == ["0001_trades.yaml:1 deleted-migration"]


def test_a_version_that_the_base_has_got_since_is_taken(shop: GitProject) -> None:
    shop.commit(_0003_venue=column("venue"))
    move_main(shop, _0003_side=column("side"))
    assert shop.findings() == ["0003_venue.yaml:1 version-taken"]


def test_the_same_file_on_both_sides_is_not_taken(shop: GitProject) -> None:
    shop.commit(_0003_venue=column("venue"))
    move_main(shop, _0003_venue=f"# Picked.\n{column('venue')}")
    assert shop.findings() == []


@pytest.mark.parametrize("name", ["0002_a", "0002_z"])
def test_a_version_that_another_file_of_the_base_has_is_told_of_the_new_one(
    shop: GitProject, name: str
) -> None:
    shop.write(f"{name}.yaml", column("venue"))
    assert shop.findings() == [f"{name}.yaml:1 version-taken"]


def test_lists_of_the_project_file_count(shop: GitProject) -> None:
    (shop.folder / "icemigrate.yaml").write_text("lists: {tenants: [acme]}\n")
    for_each = (
        "tables: [{name: 'db.${tenant}', for_each: {tenant: tenants}, columns: [{name: id, type: long}]}]\n"
    )
    shop.commit(_0003_tenants=for_each)
    assert shop.findings("HEAD") == []
    (shop.folder / "icemigrate.yaml").write_text("lists: {tenants: [acme, globex]}\n")
    assert shop.findings("HEAD") == ["0003_tenants.yaml:1 edited-migration"]
    (shop.folder / "icemigrate.yaml").unlink()
    assert "0003_tenants.yaml" in shop.findings("HEAD")[0]


def test_a_project_in_a_subfolder_with_odd_names(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path / "lager ünd", "daten/straße 1")
    shop.commit(**{"_0001_größe now": TRADES, "_0002_quotes": QUOTES})
    shop.branch("work")
    assert shop.findings() == []
    shop.write("0001_größe now.yaml", TRADES.replace("double", "float"))
    assert shop.findings() == ["0001_größe now.yaml:1 edited-migration"]


def test_a_base_without_the_folder_makes_everything_new(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    (shop.top / "README").write_text("Nothing yet\n")
    shop.commit()
    shop.branch("work")
    shop.write("0001_trades.yaml", TRADES)
    shop.write("0002_drop.yaml", DROP)
    assert shop.findings() == ["0002_drop.yaml:1 missing-allow"]


def test_a_worktree_is_read_like_any_other(shop: GitProject, tmp_path: Path) -> None:
    shop.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"), "main")
    there = GitProject(tmp_path / "tree", tmp_path / "tree")
    there.write("0001_trades.yaml", TRADES.replace("double", "float"))
    assert there.findings() == ["0001_trades.yaml:1 edited-migration"]


def test_a_submodule_is_its_own_repository(shop: GitProject, tmp_path: Path) -> None:
    outer = GitProject.make(tmp_path / "outer")
    outer.git("submodule", "--quiet", "add", str(shop.top), "tables")
    outer.commit()
    inner = GitProject(outer.top / "tables", outer.top / "tables")
    inner.write("0001_trades.yaml", TRADES.replace("double", "float"))
    assert inner.findings("HEAD") == ["0001_trades.yaml:1 edited-migration"]


def test_the_folder_of_a_hook_is_not_taken_for_ours(
    shop: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    assert shop.findings() == ["0001_trades.yaml:1 edited-migration"]


@pytest.mark.parametrize("ref", ["nowhere", "--help", "", "main^{tree}", "a b", "main\x00"])
def test_a_ref_that_is_none_is_one_clear_message(shop: GitProject, ref: str) -> None:
    with pytest.raises(GitError, match="this clone has no commit"):
        shop.findings(ref)


def test_without_a_repository_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_trades.yaml").write_text(TRADES)
    with pytest.raises(GitError, match="is not in a readable Git repository"):
        check(open_project(tmp_path), GitBase("main", "main"))


def test_without_git_it_is_said(shop: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GitError, match="cannot find `git` on the path"):
        shop.findings()


def test_without_a_commit_it_is_said(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    with pytest.raises(GitError, match="no commit to compare with"):
        shop.findings()


def test_histories_with_nothing_in_common_are_told(shop: GitProject) -> None:
    shop.git("checkout", "--quiet", "--orphan", "alone")
    shop.commit(_0003_venue=column("venue"))
    with pytest.raises(GitError, match="no common ancestor"):
        shop.findings()


@pytest.fixture
def shallow(shop: GitProject, tmp_path: Path) -> GitProject:
    """What CI has by default: the newest commit of the branch alone."""
    shop.commit(_0003_venue=column("venue"))
    url = shop.top.as_uri()
    shop.git("clone", "--quiet", "--depth=1", "--branch=work", url, str(tmp_path / "clone"))
    return GitProject(tmp_path / "clone", tmp_path / "clone")


def test_a_shallow_clone_is_told_how_to_be_whole(shallow: GitProject) -> None:
    with pytest.raises(GitError) as error:
        shallow.findings("origin/main")
    assert "fetch-depth: 0" in (error.value.hint or "")
    shallow.git("fetch", "--quiet", "--depth=1", "origin", "main:main")
    with pytest.raises(GitError, match="the clone is shallow"):
        shallow.findings("main")
    shallow.git("fetch", "--quiet", "--unshallow", "origin", "main:main")
    assert shallow.findings("main") == []


def test_a_base_that_ci_names_and_the_clone_lacks_is_a_warning(shallow: GitProject) -> None:
    shallow.write("0004_drop.yaml", DROP)
    base = GitBase("origin/main", "origin/main", is_named=False)
    told = check(open_project(shallow.folder), base).diagnostics
    assert [(d.code, d.severity.value) for d in told if not is_of_rule(d)] == [
        ("no-git-base", "warning"),
        ("missing-allow", "error"),
    ]


def test_git_that_does_not_answer_is_a_fault(
    shop: GitProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sleeper = tmp_path / "bin" / "git"
    sleeper.parent.mkdir()
    sleeper.write_text("#!/bin/sh\nexec sleep 30\n")
    sleeper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sleeper.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git, "_TIMEOUT", 0.2)
    with pytest.raises(GitError, match="did not answer"):
        shop.findings()


def test_a_repository_with_other_hashes(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    shutil.rmtree(shop.top / ".git")
    shop.git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    shop.commit(_0001_trades=TRADES)
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    assert shop.findings() == ["0001_trades.yaml:1 edited-migration"]


GITHUB = {"GITHUB_WORKSPACE": "/srv", "GITHUB_BASE_REF": "main"}
GITLAB = {
    "CI_PROJECT_DIR": "/srv",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "develop",
}


@pytest.mark.parametrize(
    ("option", "environment", "expected"),
    [
        (None, {}, None),
        (None, GITHUB, GitBase("origin/main", "origin/main", is_named=False)),
        (None, GITHUB | {"GITHUB_BASE_REF": ""}, None),
        (None, GITHUB | {"GITHUB_WORKSPACE": "/elsewhere"}, None),
        (None, GITLAB, GitBase("abc", "origin/develop", is_named=False)),
        (
            None,
            {"CI_PROJECT_DIR": "/srv", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc"},
            GitBase("abc", "abc", False),
        ),
        ("v1", GITHUB, GitBase("v1", "v1")),
        ("none", GITHUB, None),
    ],
)
def test_the_base_is_what_is_named_else_what_ci_says(
    option: str | None, environment: dict[str, str], expected: GitBase | None
) -> None:
    assert chosen_base(option, environment, Path("/srv/project")) == expected


def test_gitlab_finds_a_version_taken_on_the_target_branch(shop: GitProject) -> None:
    begun_at = shop.git("rev-parse", "main").strip()
    shop.commit(_0003_venue=column("venue"))
    move_main(shop, _0003_side=column("side"))
    shop.git("update-ref", "refs/remotes/origin/main", "main")
    environment = {
        "CI_PROJECT_DIR": str(shop.top),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": begun_at,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }
    base = chosen_base(None, environment, shop.folder)
    assert [d.code for d in check(open_project(shop.folder), base).diagnostics] == ["version-taken"]


def test_github_finds_its_base_by_itself(shop: GitProject) -> None:
    shop.git("update-ref", "refs/remotes/origin/main", "main")
    shop.path("0002_quotes.yaml").unlink()
    environment = os.environ | {"GITHUB_WORKSPACE": str(shop.top), "GITHUB_BASE_REF": "main"}
    ran = run_check(shop, environment)
    assert ran.returncode == 3
    assert "[deleted-migration]" in ran.stdout
    ran = run_check(shop, environment, "--git-base", "none")
    assert (ran.returncode, "deleted" in ran.stdout) == (0, False)


def run_check(
    shop: GitProject, environment: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "icemigrate.cli", "check", *options],
        cwd=shop.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_text_says_what_was_compared_with(shop: GitProject) -> None:
    result = Project(shop.folder).check("main")
    assert check_text(result, PLAIN_STYLE).endswith("new since main: no findings.\n")


def test_a_version_that_main_has_got_since_is_an_error_without_a_base(shop: GitProject) -> None:
    def errors() -> list[str]:
        found = check(open_project(shop.folder), compares_versions=True).diagnostics
        return [d.code for d in found if d.severity is Severity.ERROR]

    shop.branch("late")
    shop.write("0009_mine.yaml", column("mine"))
    assert errors() == []
    shop.switch("main")
    shop.path("0009_mine.yaml").unlink()
    shop.commit(_0009_theirs=column("theirs"))
    shop.switch("late")
    shop.write("0009_mine.yaml", column("mine"))
    assert errors() == ["version-taken"]
    shop.write("0009_theirs.yaml", column("theirs"))
    assert errors() == ["duplicate-version"]
    shop.path("0009_theirs.yaml").unlink()
    shop.path("0009_mine.yaml").rename(shop.path("0010_mine.yaml"))
    assert errors() == []
