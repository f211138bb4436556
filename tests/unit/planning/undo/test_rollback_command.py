from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.rollback import plan_rollback, require_undoable
from icemigrate.errors import Mistakes
from icemigrate.execution.run import run_plan
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import open_project
from tests.support.embedded_project import HISTORY, Embedded

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
    assert "Rollback: 0 to add, 1 to change, 0 to drop (1 migration, 1 table)" in out
    assert "--auto-approve" in err


def test_a_fact_that_somebody_changed_since_is_a_conflict_with_its_own_ways_out(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    from icemigrate.frozen import replace
    from icemigrate.iceberg.names import TableName

    name = TableName.parse("db.t")
    table = project.engine.tables[name]
    project.engine.tables[name] = replace(table, properties={**table.properties, "k": "theirs"})
    project.save()
    assert run(project, "rollback") == 4
    out, _ = capsys.readouterr()
    assert "This plan cannot be rolled back: 1 conflict." in out
    assert "rollback --partial" in out


def test_what_a_rollback_in_part_has_left_is_told_from_then_on(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    project.edit("db.t", {"k": "theirs"})
    world = open_project(project.folder)
    options = UndoOptions(partial=True)
    plan = plan_rollback(world, options=options).plan
    run_plan(plan, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    assert run(project, "status") == 0
    out, _ = capsys.readouterr()
    assert "0002 was rolled back in part; still present: db.t: properties.k being theirs.\n" in out
    assert "market in local: at 0001, with parts of 0002, nothing pending, 1 rolled back." in out
    assert run(project, "history") == 0
    out, _ = capsys.readouterr()
    assert "Set k – in part; left is db.t: properties.k being theirs" in out


def test_what_was_rolled_back_is_held_and_pending_nowhere(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = plan_rollback(open_project(project.folder)).plan
    project.engine.expect(todo)
    run_plan(todo, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    assert run(project, "status") == 0
    out, _ = capsys.readouterr()
    (row,) = (line.split() for line in out.splitlines() if line.startswith("db.t"))
    assert row == ["db.t", "0001", "there", "–"]
    assert "at 0001, nothing pending, 1 rolled back." in out
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
        (("rollback", "--to", "7"), 64, "no migration of this version is applied"),
        (("rollback", "--to", "1", "--only", "2"), 64, "cannot be combined"),
        (("rollback", "--discard-new-data", "--metadata-only"), 64, "cannot be combined"),
        (("rollback", "--only", "1"), 4, "0002 (db.t)"),
        (("apply", "--redo", "2"), 64, "is not rolled back"),
        (("apply", "--redo", "2", "--to", "2"), 64, "only rolled-back versions"),
        (("plan", "--redo", "2"), 64, "is not rolled back"),
        (("plan", "--redo", "2", "--to", "2"), 64, "only rolled-back versions"),
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
    with pytest.raises(
        Mistakes, match=r"cannot restore the tables: 0003: `db.t` cannot be restored"
    ) as failed:
        require_undoable(refused)
    assert "files" not in failed.value.message.partition(":")[0]
    assert failed.value.exit_code == 3
    assert run(project, "rollback") == 3


def test_a_refill_that_has_nothing_to_bring_back_says_so(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "rollback", "--refill") == 64
    assert "0002: `--refill` has no value to restore" in "".join(capsys.readouterr())
    assert run(project, "rollback") == 64
    assert "--refill" not in "".join(capsys.readouterr())


def files_of(project: Embedded) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in project.folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["text", "json", "markdown"])
def test_a_dry_run_shows_the_plan_in_every_format_and_changes_nothing(
    project: Embedded, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    before = files_of(project)
    assert run(project, "rollback", "--dry-run", "--format", name) == 0
    out, err = capsys.readouterr()
    assert "undo 0002" in out or json.loads(out)["migrations"][0]["direction"] == "rollback"
    assert "properties.k" in out or "set k (w → v)" in out
    assert err == ""
    assert files_of(project) == before


def test_a_dry_run_shows_the_plan_that_the_rollback_shows(
    project: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ((), ("--to", "0"), ("--only", "2")):
        assert run(project, "rollback", *options) == 64
        shown, _ = capsys.readouterr()
        assert run(project, "rollback", *options, "--dry-run") == 0
        assert capsys.readouterr().out == shown != ""


def test_a_dry_run_ends_with_the_codes_of_a_plan(project: Embedded) -> None:
    assert run(project, "rollback", "--dry-run", "--detailed-exitcode") == 2
    project.edit("db.t", {"k": "theirs"})
    assert run(project, "rollback", "--dry-run", "--detailed-exitcode") == 4
    assert run(project, "rollback", "--dry-run", "--partial") == 0


def test_a_dry_run_with_nothing_to_roll_back_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.save()
    for options in ((), ("--detailed-exitcode",)):
        assert run(made, "rollback", "--dry-run", *options) == 0
        assert "Nothing to" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [("--detailed-exitcode",), ("--format", "markdown"), ("--format", "markdown=x")]
)
def test_options_of_a_plan_need_a_dry_run(
    project: Embedded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    monkeypatch.chdir(project.folder)
    assert run(project, "rollback", "--auto-approve", *options) == 64
    _, err = capsys.readouterr()
    assert f"`{' '.join(options).partition('=')[0]}` needs `--dry-run`" in err
