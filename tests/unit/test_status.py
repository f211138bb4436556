"""What ``status`` says where somebody else's table stands under a name of ours."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from icemigrate.app.opening import open_project
from icemigrate.app.planning import plan
from icemigrate.app.reporting import status
from icemigrate.executor import Interrupted
from icemigrate.frozen import replace
from icemigrate.model.names import TableName
from icemigrate.model.types import Primitive
from icemigrate.render.formats import render
from icemigrate.status_results import Status, TableStatus
from tests.embedded import Embedded

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "status.schema.json").read_text("utf-8"))
THEIRS = "11111111-2222-3333-4444-555555555555"
T, U = TableName.parse("db.t"), TableName.parse("db.u")


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    made = Embedded(tmp_path)
    made.write("0001_make.yaml", "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n")
    made.apply()
    made.write("0002_rename.yaml", "tables: [{name: db.u, renamed_from: db.t}]\n")
    made.apply()
    return made


def tables(shop: Embedded) -> dict[str, TableStatus]:
    found = status(open_project(shop.folder))
    jsonschema.validate(json.loads(render(found, "json")), SCHEMA, format_checker=jsonschema.FormatChecker())
    return {t.table: t for t in found.tables}


def test_what_others_changed_is_pointed_to(shop: Embedded) -> None:
    assert "drift" not in render(status(open_project(shop.folder)))
    shop.edit("db.u", {"owner.team": "research"})
    assert not tables(shop)["db.u"].differs, "no file declared it"
    made = shop.engine.tables[U]
    column = replace(made.schema.fields[0], type=Primitive("long"))
    shop.engine.tables[U] = replace(made, schema=replace(made.schema, fields=(column,)))
    shop.save()
    assert tables(shop)["db.u"].differs
    text = render(status(open_project(shop.folder)))
    assert "db.u differs from what is recorded: `icemigrate drift` tells how." in text


def test_a_table_of_which_something_goes_on_is_not_told_to_differ(shop: Embedded) -> None:
    shop.write(
        "0003_more.yaml",
        "tables:\n"
        "  - {name: db.u, columns: [{name: a, type: long}]}\n"
        "  - {name: db.v, columns: [{name: a, type: int}]}\n",
    )
    # Neither can the second table be made nor the first one be led back.
    shop.engine.fails |= {"db.v", "commit"}
    with pytest.raises(Interrupted):
        shop.apply()
    shop.save()
    found = tables(shop)["db.u"]
    assert shop.engine.tables[U].schema.fields[0].type == Primitive("long")
    assert not found.differs


def test_many_tables_that_differ_are_told_in_a_line() -> None:
    rows = tuple(TableStatus(f"db.t{n}", f"db.t{n}", "0001", True, differs=True) for n in range(5))
    text = render(Status("market", "local", "sqlite:x", "0001", (), rows))
    assert "db.t0, db.t1, db.t2 and 2 more differ from what is recorded" in text


def test_a_plan_of_nothing_points_to_drift_where_anything_is_recorded(shop: Embedded, tmp_path: Path) -> None:
    assert "`icemigrate drift` tells" in render(plan(open_project(shop.folder)))
    empty = tmp_path / "empty"
    (empty / "migrations").mkdir(parents=True)
    assert "drift" not in render(plan(open_project(empty)))


def test_a_name_that_is_free_is_not_shown(shop: Embedded) -> None:
    assert {name: t.note for name, t in tables(shop).items()} == {"db.u": None}


def test_who_stands_under_an_old_name_is_shown(shop: Embedded) -> None:
    shop.engine.tables[T] = replace(shop.engine.tables[U], name=T, uuid=THEIRS, properties={})
    shop.save()
    theirs = tables(shop)["db.t"]
    assert (theirs.version, theirs.exists, theirs.ours) == (None, True, False)
    assert theirs.note is not None
    assert "cannot give that one its name back before this one is moved away" in theirs.note
    text = render(status(open_project(shop.folder)))
    assert "db.t: it has a name that a table of this project had" in text
    assert "there, not ours" in text


def test_another_table_under_a_declared_name_is_shown(shop: Embedded) -> None:
    ours = shop.engine.tables[U].uuid
    shop.engine.tables[U] = replace(shop.engine.tables[U], uuid=THEIRS)
    shop.save()
    note = tables(shop)["db.u"].note
    assert note is not None
    assert note.startswith(f"it is another table (uuid {THEIRS}) than the history means (uuid {ours})")
    assert "another table" in render(status(open_project(shop.folder)))


def test_tables_whose_history_was_lost_are_told_as_such(shop: Embedded) -> None:
    made = shop.engine.tables.pop(U)
    shop.engine.tables = {T: replace(made, name=T)}
    shop.save()
    found = tables(shop)["db.t"]
    assert (found.version, found.exists, found.ours) == (None, True, True)
    assert found.note is not None
    assert found.note.startswith(
        "it was made by `market/0001` of this project, and the history knows nothing"
    )
    text = render(status(open_project(shop.folder)))
    assert "there, not in the history" in text
    assert "half made" not in text
