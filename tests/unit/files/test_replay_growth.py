"""Replaying the migrations of one table takes work that grows with their number, and not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.replay_speed import KINDS, make
from icemigrate.commands.check import check
from icemigrate.project.project_reader import load_project


def calls(act: Callable[[], object]) -> int:
    """How many functions of Python it calls: the same number in every run, unlike a time."""
    count = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


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
