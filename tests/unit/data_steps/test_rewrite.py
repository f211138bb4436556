"""The data step that rewrites files, without Spark: read, planned, saved, and what it means for an undo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from icemigrate.data_steps.data_step_kind import FileRewrite
from icemigrate.data_steps.publication_state import DATA_SUMMARY_PROPERTY, find_publication
from icemigrate.data_steps.rewrite import Rewrite
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.iceberg.table import DroppedField, Ref, Snapshot, Table
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import plan_from_json, plan_to_json
from icemigrate.planning.stages import statement_texts
from icemigrate.render.phrases import old_files_text
from tests.support.planned_migrations import make_plan
from tests.support.small_tables import NAME, table

BASE = table("id: long, v: int", partition="id", sort="v")
THERE = replace(BASE, snapshot=Snapshot(5, 1000, 3), refs={"main": Ref("branch", 5)})
TEXT = "tables: [{name: db.t, rewrite: {partitions: old}}]"


def plan(base: Table = BASE) -> Plan:
    return make_plan({"0002": TEXT}, {NAME: THERE}, "my lake", DeclaredState({NAME: base}), [("db",)])


def test_it_is_one_call_in_the_tables_order() -> None:
    (table_plan,) = plan().migrations[0].tables
    options = "map('rewrite-all', 'true', 'max-file-group-size-bytes', '10737418240')"
    assert [*statement_texts(plan().migrations[0], "my lake", "market")] == [
        "CALL `my lake`.system.rewrite_data_files("
        f"table => 'db.t', strategy => 'sort', options => {options})",
    ]
    assert table_plan.steps == table_plan.finish == ()
    assert not table_plan.rows[0].overwrites


def test_a_saved_plan_holds_it() -> None:
    made = plan()
    (table_plan,) = made.migrations[0].tables
    table_plan = replace(table_plan, old_files=OldSpecFiles(12, 20, 34, None))
    made = replace(made, migrations=(replace(made.migrations[0], tables=(table_plan,)),))
    saved = json.loads(json.dumps(plan_to_json(made)))
    assert plan_from_json(saved) == made
    schema = json.loads(Path("schemas/plan.schema.json").read_text(encoding="utf-8"))
    schema.pop("required", None)
    assert [e.message for e in Draft202012Validator(schema).iter_errors(saved)] == []
    (statement,) = plan_from_json(saved).migrations[0].tables[0].rows[0].statements
    assert isinstance(statement, FileRewrite)
    assert statement.is_sorted


def test_the_plan_says_whose_way_back_ends() -> None:
    gone = DroppedField(Field(9, "note", Primitive("string")), None, ("note",))
    (work,) = plan(replace(BASE, dropped=(gone,))).migrations[0].tables[0].rows
    assert isinstance(work.work, Rewrite)
    assert work.work.ends == ("note",)
    assert "values of note, dropped before, can no longer be restored" in work.reversal.reason


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, None),
        (OldSpecFiles(0, 4, 0, 400), "none with the old partitioning"),
        (
            OldSpecFiles(1, 4, 100, 400),
            "1 of 4 files, 100 B of 400 B, with the old partitioning, which are rewritten",
        ),
    ],
)
def test_the_plan_says_how_much_it_is(share: OldSpecFiles | None, text: str | None) -> None:
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
            "summary": {"operation": operation, **({} if key is None else {DATA_SUMMARY_PROPERTY: key})},
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
    found = find_publication(snapshots(*made), "k", 1)
    assert found is not None
    assert found.last.id == last
    assert found.before is not None
    assert found.before.id == 1
