"""Others' branches: where they stand by a metadata file, and what a plan says of the rows on them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icemigrate.data_steps.branch_repair_sql import branch_repair_hint
from icemigrate.frozen import replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.table import MAIN_BRANCH, BranchHead, Ref, Snapshot, Table
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.undo.undone_rows import other_branch_notes
from tests.support.metadata_samples import sample
from tests.support.planned_migrations import pending
from tests.support.small_tables import NAME, field_at, table
from tests.unit.test_reports import plan, state


def on_branches(of: Table, heads: Mapping[str, BranchHead]) -> Table:
    """The table with rows, and branches that stand there."""
    refs = {name: Ref("branch", head.snapshot.id) for name, head in heads.items()}
    main = {MAIN_BRANCH: Ref("branch", 7)}
    return replace(of, snapshot=Snapshot(7, 0, 3), refs={**main, **refs}, heads=heads)


def head(schema: Schema | None, rows: int | None = 2, is_behind: bool = False) -> BranchHead:
    return BranchHead(Snapshot(5, 0, rows), schema, is_behind)


def told(
    before: Table, heads: Mapping[str, BranchHead], text: str, allow: str = "destructive, incompatible"
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
    assert "branches `one` (1 row), `two` (2 rows)" in message
    assert "fast_forward('db.t', 'one', 'main')" in hint
    ((_, hint),) = told(before, {"two": head(older, None)}, REQUIRED)["branch-lacks-required"]
    assert "fast_forward" not in hint
    for harmless in (head(older, 0), head(same)):
        assert "branch-lacks-required" not in told(before, {"one": harmless}, REQUIRED)


@pytest.mark.parametrize(
    ("columns", "path", "mode", "way"),
    [
        ("`zip.code`: long", "`zip.code`", "", "UPDATE {} SET `zip.code` = …"),
        ("leg: struct<size: int>", "leg.size", "", "UPDATE {} SET leg.size = …"),
        ("legs: list<struct<size: int>>", "legs.element.size", "", "UPDATE {} SET legs = …"),
        ("m: map<int, int>", "m.value", "", "UPDATE {} SET m = …"),
        (
            "`a leg`: struct<size: int>",
            "`a leg`.size",
            "merge-on-read",
            "INSERT OVERWRITE {0} BY NAME SELECT * EXCEPT (`a leg`), … AS `a leg` FROM {0}",
        ),
    ],
)
def test_what_fills_a_branch_is_sql_whatever_the_names(columns: str, path: str, mode: str, way: str) -> None:
    name = TableName(("market data",), "trades")
    of = table(columns, name=name, properties={"write.update.mode": mode})
    branch = "lake.`market data`.trades.`branch_o'b`"
    heads = {"o'b": head(None, is_behind=True)}
    field_id = field_at(of.schema, path).id
    assert branch_repair_hint(of, field_id, heads, "lake").split("; or ") == [
        f"fill it there first: {way.format(branch)}",
        "fast-forward the branch to main: "
        "CALL lake.system.fast_forward('`market data`.trades', 'o\\'b', 'main')",
        "drop the branch if it is not needed",
    ]


def without(of: Table, *names: str) -> Table:
    """The table without some of its columns."""
    fields = tuple(field for field in of.schema.fields if field.name not in names)
    return replace(of, schema=replace(of.schema, fields=fields))


def test_a_column_that_was_gone_when_a_branch_was_written_may_be_in_its_files() -> None:
    back = table("a: long, b: long, c: long")
    gone = head(without(back, "b").schema)
    assert "branch-lacks-required" not in told(back, {"one": gone}, REQUIRED)


def on_branch_at(of: Table, snapshot_id: int, schema: Schema, made_ms: int = 1) -> Table:
    """The table with one branch."""
    return on_branches(of, {"one": BranchHead(Snapshot(snapshot_id, made_ms, 2), schema)})


@pytest.mark.parametrize("names", [("b",), ("c",), ("b", "c")])
def test_an_undo_tells_of_columns_that_a_branch_was_written_without(names: tuple[str, ...]) -> None:
    back = table("a: long, b: long, c: long")
    gone = without(back, *names)
    before, now = on_branch_at(back, 5, back.schema), on_branch_at(gone, 6, gone.schema)
    told = (
        f"branch `one` (2 rows) was written to without {', '.join(names)}: rows written that way read null "
        f"there"
    )
    assert list(other_branch_notes(now, before, before)) == [told]
    # A branch that was made since the migration: by the time of its snapshot.
    made = replace(before, refs={MAIN_BRANCH: before.refs[MAIN_BRANCH]}, heads={})
    assert list(other_branch_notes(now, before, made)) == [told]
    # One that nobody wrote to, and that was there before the column, has lacked it all along.
    older = without(back, "b", "c").schema
    still = on_branch_at(gone, 5, older)
    assert not list(other_branch_notes(still, before, before))
    assert not list(other_branch_notes(on_branch_at(gone, 5, older, made_ms=0), before, made))
    # Without a record, ids tell of a column that had others behind it.
    assert list(other_branch_notes(now, before, None)) == ([told] if names == ("b",) else [])


def test_an_undo_tells_that_a_default_is_read_on_a_branch() -> None:
    back = table("a: long, b: long, c: long", format_version=3)
    a, b, c = back.schema.fields
    back = replace(back, schema=replace(back.schema, fields=(a, b, replace(c, initial_default=7))))
    for names, read in (
        (("c",), "the default"),
        (("b", "c"), "null, or the default of those that have one,"),
    ):
        gone = without(back, *names)
        before, now = on_branch_at(back, 5, back.schema), on_branch_at(gone, 6, gone.schema)
        (note,) = other_branch_notes(now, before, before)
        assert note.endswith(f"read {read} there")


FILLED = """
    columns: [{name: x, type: long}]
    backfill: [{set: {x: a * 10}}]
"""


def test_of_many_branches_three_are_told_with_their_way_and_the_others_by_name() -> None:
    before = table("a: long")
    heads = {f"b{number}": head(before.schema, number) for number in range(8)}
    found = told(before, heads, FILLED)["rows-left-on-branch"]
    assert [message for message, _ in found] == [
        "the migration changes rows on main only: branch `b1` (1 row) reads null in `x`",
        "the migration changes rows on main only: branch `b2` (2 rows) reads null in `x`",
        "the migration changes rows on main only: branch `b3` (3 rows) reads null in `x`",
        "the migration changes rows on main only, also for branches `b4`, `b5`, `b6` and 1 more",
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


def test_a_branch_that_a_pending_migration_makes_is_known_to_those_behind_it() -> None:
    before = table("id: long, v: int")
    there = on_branches(before, {})
    make = "{tables: [{name: db.t, branches: {audit: {}}}]}"
    require = """
        allow: [incompatible]
        tables:
          - name: db.t
            columns: [{name: key, type: long, required: true}]
            backfill: [{set: {key: id * 10}}]
    """
    drop = "{allow: [destructive], tables: [{name: db.t, branches: {audit: null}}]}"

    def rules(*texts: str) -> list[str]:
        files = [pending(f"{n:04}", text) for n, text in enumerate(texts, start=2)]
        around = PlanningContext("market", "lake", namespaces=frozenset({NAME.namespace}))
        found = plan_migrations(files, state(before), {NAME: there}, around)
        return [p.rule for m in found.migrations for p in m.problems]

    assert rules(make, require) == ["branch-lacks-required"]
    assert rules(make, drop, require) == rules(require, make) == []
