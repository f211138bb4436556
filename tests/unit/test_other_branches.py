"""Others' branches: where they stand by a metadata file, and what a plan says of the rows on them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icemigrate.frozen import replace
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import table_from_json
from icemigrate.model.schema import Schema
from icemigrate.model.table import MAIN_BRANCH, Head, Ref, Snapshot, Table
from icemigrate.plan import MigrationPlan
from icemigrate.undo.branches import left_on_branches
from tests.build import NAME, table
from tests.metadata_samples import sample
from tests.unit.test_reports import plan


def on_branches(of: Table, heads: Mapping[str, Head]) -> Table:
    """The table with rows, and branches that stand there."""
    refs = {name: Ref("branch", head.snapshot.id) for name, head in heads.items()}
    main = {MAIN_BRANCH: Ref("branch", 7)}
    return replace(of, snapshot=Snapshot(7, 0, 3), refs={**main, **refs}, heads=heads)


def head(schema: Schema | None, rows: int | None = 2, is_behind: bool = False) -> Head:
    return Head(Snapshot(5, 0, rows), schema, is_behind)


def told(
    before: Table, heads: Mapping[str, Head], text: str, allow: str = "destructive, incompatible"
) -> dict[str, list[tuple[str, str]]]:
    """Messages and hints by rule."""
    judged = plan(before, text, on_branches(before, heads), allow)
    assert isinstance(judged.plan, MigrationPlan)
    found: dict[str, list[tuple[str, str]]] = {}
    for problem in (*judged.plan.problems, *judged.plan.warnings):
        found.setdefault(problem.rule, []).append((problem.message, problem.hint or ""))
    return found


def test_a_metadata_file_tells_where_others_branches_stand() -> None:
    json = sample("spark-v3")
    (first, *_, last) = json["snapshots"]
    assert first["snapshot-id"] != last["snapshot-id"] == json["current-snapshot-id"]
    schemas = {schema["schema-id"]: schema for schema in json["schemas"]}
    aside = {**first, "snapshot-id": 99, "summary": {"operation": "append"}}
    json["snapshots"].insert(0, aside)
    json["refs"] = {
        "main": {"snapshot-id": last["snapshot-id"], "type": "branch"},
        "icemigrate-0004-data": {"snapshot-id": 99, "type": "branch"},
        "tag": {"snapshot-id": 99, "type": "tag"},
        "old": {"snapshot-id": first["snapshot-id"], "type": "branch"},
        "other": {"snapshot-id": 99, "type": "branch"},
    }
    heads = table_from_json(json, NAME).heads
    assert {name: (h.snapshot.id, h.is_behind) for name, h in heads.items()} == {
        "old": (first["snapshot-id"], True),
        "other": (99, False),
    }
    assert first["summary"]["total-records"] == "1"
    assert heads["old"].rows_text == "1 row"
    assert (heads["other"].rows_text, heads["other"].has_rows) == ("rows", True)
    for known in heads.values():
        assert known.schema is not None
        assert [f.name for f in known.schema.fields] == [
            f["name"] for f in schemas[first["schema-id"]]["fields"]
        ]
    aside["schema-id"] = None
    assert table_from_json(json, NAME).heads["other"].schema is None
    aside["timestamp-ms"] = "soon"
    with pytest.raises(BadMetadata, match="branch other"):
        table_from_json(json, NAME)


REQUIRED = "columns: [{name: b, required: true}]"


def test_a_branch_with_rows_refuses_what_its_files_surely_lack() -> None:
    before = table("a: long, b: long")
    older, same = table("a: long").schema, before.schema
    found = told(before, {"one": head(older, 1, is_behind=True), "two": head(older)}, REQUIRED)
    ((message, hint),) = found["branch-lacks-required"]
    assert "branch `one` (1 row), `two` (2 rows)" in message
    assert "fast_forward('db.t', 'one', 'main')" in hint
    ((_, hint),) = told(before, {"two": head(older, None)}, REQUIRED)["branch-lacks-required"]
    assert "fast_forward" not in hint
    for harmless in (head(older, 0), head(same)):
        assert "branch-lacks-required" not in told(before, {"one": harmless}, REQUIRED)


def test_a_column_that_was_gone_when_a_branch_was_written_may_be_in_its_files() -> None:
    back, gone = table("a: long, b: long, c: long"), table("a: long, b: long, c: long")
    gone = replace(gone, schema=replace(gone.schema, fields=(gone.schema.fields[0], gone.schema.fields[2])))
    assert "branch-lacks-required" not in told(back, {"one": head(gone.schema)}, REQUIRED)
    notes = list(
        left_on_branches(
            on_branches(gone, {"one": head(gone.schema)}), on_branches(back, {"one": head(None)})
        )
    )
    assert notes == [
        "branch `one` (2 rows) was written to without b: rows that were written so read null there"
    ]


FILLED = """
    columns: [{name: x, type: long}]
    backfill: [{set: {x: a * 10}}]
"""


def test_of_many_branches_three_are_told_with_their_way_and_the_others_by_name() -> None:
    before = table("a: long")
    heads = {f"b{number}": head(before.schema, number) for number in range(8)}
    found = told(before, heads, FILLED)["rows-left-on-branch"]
    assert [message for message, _ in found] == [
        "rows are changed on main alone: branch `b1` (1 row) reads null in `x`",
        "rows are changed on main alone: branch `b2` (2 rows) reads null in `x`",
        "rows are changed on main alone: branch `b3` (3 rows) reads null in `x`",
        "rows are changed on main alone, and so it is with branch `b4`, `b5`, `b6` and 1 more",
    ]
    assert found[0][1].endswith("UPDATE lake.db.t.branch_b1 SET x = a * 10")


def test_a_default_of_older_rows_is_read_on_a_branch() -> None:
    before = table("a: long", format_version=3)
    text = """
        columns: [{name: x, type: long, default: 7}]
        backfill: [{set: {x: a * 10}}]
    """
    ((message, _),) = told(before, {"one": head(before.schema)}, text)["rows-left-on-branch"]
    assert message.endswith("branch `one` (2 rows) reads the default in `x`")
