"""A rolled-back version is given up for good: nothing plans it, and the history keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.abandoned_versions import abandon_versions, record_abandoned
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.commands.status import history, status
from icemigrate.errors import Mistakes, UsageError
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.project import open_project
from icemigrate.render.display import timestamp_text
from icemigrate.render.formats import render
from icemigrate.results.command_results import RepairResult
from tests.support.embedded_project import HISTORY, Embedded, applied

COLUMN = "tables: [{name: db.t, columns: [{name: %s, type: int}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """Versions 1 to 3 of one table; 2 and 3 are rolled back, and 2 has no file any more."""
    made = applied(tmp_path, COLUMN % "a")
    made.write("0002_b.yaml", COLUMN % "b")
    made.write("0003_c.yaml", COLUMN % "c")
    made.apply()
    planned = plan_rollback(open_project(tmp_path), to="1")
    made.engine.expect(planned.plan)
    run_plan(planned.plan, made.engine, Journal(HistoryWriter(made.engine, HISTORY, "market")))
    made.save()
    Path(tmp_path, "migrations", "0002_b.yaml").unlink()
    return made


def abandon(shop: Embedded, *versions: str) -> tuple[str, ...]:
    with open_environment(open_project(shop.folder), None) as world:
        done = record_abandoned(world, versions, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()
    return done


def test_an_abandoned_version_is_shown_and_planned_no_more(shop: Embedded) -> None:
    project = open_project(shop.folder)
    assert "0002 is rolled back, and its file is missing" in render(plan(project))
    assert "`repair --abandon 0002`" in render(plan(project))
    assert abandon(shop, "2", "0002") == ("0002",)
    assert abandon(shop, "2") == ()
    planned = plan(project)
    assert planned.plan.held == ("0003",)
    assert "0002" not in render(planned)
    assert [(m.version, m.state) for m in status(project).migrations] == [
        ("0001", "applied"),
        ("0002", "abandoned"),
        ("0003", "held"),
    ]
    assert "0002     abandoned" in render(status(project))
    (entry,) = [e for e in history(project).events if e.event == "rolled_back" and e.version == "0003"]
    assert f"0003 was rolled back at {timestamp_text(entry.at)}." in render(status(project))
    assert "abandoned: no redo applies it again" in render(history(project))
    with pytest.raises(UsageError, match="--redo 2: 0002 is abandoned") as refused:
        plan(project, redo="2")
    assert refused.value.hint == "put its changes into a new migration"
    # The history can be read by a release that does not know the word.
    assert '"abandoned":true' in shop.engine.tables[HISTORY].properties["icemigrate.applied"]
    assert '"standing":"held"' in shop.engine.tables[HISTORY].properties["icemigrate.applied"]


def test_the_file_of_an_abandoned_version_is_left_out(shop: Embedded) -> None:
    abandon(shop, "3")
    project = open_project(shop.folder)
    assert plan(project).plan.migrations == ()
    with pytest.raises(UsageError, match="no version with a file is rolled back"):
        plan(project, redo="all")
    shop.write("0004_c.yaml", COLUMN % "c")
    assert [m.version for m in plan(project).plan.migrations] == ["0004"]


@pytest.mark.parametrize(
    ("version", "message"),
    [("1", "--abandon 1: 0001 is not rolled back"), ("9", "--abandon 9: 9 is not rolled back")],
)
def test_only_what_is_rolled_back_can_be_abandoned(shop: Embedded, version: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        abandon_versions(open_project(shop.folder), versions=["2", version])
    assert refused.value.message == message
    assert refused.value.hint == "rolled back: 0002, 0003"


def test_the_outcome_says_what_to_do_with_the_file() -> None:
    done = RepairResult("market", "local", abandoned=("0002",), action="abandon")
    assert render(done).startswith("Abandoned 0002 in local: no run applies it again.\nRemove its file")
    nothing = RepairResult("market", "local", action="abandon")
    assert render(nothing) == "market in local: these versions are abandoned already.\n"


def test_an_error_that_a_rolled_back_version_causes_names_the_redo(shop: Embedded) -> None:
    text = "allow: [destructive db.t.c]\nbecause: unused\ntables: [{name: db.t, drop_columns: [c]}]\n"
    shop.write("0004_drop.yaml", text)
    with pytest.raises(Mistakes) as refused:
        plan(open_project(shop.folder))
    (error,) = refused.value.diagnostics
    assert error.message == "there is no column `c` to drop"
    assert error.hint == "0003 is rolled back here: run `icemigrate apply --redo 0003` first"
