"""After `rollback --to N` one run applies all versions again; a version without a file holds up none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.errors import Mistakes, UsageError
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.command_results import PlanResult, RollbackResult
from tests.support.embedded_project import HISTORY, Embedded, applied

COLUMN = "tables: [{name: db.t, columns: [{name: %s, type: int}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """Versions 1 to 4 of one table; 2 to 4 are rolled back."""
    made = applied(tmp_path, "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n")
    for number, column in ((2, "b"), (3, "c"), (4, "d")):
        made.write(f"000{number}_{column}.yaml", COLUMN % column)
    # The same column again, so that a redo of 4 waits for one of 3.
    made.write("0004_d.yaml", "tables: [{name: db.t, columns: [{name: c, type: long}]}]\n")
    made.apply()
    run(made, plan_rollback(open_project(tmp_path), to="1"))
    return made


def run(shop: Embedded, planned: PlanResult) -> None:
    assert planned.ready, render(planned)
    shop.engine.expect(planned.plan)
    run_plan(planned.plan, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()


def versions(planned: PlanResult) -> list[str]:
    return [m.version for m in planned.plan.migrations]


@pytest.mark.parametrize(
    ("redo", "expected"),
    [
        ("all", ["0002", "0003", "0004"]),
        ("3..4", ["0003", "0004"]),
        (["4", "3"], ["0003", "0004"]),
        (["2", "2..3"], ["0002", "0003"]),
        ("2 4..9 3", ["0002", "0003", "0004"]),
    ],
)
def test_several_versions_are_planned_in_order(
    shop: Embedded, redo: str | list[str], expected: list[str]
) -> None:
    planned = plan(open_project(shop.folder), redo=redo)
    assert versions(planned) == expected
    assert all(m.is_redo for m in planned.plan.migrations)
    assert planned.ready
    saved = parse_plan_file(plan_file_text(planned.plan), "plan.json")
    assert saved == planned.plan
    assert json.loads(render(planned, "json"))["redo"] == " ".join(expected)


def test_one_run_applies_all_of_them_with_their_field_ids(shop: Embedded) -> None:
    from icemigrate.iceberg.names import TableName

    run(shop, plan(open_project(shop.folder), redo="all"))
    fields = shop.engine.tables[TableName.parse("db.t")].schema.fields
    assert [(f.name, f.id) for f in fields] == [("a", 1), ("b", 2), ("c", 3)]
    assert plan(open_project(shop.folder)).plan.held == ()


def test_a_version_without_a_file_holds_up_none(shop: Embedded) -> None:
    Path(shop.folder, "migrations", "0002_b.yaml").unlink()
    project = open_project(shop.folder)
    assert versions(plan(project, redo="all")) == ["0003", "0004"]
    with pytest.raises(UsageError, match=r"--redo 2: 0002 is rolled back, but its file is missing"):
        plan(project, redo="2")
    Path(shop.folder, "migrations", "0003_c.yaml").unlink()
    # 4 changes a column of 3: its file builds on 3 no more.
    shop.write("0004_d.yaml", COLUMN % "c")
    assert plan(project, redo="4").ready


@pytest.mark.parametrize(
    ("redo", "message"),
    [
        ("1..1", "--redo 1..1: no version with a file is rolled back in this range"),
        ("2..", "--redo 2..: a range has two versions"),
        ("..3", "--redo ..3: a range has two versions"),
        ("1", "--redo 1: 0001 is not rolled back"),
    ],
)
def test_what_is_no_rolled_back_version_is_refused(shop: Embedded, redo: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan(open_project(shop.folder), redo=redo)
    assert message in refused.value.message


def test_all_is_refused_where_nothing_is_rolled_back(tmp_path: Path) -> None:
    shop = applied(tmp_path, COLUMN % "a")
    with pytest.raises(UsageError, match="no version with a file is rolled back"):
        plan(open_project(shop.folder), redo="all")


def test_a_rollback_of_several_versions_names_the_one_command_that_applies_them_again() -> None:
    done = RollbackResult("market", "local", ("0010", "0009", "0008"), 100)
    assert "`icemigrate apply --redo 0008..0010` applies them again" in render(done)
    done = RollbackResult("market", "local", ("0010",), 100)
    assert "`icemigrate apply --redo 0010` applies it again" in render(done)


def test_a_rolled_back_exchange_of_names_is_named_as_the_cause_of_an_error(tmp_path: Path) -> None:
    made = applied(
        tmp_path,
        "tables: [{name: db.a, columns: [{name: x, type: int}]}, "
        "{name: db.b, columns: [{name: y, type: int}]}]\n",
    )
    made.write(
        "0002_exchange.yaml",
        "allow: [incompatible]\n"
        "tables: [{name: db.a, renamed_from: db.b}, {name: db.b, renamed_from: db.a}]\n",
    )
    made.apply()
    run(made, plan_rollback(open_project(tmp_path), to="1"))
    made.write("0003_z.yaml", "tables: [{name: db.a, renames: {y: z}}, {name: db.b, renames: {x: z}}]\n")
    with pytest.raises(Mistakes) as mistakes:
        plan(open_project(tmp_path))
    hint = "0002 is rolled back here: run `icemigrate apply --redo 0002` first"
    assert [d.hint for d in mistakes.value.diagnostics] == [hint, hint]
