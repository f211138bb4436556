from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import add_partition_field
from icemigrate.iceberg.partitioning import Transform
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import migration_footprint, overlapping_facts
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.redo import with_recorded_ids
from icemigrate.planning.table_plan import plan_table
from icemigrate.planning.undo import find_blocking_migrations
from tests.support.memory_lake import Lake, columns
from tests.support.replayed_migrations import replay_text

CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: a, type: int}
          - {name: b, type: string}
          - {name: s, type: "struct<x: int, y: string>"}
"""


def entry(text: str) -> str:
    return f"{{allow: [destructive], tables: [{{name: db.t, {text}}}]}}"


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("columns: [{name: c, type: int}]", "columns: [{name: d, type: int}]", False),
        ("columns: [{name: c, type: int}]", "columns: [{name: c, type: long}]", True),
        ("columns: [{name: c, type: int}]", "partition_by: [c]", True),
        ("columns: [{name: c, type: int}]", "sort_by: [c]", True),
        ("columns: [{name: c, type: int}]", "partition_by: [a]", False),
        ("columns: [{name: a, description: x}]", "partition_by: [a]", False),
        ("columns: [{name: a, description: x}]", "columns: [{name: a, type: long}]", False),
        ("columns: [{name: a, description: x}]", "drop_columns: [a]", True),
        ("drop_columns: [b]", "columns: [{name: b, type: int}]", True),
        ("renames: {b: c}", "columns: [{name: b, type: int}]", True),
        ("columns: [{name: s.z, type: int}]", "columns: [{name: s.x, type: long}]", False),
        ("columns: [{name: s.z, type: int}]", "renames: {s: t}", True),
        ("columns: [{name: s.z, type: int}]", "renames: {a: c}", False),
        ("columns: [{name: a, type: long}]", "renames: {a: c}", True),
        ("columns: [{name: a, type: long}]", "renames: {b: c}", False),
        ("renames: {a: c}", "columns: [{name: c, type: long}]", True),
        ("partition_by: [a]", "renames: {a: c}", True),
        ("sort_by: [a]", "renames: {a: c}", True),
        ("columns: [{name: c, type: int}]", "renamed_from: db.t", True),
        ("properties: {k: v}", "renamed_from: db.t", True),
        ("columns: [{name: s.z, type: int}]", "drop_columns: [s]", True),
        ("properties: {k: v}", "properties: {l: v}", False),
        ("properties: {k: v}", "properties: {k: w}", True),
        ("columns: [{name: c, type: int}]", "drop: true", True),
        ("partition_by: [a]", "partition_by: [a, b]", False),
        ("sort_by: [a]", "sort_by: [b]", True),
        ("format_version: 3", "columns: [{name: c, type: int}]", False),
    ],
)
def test_what_two_migrations_share(first: str, second: str, overlap: bool) -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", entry(first).replace("[destructive]", "[destructive, irreversible]"))
    lake.apply("0003", entry(second).replace("db.t, renamed_from", "db.u, renamed_from"))
    found = find_blocking_migrations(lake.record("0002"), [lake.record("0003")])
    assert [b.version for b in found] == (["0003"] if overlap else [])


def test_a_name_that_a_table_gave_free_is_shared_with_the_one_that_took_it() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", "{tables: [{name: db.u, renamed_from: db.t}]}")
    lake.apply("0003", "{tables: [{name: db.t, columns: [{name: x, type: int}]}]}")
    (found,) = find_blocking_migrations(lake.record("0002"), [lake.record("0003")])
    assert found.facts == ("the name db.t",)


def test_what_was_renamed_is_named() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", entry("columns: [{name: a, type: long}]"))
    lake.apply("0003", entry("renames: {a: c}"))
    lake.apply("0004", "{tables: [{name: db.u, renamed_from: db.t}]}")
    found = find_blocking_migrations(lake.record("0002"), [lake.record("0003"), lake.record("0004")])
    assert [(b.version, b.facts) for b in found] == [
        ("0003", ("the name of db.t.a",)),
        ("0004", ("the name of db.t",)),
    ]


def test_all_partition_fields_that_a_file_lists_are_spoken_of() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", entry("partition_by: [a]"))
    lake.apply("0003", entry("partition_by: [a, b]"))
    lake.apply("0004", entry("renames: {a: c}"))
    found = find_blocking_migrations(lake.record("0003"), [lake.record("0004")])
    assert [b.facts for b in found] == [("the name of db.t.a",)]


def test_nothing_is_touched_where_nothing_changes() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    table: Table = lake.table()
    assert migration_footprint(table, table) == frozenset()
    assert overlapping_facts(migration_footprint(None, table), migration_footprint(table, None))
    assert not overlapping_facts(
        migration_footprint(None, table),
        migration_footprint(None, replace(table, uuid="u", name=TableName.parse("db.x"))),
    )


@pytest.mark.parametrize(
    ("mended", "ids"),
    [
        ("columns: [{name: c, type: int}]", ["a#1", "b#2", "s#3", "c#6"]),
        ("columns: [{name: c, type: long}]", ["a#1", "b#2", "s#3", "c#6"]),
        ("columns: [{name: c, type: string}]", ["a#1", "b#2", "s#3", "c#-1"]),
        ("columns: [{name: d, type: int}]", ["a#1", "b#2", "s#3", "d#-1"]),
    ],
)
def test_a_redo_gives_a_column_its_id_back_where_its_type_reads_what_was_written(
    mended: str, ids: list[str]
) -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", entry("columns: [{name: c, type: int}]"))
    lake.rollback("0002")
    base = lake.state.tables[TableName.parse("db.t")]
    (wanted,) = replay_text(entry(mended), lake.state).wanted
    redone = with_recorded_ids(wanted, lake.record("0002"), base)
    assert redone.table is not None
    assert columns(redone.table) == ids


@pytest.mark.parametrize(("spec", "kept"), [("[]", ["theirs"]), ("[a]", ["a", "theirs"])])
def test_what_others_partition_a_table_by_stays_when_it_comes_out_of_the_trash(
    spec: str, kept: list[str]
) -> None:
    text = CREATE + f"        partition_by: {spec}\n"
    lake = Lake()
    lake.apply("0001", text)
    lake.by_hand(lambda t: add_partition_field(t, 2, Transform("bucket", 7), "theirs"))
    lake.rollback("0001")
    (wanted,) = replay_text(text, lake.state).wanted
    redone = with_recorded_ids(wanted, lake.record("0001"), None)
    around = PlanningContext("market", "local")
    planned = plan_table(redone, None, lake.engine.tables, "0001", frozenset(), around)
    assert planned.plan.conflicts == ()
    assert planned.after is not None
    assert [f.name for f in planned.after.spec.live] == kept
