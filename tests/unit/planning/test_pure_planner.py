"""The planner asks no catalog: all that it needs is fetched before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.commands import plan as plan_module
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.evidence import environment_undo
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.planning.plan import Plan
from icemigrate.project import open_project
from tests.support.embedded_project import HISTORY, Embedded, applied

CREATE = "tables: [{name: db.t, columns: [{name: a, type: int}, {name: b, type: int}], partition_by: [b]}]\n"
CALLS = [name for name, value in vars(SqliteCatalog).items() if not name.startswith("__") and name != "close"]


@contextmanager
def failing_catalog() -> Iterator[None]:
    """Every call of a catalog fails."""

    def fail(_self: SqliteCatalog, *_args: Any, **_options: Any) -> None:
        raise AssertionError("the planner asked the catalog")

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            is_property = isinstance(getattr(SqliteCatalog, name), property)
            patch.setattr(SqliteCatalog, name, property(fail) if is_property else fail)
        yield


@pytest.fixture
def planners(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the planners that ran, each without a catalog."""
    ran: list[str] = []

    def without_catalog(module: Any, name: str) -> None:
        planner = getattr(module, name)

        def run(*args: Any, **options: Any) -> Any:
            with failing_catalog():
                ran.append(name)
                return planner(*args, **options)

        monkeypatch.setattr(module, name, run)

    without_catalog(plan_module, "plan_migrations")
    without_catalog(plan_module, "plan_baseline")
    without_catalog(environment_undo, "plan_undo")
    return ran


def roll_back(project: Embedded) -> Plan:
    todo = plan_rollback(open_project(project.folder), to="1").plan
    project.engine.expect(todo)
    run_plan(todo, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    return todo


def test_the_double_fails_on_every_call(tmp_path: Path) -> None:
    project = applied(tmp_path, CREATE)
    assert {"load", "wider_files", "tables", "namespaces", "default_location"} <= set(CALLS)
    with failing_catalog(), pytest.raises(AssertionError, match="asked the catalog"):
        plan(open_project(project.folder))


def test_a_plan_of_reused_names_and_a_baseline_are_made_without_the_catalog(
    tmp_path: Path, planners: list[str]
) -> None:
    project = applied(tmp_path, CREATE)
    project.write(
        "0002_m.yaml",
        "tables:\n- {name: db.old, renamed_from: db.t}\n- {name: db.t, columns: [{name: x, type: int}]}\n",
    )
    made = plan(open_project(project.folder)).plan
    locations = [c.change.made.location for c in made.migrations[0].tables[1].changes()]  # type: ignore[attr-defined]
    assert locations[0].endswith("__0002")
    plan(open_project(project.folder), baseline=True, to="2")
    # It has conflicts, so that what a user can do about them is planned too.
    assert [name for name, _ in groupby(planners)][-2:] == ["plan_migrations", "plan_baseline"]


def test_an_undo_and_a_redo_are_planned_without_the_catalog(tmp_path: Path, planners: list[str]) -> None:
    project = applied(tmp_path, CREATE)
    project.write("0002_m.yaml", "tables: [{name: db.t, columns: [{name: c, type: int}]}]\n")
    project.apply()
    roll_back(project)
    assert not plan(open_project(project.folder), redo="2").is_empty
    assert planners[-2:] == ["plan_undo", "plan_migrations"]
