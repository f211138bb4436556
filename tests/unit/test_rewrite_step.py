"""The data step that rewrites files, without Spark: read, planned, saved, and what it means for an undo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from icemigrate.data.base import Rewriting
from icemigrate.data.publication import NOTE, publication
from icemigrate.data.rewrite import Rewrite
from icemigrate.frozen import replace
from icemigrate.model.layout import OldShare
from icemigrate.model.sides import State
from icemigrate.model.table import Dropped, Ref, Snapshot, Table
from icemigrate.model.types import Field, Primitive
from icemigrate.plan import Plan
from icemigrate.plan_file import dump, load
from icemigrate.plan_rows import running
from icemigrate.render.words import old_files_text
from tests.build import NAME, table
from tests.planning import make_plan

BASE = table("id: long, v: int", partition="id", sort="v")
THERE = replace(BASE, snapshot=Snapshot(5, 1000, 3), refs={"main": Ref("branch", 5)})
TEXT = "tables: [{name: db.t, rewrite: {partitions: old}}]"


def plan(base: Table = BASE) -> Plan:
    return make_plan({"0002": TEXT}, {NAME: THERE}, "my lake", State({NAME: base}), [("db",)])


def test_it_is_one_call_in_the_tables_order() -> None:
    (table_plan,) = plan().migrations[0].tables
    options = "map('rewrite-all', 'true', 'max-file-group-size-bytes', '10737418240')"
    (part,) = running(plan().migrations[0], "my lake", "market")
    assert [s.text for s in part.statements] == [
        "CALL `my lake`.system.rewrite_data_files("
        f"table => 'db.t', strategy => 'sort', options => {options})",
    ]
    assert table_plan.steps == table_plan.finish == ()
    assert not table_plan.rows[0].overwrites


def test_a_saved_plan_holds_it() -> None:
    made = plan()
    (table_plan,) = made.migrations[0].tables
    table_plan = replace(table_plan, old_files=OldShare(12, 20, 34, None))
    made = replace(made, migrations=(replace(made.migrations[0], tables=(table_plan,)),))
    saved = json.loads(json.dumps(dump(made)))
    assert load(saved) == made
    schema = json.loads(Path("schemas/plan.schema.json").read_text(encoding="utf-8"))
    schema.pop("required", None)
    assert [e.message for e in Draft202012Validator(schema).iter_errors(saved)] == []
    (statement,) = load(saved).migrations[0].tables[0].rows[0].statements
    assert isinstance(statement, Rewriting)
    assert statement.is_sorted


def test_the_plan_says_whose_way_back_ends() -> None:
    gone = Dropped(Field(9, "note", Primitive("string")), None, ("note",))
    (work,) = plan(replace(BASE, dropped=(gone,))).migrations[0].tables[0].rows
    assert isinstance(work.work, Rewrite)
    assert work.work.ends == ("note",)
    assert "the way back of note, dropped before, ends here" in work.reversal.reason


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, None),
        (OldShare(0, 4, 0, 400), "none lies the old way"),
        (OldShare(1, 4, 100, 400), "1 of 4 files, 100 bytes of 400 bytes, lie the old way and are rewritten"),
    ],
)
def test_the_plan_says_how_much_it_is(share: OldShare | None, text: str | None) -> None:
    (table_plan,) = plan().migrations[0].tables
    assert old_files_text(replace(table_plan, old_files=share)) == text


def snapshots(*made: tuple[str, str | None]) -> dict[str, Any]:
    """Metadata with a chain of snapshots: the operation, and whose rows they are."""
    found: list[dict[str, Any]] = [
        {
            "snapshot-id": number,
            "parent-snapshot-id": number - 1,
            "sequence-number": number,
            "timestamp-ms": number,
            "manifest-list": "x",
            "summary": {"operation": operation, **({} if key is None else {NOTE: key})},
        }
        for number, (operation, key) in enumerate(made, 2)
    ]
    first = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 1,
        "manifest-list": "x",
        "summary": {"operation": "append"},
    }
    return {"snapshots": [first, *found], "current-snapshot-id": len(made) + 1}


@pytest.mark.parametrize(
    ("made", "last"),
    [
        ([("overwrite", "k")], 2),
        ([("overwrite", "k"), ("replace", None), ("replace", None)], 4),
        ([("overwrite", "k"), ("replace", None), ("append", None)], 3),
        ([("overwrite", "k"), ("append", None), ("replace", None)], 2),
        ([("overwrite", "k"), ("append", None), ("overwrite", "k"), ("replace", None)], 5),
    ],
)
def test_what_is_only_written_again_behind_a_migrations_rows_is_no_newer_row(
    made: list[tuple[str, str | None]], last: int
) -> None:
    found = publication(snapshots(*made), "k", 1)
    assert found is not None
    assert found.last.id == last
    assert found.before is not None
    assert found.before.id == 1
