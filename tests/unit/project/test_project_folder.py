"""The project of the working directory is found from any folder below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.project import open_project
from icemigrate.project.project_reader import project_folder

TABLE = "tables: [{name: db.t, columns: [{name: id, type: long}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "icemigrate.yaml").write_text("project: shop\n")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_make.yaml").write_text(TABLE)
    (tmp_path / "jobs" / "daily").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("folder", ["", "migrations", "jobs", "jobs/daily"])
def test_commands_work_from_any_folder_of_a_project(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    monkeypatch.chdir(shop / folder)
    assert open_project().root == shop
    assert main(["check"]) == ExitCode.OK
    assert main(["new", "next step"]) == ExitCode.OK
    assert "0002_next_step.yaml" in capsys.readouterr().out
    assert sorted(p.name for p in shop.rglob("*.yaml")) == [
        "0001_make.yaml",
        "0002_next_step.yaml",
        "icemigrate.yaml",
    ]


def test_the_nearest_project_file_counts(shop: Path) -> None:
    (shop / "jobs" / "icemigrate.yaml").write_text("project: jobs\n")
    assert project_folder(shop / "jobs" / "daily") == shop / "jobs"


@pytest.mark.parametrize("mark", ["migrations/icemigrate.lock", ".icemigrate/catalog.db"])
def test_a_project_without_a_file_is_found_too(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_folder(inner) == inner
    (tmp_path / mark).parent.mkdir()
    (tmp_path / mark).touch()
    assert project_folder(inner) == tmp_path


def test_the_search_ends_at_the_top_of_the_repository(shop: Path) -> None:
    (shop / "jobs" / ".git").mkdir()
    assert project_folder(shop / "jobs" / "daily") == shop / "jobs" / "daily"
    assert project_folder(shop / "migrations") == shop


def test_the_search_ends_where_anyone_can_write(shop: Path) -> None:
    """A project file in `/tmp` may be anybody's."""
    shop.chmod(0o777)
    assert project_folder(shop / "jobs") == shop / "jobs"
    assert project_folder(shop) == shop
    (shop / ".git").mkdir()
    assert project_folder(shop / "jobs") == shop
