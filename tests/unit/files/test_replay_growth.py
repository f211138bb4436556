"""Replaying the migrations of one table takes work that grows with their number, and not with its square."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from bench.replay_speed import KINDS, make
from icemigrate.commands.check import check
from icemigrate.project.project_reader import load_project
from tests.support.call_counts import calls


@pytest.mark.parametrize("kind", KINDS)
def test_twice_as_many_migrations_take_about_twice_as_many_calls(tmp_path: Path, kind: str) -> None:
    counts = []
    for migrations in (150, 300):
        folder = tmp_path / str(migrations)
        make(folder, migrations, kind, columns=100)
        project = load_project(folder).project
        assert project is not None
        counts.append(calls(partial(check, project)))
    few, many = counts
    assert many / few < 2.4
