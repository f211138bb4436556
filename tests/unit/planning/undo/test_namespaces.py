"""Namespaces that a migration made go with its undo, where nothing is left in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.execution.failures import Undone
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.history.undo_record_codec import undo_from_json, undo_to_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.undo import NamespaceContents
from icemigrate.planning.undo.undo_inputs import emptied_namespaces
from icemigrate.project import open_project
from icemigrate.render.formats import render
from tests.support.embedded_project import HISTORY, Embedded, applied

T = TableName.parse("db.t")
DB, DEEP = ("db",), ("db", "deep")
COLUMNS = "columns: [{name: a, type: int}]"


@pytest.fixture
def project(tmp_path: Path) -> Embedded:
    return applied(tmp_path, f"tables: [{{name: db.t, {COLUMNS}}}]\n")


def roll_back(project: Embedded, to: str = "0") -> str:
    """Take all back; what the plan said."""
    result = plan_rollback(open_project(project.folder), to=to)
    project.engine.expect(result.plan)
    run_plan(result.plan, project.engine, Journal(HistoryWriter(project.engine, HISTORY, "market")))
    project.save()
    return render(result)


def dropped(project: Embedded) -> list[str]:
    return [text for text in project.engine.log if text.startswith("drop namespace")]


def test_a_namespace_that_a_migration_made_goes_with_it_and_comes_with_its_redo(project: Embedded) -> None:
    text = roll_back(project)
    assert "- drop namespace db, left empty" in text
    assert "0 to add, 0 to change, 2 to drop" in text
    assert dropped(project) == ["drop namespace db"]
    redo = plan(open_project(project.folder), redo="0001")
    assert "+ create namespace db" in render(redo)


def test_it_is_declared_no_more(project: Embedded) -> None:
    roll_back(project)
    project.write("0002_other.yaml", f"tables: [{{name: other.t, {COLUMNS}}}]\n")
    (migration,) = plan(open_project(project.folder)).plan.migrations
    assert migration.create_namespaces == (("other",),)


def test_one_in_which_somebody_has_a_table_stays(project: Embedded) -> None:
    theirs = TableName.parse("db.theirs")
    project.engine.tables[theirs] = replace(project.engine.tables[T], name=theirs, uuid="theirs")
    project.save()
    assert "drop namespace" not in roll_back(project)
    assert dropped(project) == []


def test_one_that_was_there_before_the_migration_stays(project: Embedded) -> None:
    project.write("0002_more.yaml", f"tables: [{{name: db.u, {COLUMNS}}}]\n")
    project.apply()
    assert "drop namespace" not in roll_back(project, to="0001")


def test_all_versions_at_once_leave_it_empty_at_the_last(project: Embedded) -> None:
    project.write("0002_more.yaml", f"tables: [{{name: db.u, {COLUMNS}}}]\n")
    project.apply()
    text = roll_back(project)
    assert text.count("- drop namespace db") == 1
    assert text.index("undo 0001") < text.index("- drop namespace db")


def test_one_that_somebody_fills_meanwhile_stays_and_fails_nothing(project: Embedded) -> None:
    result = plan_rollback(open_project(project.folder))
    project.engine.expect(result.plan)
    theirs = TableName.parse("db.theirs")
    project.engine.tables[theirs] = replace(project.engine.tables[T], name=theirs, uuid="theirs")
    said: list[object] = []
    journal = Journal(HistoryWriter(project.engine, HISTORY, "market"))
    run_plan(result.plan, project.engine, journal, said.append)
    assert "namespace db stays: another client created something in it" in str(said)


def test_a_catalog_that_does_not_let_it_go_fails_nothing(project: Embedded) -> None:
    project.engine.fails.add("drop namespace")
    result = plan_rollback(open_project(project.folder))
    project.engine.expect(result.plan)
    journal = Journal(HistoryWriter(project.engine, HISTORY, "market"))
    (record,) = run_plan(result.plan, project.engine, journal)
    assert record.outcome == "rolled_back"


def test_one_that_a_failed_migration_made_goes_too(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.engine.fails.add("CREATE TABLE")
    made.write("0001_make.yaml", f"tables: [{{name: db.t, {COLUMNS}}}]\n")
    with pytest.raises(Undone):
        made.apply()
    assert dropped(made) == ["drop namespace db"]


@pytest.mark.parametrize(
    ("there", "tables", "actual", "left"),
    [
        ({DB, DEEP}, {}, {}, [DEEP, DB]),
        ({DB, DEEP}, {DEEP: {TableName(DEEP, "t")}}, {}, []),
        ({DB, DEEP}, {DB: {T}}, {T: None}, [DEEP, DB]),
        ({DB, DEEP}, {DB: {T}}, {}, [DEEP]),
        ({DB}, {}, {}, [DB]),
        ({DB, ("db", "theirs")}, {}, {}, []),
        ({("dbx",), DB}, {}, {}, [DB]),
        (set(), {}, {}, []),
    ],
)
def test_what_is_left_empty(
    there: set[tuple[str, ...]],
    tables: dict[tuple[str, ...], set[TableName]],
    actual: dict[TableName, None],
    left: list[tuple[str, ...]],
) -> None:
    contents = NamespaceContents(frozenset(there), {name: frozenset(of) for name, of in tables.items()})
    assert [*emptied_namespaces([DB, DEEP], contents, actual)] == left


def test_the_history_keeps_it_and_one_of_an_older_icemigrate_knows_of_none() -> None:
    record = UndoRecord("0001", (), namespaces=(DB, DEEP))
    assert undo_from_json(undo_to_json(record)) == record
    older = {key: value for key, value in undo_to_json(record).items() if key != "namespaces"}
    assert undo_from_json(older).namespaces == ()
