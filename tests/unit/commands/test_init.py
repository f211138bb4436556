from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from icemigrate.cli import main
from icemigrate.commands.init import init
from icemigrate.errors import ExitCode, UsageError
from icemigrate.files.write.scaffold import init_files


def git(folder: Path, *arguments: str) -> None:
    """Run Git in a folder."""
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


GITHUB, GITLAB = ".github/workflows/icemigrate.yaml", ".gitlab-ci.yml"


@pytest.mark.parametrize(
    ("remote", "ci"),
    [
        (None, GITHUB),
        ("https://github.com/me/lake.git", GITHUB),
        ("git@github.example.com:gitlab/lake.git", GITHUB),
        ("git@gitlab.com:me/github.git", GITLAB),
        ("ssh://git@gitlab.example.com:2222/me/lake", GITLAB),
        ("https://gitlab@git.example.com/me/lake", None),
        ("../gitlab", None),
        ("git@gitlab.example.com:github-mirror/lake.git", GITLAB),
        ("https://notgithub.example.com/me/lake", None),
    ],
)
def test_the_git_remote_chooses_the_ci(tmp_path: Path, remote: str | None, ci: str | None) -> None:
    git(tmp_path, "init", "--quiet")
    if remote is not None:
        git(tmp_path, "remote", "add", "origin", remote)
    init(tmp_path / "below")
    found = [name for name in (GITHUB, GITLAB) if (tmp_path / "below" / name).exists()]
    assert found == ([] if ci is None else [ci])


def test_a_ci_file_below_the_top_of_the_repository_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "--quiet")
    assert main(["init", str(tmp_path / "below"), "--ci", "gitlab"]) == ExitCode.OK
    assert f"{GITLAB}: code hosts read it only at the top" in capsys.readouterr().err
    assert main(["init", str(tmp_path), "--ci", "gitlab"]) == ExitCode.OK
    assert "code hosts" not in capsys.readouterr().err


def test_the_pipeline_runs_nothing_of_an_address(tmp_path: Path) -> None:
    source = "icemigrate @ https://git.example.com/$(touch${IFS}made)`touch${IFS}made`.zip"
    text = init_files("lake", source=source, ci="gitlab")[GITLAB]
    (job,) = yaml.safe_load(text).values()
    script = job["before_script"][0] + '\nprintf %s "$ICEMIGRATE_SOURCE"'
    for given, expected in (({}, source), ({"ICEMIGRATE_SOURCE": "other"}, "other")):
        ran = subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ci", "file"), [("github", GITHUB), ("gitlab", GITLAB), ("none", None)])
def test_an_option_chooses_the_ci(tmp_path: Path, ci: str, file: str | None) -> None:
    assert main(["init", str(tmp_path), "--ci", ci]) == ExitCode.OK
    found = [name for name in (GITHUB, GITLAB) if (tmp_path / name).exists()]
    assert found == ([] if file is None else [file])


def test_the_pipeline_of_gitlab_checks_merge_requests_and_an_existing_one_stays(tmp_path: Path) -> None:
    init(tmp_path / "new", "gitlab")
    document = yaml.load((tmp_path / "new" / GITLAB).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    (job,) = document.values()
    assert job["rules"][0]["changes"][0] == "migrations/**/*"
    assert all(isinstance(line, str) for line in (*job["before_script"], *job["script"]))
    assert any("python -I -m icemigrate.cli check" in line for line in job["script"])
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / GITLAB).write_text("test: {script: [make]}\n")
    assert (str(tmp_path / "old" / GITLAB), False) in init(tmp_path / "old", "gitlab")
    assert (tmp_path / "old" / GITLAB).read_text() == "test: {script: [make]}\n"


def test_an_empty_project_has_no_migration_and_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-q", "init", "quiet"]) == ExitCode.OK
    assert tuple(capsys.readouterr()) == ("", "")
    assert main(["init", "--empty"]) == ExitCode.OK
    assert "icemigrate new" in capsys.readouterr().err
    assert list((tmp_path / "migrations").glob("*.yaml")) == []
    assert main(["check"]) == ExitCode.OK
    assert main(["new", "create events"]) == ExitCode.OK
    assert (tmp_path / "migrations" / "0001_create_events.yaml").is_file()


@pytest.mark.parametrize("inner", ["migrations", "new/deeper"])
def test_a_folder_inside_a_project_gets_no_project_of_its_own(tmp_path: Path, inner: str) -> None:
    init(tmp_path, "none")
    with pytest.raises(UsageError) as refused:
        init(tmp_path / inner)
    assert "is inside the project of" in refused.value.message
    assert not list(tmp_path.glob("*/**/icemigrate.yaml"))
