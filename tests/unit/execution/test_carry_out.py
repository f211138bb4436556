"""Each command runs its plan through ``carry_out``: made again under the lock, and recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile, reconcile
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.errors import StalePlan
from icemigrate.events import Event, SparkStarted, StatementStarted
from icemigrate.execution import carry_out, engine_choice, spark_start
from icemigrate.planning.plan import Plan
from icemigrate.project import Project, open_project
from tests.support.embedded_project import Embedded, applied

FIRST = "tables: [{name: db.t, columns: [{name: id, type: long}], properties: {k: one}}]\n"
SECOND = "tables: [{name: db.t, properties: {k: two}}]\n"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project whose statements the recording engine takes, in the place of Spark."""
    made = applied(tmp_path, FIRST)
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments: {local: {catalog: {type: sqlite}, publish: direct}}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(spark_start, "engine_of", lambda *_: made.engine)
    monkeypatch.setattr(engine_choice, "_metadata_engine", lambda *_, **__: None)
    made.write("0002_k.yaml", SECOND)
    return made


def planned_apply(lake: Embedded, project: Project) -> Plan:
    return plan(project).plan


def planned_rollback(lake: Embedded, project: Project) -> Plan:
    return plan_rollback(project).plan


def planned_reconcile(lake: Embedded, project: Project) -> Plan:
    lake.edit("db.t", {"k": "theirs"})
    return plan_reconcile(project).plan


COMMANDS: list[Any] = [
    pytest.param(planned_apply, apply, "two", id="apply"),
    pytest.param(planned_rollback, rollback, None, id="rollback"),
    pytest.param(planned_reconcile, reconcile, "one", id="reconcile"),
]


@pytest.mark.parametrize(("planned", "run", "value"), COMMANDS)
def test_a_plan_runs_under_the_lock_and_is_recorded(
    lake: Embedded,
    planned: Callable[[Embedded, Project], Plan],
    run: Callable[[Project, Plan], Any],
    value: str | None,
) -> None:
    project = open_project(lake.folder)
    todo = planned(lake, project)
    lake.engine.expect(todo)
    result = run(project, todo)
    lake.save()
    tables = {str(name): table.properties.get("k") for name, table in lake.engine.tables.items()}
    assert tables.get("db.t") == value
    assert result.elapsed_ms >= 0
    assert plan_reconcile(project).plan.is_empty


@pytest.mark.parametrize(("planned", "run"), [(p.values[0], p.values[1]) for p in COMMANDS])
def test_the_time_of_a_run_is_that_of_its_migrations(
    lake: Embedded,
    monkeypatch: pytest.MonkeyPatch,
    planned: Callable[[Embedded, Project], Plan],
    run: Callable[..., Any],
) -> None:
    clock, events = [0.0], list[Event]()

    def engine_of(_session: object, _spark: object, on_start: Callable[[], None]) -> object:
        on_start()
        clock[0] += 60
        return lake.engine

    def listen(event: Event) -> None:
        events.append(event)
        clock[0] += 2 if isinstance(event, StatementStarted) else 0

    project = open_project(lake.folder)
    todo = planned(lake, project)
    lake.engine.expect(todo)
    for module in (carry_out, spark_start):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(spark_start, "engine_of", engine_of)
    monkeypatch.setattr(spark_start, "_is_running", lambda: False)
    result = run(project, todo, on_event=listen)
    assert [event.elapsed for event in events if isinstance(event, SparkStarted)] == [60]
    statements = [event for event in events if isinstance(event, StatementStarted)]
    assert result.elapsed_ms == 2_000 * len(statements) > 0


@pytest.mark.parametrize(("planned", "run", "value"), COMMANDS)
def test_a_plan_that_differs_under_the_lock_does_not_run(
    lake: Embedded,
    planned: Callable[[Embedded, Project], Plan],
    run: Callable[[Project, Plan], Any],
    value: str | None,
) -> None:
    project = open_project(lake.folder)
    todo = planned(lake, project)
    lake.edit("db.t", {"k": "another", "more": "1"})
    calls = len(lake.engine.log)
    with pytest.raises(StalePlan):
        run(project, todo)
    assert not [text for text in lake.engine.log[calls:] if "TBLPROPERTIES" in text or "DROP" in text]
