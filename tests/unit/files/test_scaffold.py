"""What ``init`` and ``new`` write is read without a mistake."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
import yaml

from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.files.migration_folder import load_migrations
from icemigrate.files.version_number import Version
from icemigrate.files.write.scaffold import init_files, new_file_name, new_text, slugify, write_new
from icemigrate.project import load_project
from tests.unit.files.examples import migration

NOW = datetime.datetime(2026, 11, 27, 21, 37, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


def versions(*texts: str) -> list[Version]:
    return [Version.parse(text) for text in texts]


def test_a_new_project_has_no_mistakes(tmp_path: Path) -> None:
    written = write_new(tmp_path, init_files("market", "steps"), tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in written} == {
        "icemigrate.yaml",
        "steps/0001_create_events.yaml",
        ".github/workflows/icemigrate.yaml",
        "schemas/migration.schema.json",
        "schemas/project.schema.json",
        ".icemigrate/.gitignore",
    }
    found = load_project(directory=tmp_path)
    assert found.diagnostics == ()
    assert found.project is not None
    assert found.project.name == "market"
    loaded = load_migrations(tmp_path / "steps")
    assert loaded.diagnostics == ()
    assert [table.name for one in loaded.migrations for table in one.tables] == ["demo.events"]


def test_the_commented_environment_is_sound_too(tmp_path: Path) -> None:
    text = init_files("market")["icemigrate.yaml"]
    (tmp_path / "icemigrate.yaml").write_text(text.replace("  # ", "  "))
    found = load_project(directory=tmp_path)
    assert found.diagnostics == ()
    assert found.project is not None
    assert list(found.project.environments) == ["local", "prod"]


def test_the_workflow_checks_pull_requests() -> None:
    workflow = yaml.load(
        init_files("m", "steps")[".github/workflows/icemigrate.yaml"], Loader=yaml.BaseLoader
    )
    assert "steps/**" in workflow["on"]["pull_request"]["paths"]
    commands = [step.get("run", "") for step in workflow["jobs"]["check"]["steps"]]
    assert any(command.startswith("python -I -m icemigrate.cli check ") for command in commands)


def test_the_schemas_that_are_written_are_json() -> None:
    files = init_files("m")
    assert json.loads(files["schemas/migration.schema.json"])["title"] == "Migration file"


@pytest.mark.parametrize(
    ("existing", "name"),
    [
        ([], "0001_rename_volume.yaml"),
        (["0001", "0009"], "0010_rename_volume.yaml"),
        (["1", "9"], "10_rename_volume.yaml"),
        (["001", "3"], "004_rename_volume.yaml"),
        (["9999"], "10000_rename_volume.yaml"),
        (["0001", "20261127190000"], "20261127203700_rename_volume.yaml"),
        (["20261127203700"], "20261127203701_rename_volume.yaml"),
    ],
)
def test_the_next_name(existing: list[str], name: str) -> None:
    assert new_file_name("Rename volume!", versions(*existing), NOW) == name


def test_names_of_files() -> None:
    assert slugify("Größe: rename it!") == "grosse_rename_it"
    assert slugify("x" * 100) == "x" * 60
    with pytest.raises(UsageError, match="is not usable"):
        new_file_name("…", [], NOW)


@pytest.mark.parametrize(
    "title", ["rename volume", "it's: a #1", "null", "true", "yes", "- x", "7", "naïve  move"]
)
def test_a_new_file_says_what_it_does(title: str) -> None:
    found = migration(new_text(title))
    assert found.description == " ".join(title.split())
    assert found.tables == ()


def test_the_commented_table_is_sound_too() -> None:
    text = new_text("x").replace("# tables:", "tables:").replace("#   ", "  ").replace("# -", "  -")
    assert [table.renames for table in migration(text).tables] == [(("old_name", "new_name"),)]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(UsageError, match="`b` already exists"):
        write_new(tmp_path, {"a": "1", "b": "2"}, tmp_path)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b").read_text() == "mine"


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "migrations").write_text("")
    with pytest.raises(IcemigrateError, match="cannot be written"):
        write_new(tmp_path, {"migrations/x.yaml": ""}, tmp_path)


def test_a_folder_that_is_a_link_to_itself_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "migrations").symlink_to("migrations")
    with pytest.raises(IcemigrateError, match="is a broken link") as refused:
        write_new(tmp_path / "migrations", {"a": "1"}, tmp_path)
    assert refused.value.hint == "repair the link or remove it"
