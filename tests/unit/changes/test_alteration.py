"""What one ``ALTER COLUMN`` says together."""

from __future__ import annotations

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change, SqlStatement
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import TablePlan
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange, find_difference
from icemigrate.spark.publish import run_step, statement_texts
from icemigrate.spark.statement_events import statement_announcer
from tests.support.column_edits import edited
from tests.support.recording_engine import RecordingEngine
from tests.support.small_tables import table, with_columns


def found(before: Table, after: Table) -> list[DetectedChange]:
    return list(find_difference(before, after, CHANGE_KINDS).found)


def said(before: Table, after: Table) -> list[str]:
    start = "ALTER TABLE lake.db.t ALTER COLUMN"
    statements = [s for step in as_steps(found(before, after), "lake") for s in step.statements]
    return [
        " ".join(str(s.text if isinstance(s, SqlStatement) else "[commit]").removeprefix(start).split())
        for s in statements
    ]


def test_columns_of_every_kind_of_alteration_stand_together() -> None:
    before = table("a: required int, b: int, c: int, s: struct<x: int>")
    after = edited(with_columns(before, "c: int, a: int, b: long, s: struct<x: long>"), "a", doc="A")
    # What was said of `a` before it got its description stands in a statement before that.
    assert said(before, after) == [
        "a DROP NOT NULL, b TYPE BIGINT, s.x TYPE BIGINT",
        "a COMMENT 'A', c FIRST",
    ]


def test_a_field_does_not_stand_beside_one_that_it_holds() -> None:
    before = table("s: required struct<x: int, t: struct<y: int>>, l: list<struct<e: int>>, z: int")
    after = with_columns(before, "s: struct<x: long, t: struct<y: long>>, l: list<struct<e: long>>, z: long")
    assert said(before, after) == [
        "s DROP NOT NULL",
        "s.x TYPE BIGINT, s.t.y TYPE BIGINT, l.element.e TYPE BIGINT, z TYPE BIGINT",
    ]
    described = edited(edited(before, "s.t.y", doc="inner"), "s", doc="outer")
    assert said(before, described) == ["s COMMENT 'outer'", "s.t.y COMMENT 'inner'"]


@pytest.mark.parametrize("columns", ["x: int, X: int, y: int", "s: struct<x: int, X: int>, y: int"])
def test_names_that_differ_only_in_case_need_a_metadata_commit(columns: str) -> None:
    before = table(columns)
    assert said(before, with_columns(before, columns.replace("y: int", "y: long"))) == ["[commit]"]


def test_a_metadata_commit_in_between_parts_them() -> None:
    before = table("a: int, b: required int, c: date, d: int", format_version=3)
    after = with_columns(before, "a: long, b: int, c: timestamp, d: long")
    assert said(before, after) == ["b DROP NOT NULL, a TYPE BIGINT", "[commit]", "d TYPE BIGINT"]


def test_hundreds_are_one() -> None:
    columns = ", ".join(f"c{i}: int" for i in range(500))
    before = table(columns)
    (statement,) = said(before, with_columns(before, columns.replace("int", "long")))
    assert statement.count(" TYPE BIGINT") == 500


@pytest.mark.parametrize("many", [True, False])
def test_an_engine_that_takes_one_column_is_told_one_after_another(many: bool) -> None:
    before = table("a: int, b: int, s: struct<x: int>")
    after = with_columns(before, "a: long, b: long, s: struct<x: long>")
    (step,) = as_steps(found(before, after), "lake")
    engine = RecordingEngine({before.name: before}, takes_many_columns=many)
    plan = TablePlan(before.name, before.name, after, before.name, (step,))
    run_step(engine, plan, step, before, statement_announcer(plan, "0001", lambda event: None))
    alone = [f"ALTER TABLE lake.db.t ALTER COLUMN {p} TYPE BIGINT" for p in ("a", "b", "s.x")]
    assert engine.log == ([step.statements[0].text] if many else alone)


def test_other_statements_are_the_same_for_every_engine() -> None:
    before = table("a: int, b: int")
    (step,) = as_steps(found(before, with_columns(before, "x: int, y: int", {"x": "a", "y": "b"})), "lake")
    changes: list[Change] = [planned.change for planned in step.changes]
    engine = RecordingEngine({before.name: before}, takes_many_columns=False)
    assert len(step.statements) == 2
    for statement in step.statements:
        assert isinstance(statement, SqlStatement)
        assert list(statement_texts(engine, statement, changes, before)) == [statement.text]
