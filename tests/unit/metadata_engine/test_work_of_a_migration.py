"""How often a migration in Python reads and writes: on a project of real files and a SQLite catalog."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.history import history_properties
from icemigrate.history.history_properties import DIGEST_KEY, History, decode_history
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.project import Project, open_project

NAMES = [f"db.t{number}" for number in range(3)]


def _write(folder: Path, version: int) -> None:
    path = folder / "migrations" / f"{version:04}_step.yaml"
    path.parent.mkdir(exist_ok=True)
    entries = (f"  - name: {name}\n    columns: [{{name: c{version}, type: int}}]\n" for name in NAMES)
    path.write_text("tables:\n" + "".join(entries), encoding="utf-8")


def _apply(project: Project) -> None:
    apply(project, plan(project).plan)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with three tables, which one version created."""
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    _write(tmp_path, 1)
    made = dataclasses.replace(open_project(tmp_path), apply_with="metadata")
    _apply(made)
    return made


@pytest.fixture
def read(project: Project, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the engine reads each file."""
    counts, original = Counter[str](), TableFiles.read

    def counted(self: TableFiles, location: str) -> bytes:
        counts[location] += 1
        return original(self, location)

    monkeypatch.setattr(TableFiles, "read", counted)
    return counts


def test_versions_of_some_tables_read_each_file_once(
    project: Project, read: Counter[str], tmp_path: Path
) -> None:
    for version in (2, 3):
        _write(tmp_path, version)
    _apply(project)
    metadata = [location for location in read if location.endswith(".metadata.json")]
    assert len(metadata) == len(NAMES) + 1  # the tables and the history; what this process writes, it knows
    assert set(read.values()) == {1}


def test_the_whole_history_is_decoded_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in (2, 3):
        _write(tmp_path, version)
    planned, seen = plan(project).plan, Counter[str]()

    def counted(properties: Mapping[str, str]) -> History:
        seen[properties[DIGEST_KEY]] += 1
        return decode_history(properties)

    monkeypatch.setattr(history_properties, "decode_history", counted)
    apply(project, planned)
    assert seen.total() == 1  # what this process writes, it knows


def test_a_rollback_reads_each_file_once(project: Project, read: Counter[str], tmp_path: Path) -> None:
    _write(tmp_path, 2)
    _apply(project)
    read.clear()
    rollback(project, plan_rollback(project).plan)
    assert set(read.values()) == {1}
