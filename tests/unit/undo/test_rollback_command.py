from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate import executor
from icemigrate.app.opening import open_project
from icemigrate.app.rolling_back import plan_rollback, require_undoable
from icemigrate.cli import main
from icemigrate.errors import Mistakes
from icemigrate.history.journal import Journal
from icemigrate.history.write import HistoryWriter
from icemigrate.undo import Options
from tests.embedded import HISTORY, Embedded

CREATE = "{tables: [{name: db.t, columns: [{name: a, type: int}], properties: {k: v}}]}\n"


@pytest.fixture
def project(tmp_path: Path) -> Embedded:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.write("0001_make.yaml", CREATE)
    made.write("0002_set.yaml", "{description: Set k, tables: [{name: db.t, properties: {k: w}}]}\n")
    made.apply()
    return made


def run(project: Embedded, *args: str) -> int:
    return main(["--project", str(project.folder), *args])


def test_the_plan_is_shown_and_nothing_is_done_without_consent(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "rollback") == 64
    out, err = capsys.readouterr()
    assert "undo 0002  Set k" in out
    assert "Rollback: 1 migration, 1 table: 0 to add, 1 to change, 0 to drop" in out
    assert "--auto-approve" in err


def test_a_fact_that_somebody_changed_since_is_a_conflict_with_its_own_ways_out(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    from icemigrate.frozen import replace
    from icemigrate.model.names import TableName

    name = TableName.parse("db.t")
    table = project.engine.tables[name]
    project.engine.tables[name] = replace(table, properties={**table.properties, "k": "theirs"})
    project.save()
    assert run(project, "rollback") == 4
    out, _ = capsys.readouterr()
    assert "It cannot be rolled back as it is: 1 conflict." in out
    assert "rollback --partial" in out


def test_what_a_rollback_in_part_has_left_is_told_from_then_on(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.edit("db.t", {"k": "theirs"})
    world = open_project(project.folder)
    options = Options(partial=True)
    plan = plan_rollback(world, options=options).plan
    executor.apply(plan, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    assert run(project, "status") == 0
    out, _ = capsys.readouterr()
    assert "0002 was rolled back in part; left is db.t: properties.k being theirs.\n" in out
    assert "market in local: at 0001, with parts of 0002, nothing pending, 1 held." in out
    assert run(project, "history") == 0
    out, _ = capsys.readouterr()
    assert "Set k – in part; left is db.t: properties.k being theirs" in out


def test_what_was_rolled_back_is_held_and_pending_nowhere(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = plan_rollback(open_project(project.folder)).plan
    project.engine.expect(todo)
    executor.apply(todo, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    assert run(project, "status") == 0
    out, _ = capsys.readouterr()
    (row,) = (line.split() for line in out.splitlines() if line.startswith("db.t"))
    assert row == ["db.t", "0001", "there", "–"]
    assert "at 0001, nothing pending, 1 held." in out
    assert run(project, "plan", "--redo", "2", "--out", str(project.folder / "redo.plan")) == 0
    out, _ = capsys.readouterr()
    assert "0002  Set k" in out
    assert "SET TBLPROPERTIES" in out
    assert json.loads((project.folder / "redo.plan").read_text(encoding="utf-8"))["redo"] == "0002"


@pytest.mark.parametrize("to", ["2", "0002"])
def test_the_last_version_has_nothing_behind_it(
    project: Embedded, capsys: pytest.CaptureFixture[str], to: str
) -> None:
    assert run(project, "rollback", "--to", to) == 0
    assert "Nothing to roll back: 0002 is the last that is applied." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("rollback", "--to", "7"), 64, "no migration of this version was applied"),
        (("rollback", "--to", "1", "--only", "2"), 64, "exclude each other"),
        (("rollback", "--discard-new-data", "--metadata-only"), 64, "exclude each other"),
        (("rollback", "--only", "1"), 4, "0002 (db.t)"),
        (("apply", "--redo", "2"), 64, "is not held"),
        (("apply", "--redo", "2", "--to", "2"), 64, "one version alone"),
        (("plan", "--redo", "2"), 64, "is not held"),
        (("plan", "--redo", "2", "--to", "2"), 64, "one version alone"),
    ],
)
def test_what_cannot_be_asked_for(
    project: Embedded, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], code: int, message: str
) -> None:
    assert run(project, *args) == code
    assert message in capsys.readouterr().err


def test_nothing_to_roll_back_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.write("0001_make.yaml", CREATE)
    made.save()
    assert run(made, "rollback", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["rolled_back"] == []


def test_no_file_allows_what_an_undo_destroys(project: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("0003_add.yaml", "{tables: [{name: db.t, columns: [{name: b, type: int}]}]}\n")
    project.apply()
    assert run(project, "rollback") == 64
    out, _ = capsys.readouterr()
    assert "destructive: the values of" in out
    assert "allowed" not in out


def test_a_refused_rollback_is_no_mistake_in_a_file(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("0003_drop.yaml", "{allow: [destructive], tables: [{name: db.t, drop: true}]}\n")
    project.apply()
    name = next(name for name in project.engine.tables if name.namespace == ("icemigrate_trash",))
    del project.engine.tables[name]
    project.save()
    refused = plan_rollback(open_project(project.folder))
    with pytest.raises(Mistakes, match=r"the tables cannot go back: 0003: `db.t` cannot come back") as failed:
        require_undoable(refused)
    assert "files" not in failed.value.message.partition(":")[0]
    assert failed.value.exit_code == 3
    assert run(project, "rollback") == 3


def test_a_refill_that_has_nothing_to_bring_back_says_so(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "rollback", "--refill") == 64
    assert "0002: `--refill` has no value to bring back" in "".join(capsys.readouterr())
    assert run(project, "rollback") == 64
    assert "--refill" not in "".join(capsys.readouterr())
