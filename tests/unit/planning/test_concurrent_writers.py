"""What a plan does to those who write its tables meanwhile."""

from __future__ import annotations

import pytest

from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.planning.concurrent_writers import with_affected_writers
from icemigrate.planning.plan import AffectedWriter, TablePlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.planned_migrations import pending
from tests.support.small_tables import table

FLINK = Writer("flink", True, "7df3", "ab12", commits=96, a_day=96.0)
SPARK = Writer("spark", False, "nightly", "local-1", commits=7, a_day=1.0)
PYICEBERG = Writer(commits=1, a_day=1.0)
ALL = (FLINK, SPARK, PYICEBERG)
TABLE = replace(
    table(
        "id: long, v: int, note: string, r: required int, s: struct<a: int, b: int>, l: list<struct<a: int>>"
    ),
    writers=ALL,
)
MORE = "fails if it writes values by position, or by `*` in a `MERGE`, because the table gets a new column"
MORE_IN_S = "fails if it writes `s`, even by name, because it gets a new field"
CONSENT = "allow: [destructive, incompatible, irreversible]\nbecause: x\n"


def told(*texts: str) -> list[tuple[AffectedWriter, ...]]:
    """The writers of the one table that each migration speaks of."""
    return [plan.writers for plan in plans(*texts)]


def plans(*texts: str, writers: tuple[Writer, ...] = ALL) -> list[TablePlan]:
    """What each migration does to the one table that it speaks of."""
    base = DeclaredState({TABLE.name: TABLE}, frozenset({TABLE.name.namespace}))
    files = [pending(f"{n:04}", CONSENT + text) for n, text in enumerate(texts, start=2)]
    actual = {TABLE.name: replace(TABLE, writers=writers)}
    around = PlanningContext("market", "lake", namespaces=base.namespaces)
    planned = plan_migrations(files, base, actual, around)
    assert all(m.ready for m in planned.migrations), [m.problems for m in planned.migrations]
    return [m.tables[0] for m in with_affected_writers(planned.migrations, actual)]


def broken(text: str) -> dict[str | None, tuple[str, ...]]:
    (writers,) = told(f"tables: [{{name: db.t, {text}}}]")
    assert [w.writer for w in writers] == [*ALL]
    return {w.writer.engine: w.breaks for w in writers if w.breaks}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("drop_columns: [v]", "fails or loses values if it writes `v`, which this migration drops"),
        (
            "columns: [{name: v, required: true}]",
            "may write no value for `v`, which this migration makes required",
        ),
        (
            "columns: [{name: w, type: int, required: true}]",
            "writes no value for `w`, which this migration adds as required",
        ),
        (
            "columns: [{name: s.w, type: int, required: true}]",
            "writes no value for `s.w`, which this migration adds as required",
        ),
        (
            "retype: {v: {to: string, using: cast(v as string)}}",
            "fails or loses values if it writes `v`, which this migration replaces by a column of type "
            "string",
        ),
    ],
)
def test_what_breaks_everybody(text: str, reason: str) -> None:
    assert broken(text) == {"flink": (reason,), "spark": (reason,), None: (reason,)}


def test_a_renamed_column_is_missed_by_those_who_give_it_by_name() -> None:
    reason = (
        "fails, at the latest when it restarts, if it writes `v`, which this migration renames to `volume`"
    )
    by_name = "fails if it writes `v` by name, which this migration renames to `volume`"
    assert broken("renames: {v: volume}") == {"flink": (reason,), "spark": (by_name,), None: (reason,)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("columns: [{name: w, type: int}, {name: x, type: int}]", MORE),
        ("columns: [{name: w, type: int, first: true}]", MORE),
        ("columns: [{name: s.w, type: int}, {name: s.x, type: int}]", MORE_IN_S),
        ("columns: [{name: l.element.w, type: int}]", MORE_IN_S.replace("`s`", "`l`")),
        (
            "columns: [{name: note, first: true}]",
            "fails or writes into the wrong columns if it writes values by position, because their order "
            "changes",
        ),
        (
            "columns: [{name: s.b, first: true}]",
            "fails or writes into the wrong fields of `s` if it is an `INSERT` without `BY NAME`, because "
            "their order changes",
        ),
    ],
)
def test_what_hangs_on_how_a_job_gives_its_values(text: str, reason: str) -> None:
    assert broken(text) == {"spark": (reason,)}


@pytest.mark.parametrize(("name", "reason"), [("w", MORE), ("s.w", MORE_IN_S)])
def test_a_required_column_with_a_default_is_filled_by_statements_of_spark_alone(
    name: str, reason: str
) -> None:
    missed = f"writes no value for `{name}`, which this migration adds as required"
    told = broken(f"format_version: 3, columns: [{{name: {name}, type: int, required: true, default: 1}}]")
    newer = "may not support format version 3; PyIceberg 0.12 does not"
    assert told == {"flink": (missed,), "spark": (reason,), None: (newer, missed)}


def test_a_stream_of_spark_gives_its_columns_in_the_order_of_before() -> None:
    query = Writer("spark", True, "q-7", commits=9, a_day=1.0)
    (plan,) = plans("tables: [{name: db.t, columns: [{name: note, first: true}]}]", writers=(query, FLINK))
    assert [w.breaks for w in plan.writers] == [
        ("writes columns in the old order, which Spark refuses at its next start",),
        (),
    ]


def test_a_column_that_comes_back_is_one_more() -> None:
    told_of = told(
        "tables: [{name: db.t, drop_columns: [v]}]", "tables: [{name: db.t, restore_columns: [v]}]"
    )
    assert {w.breaks for w in told_of[1]} == {(MORE,), ()}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("columns: [{name: v, type: long}]", "keeps writing `v` with the type that it started with"),
        ('partition_by: ["bucket(8, id)", v]', "keeps writing with the partitioning that it started with"),
    ],
)
def test_what_a_stream_does_not_see_until_it_is_restarted(text: str, reason: str) -> None:
    assert broken(text) == {"flink": (reason,)}


def test_a_newer_format_is_one_that_not_every_library_writes() -> None:
    assert broken("format_version: 3").keys() == {None}


@pytest.mark.parametrize(
    "text",
    ["columns: [{name: v, description: x}]", "columns: [{name: r, required: false}]", "properties: {a: b}"],
)
def test_what_breaks_nobody(text: str) -> None:
    assert broken(text) == {}


def test_who_writes_a_table_whose_rows_are_written_is_told() -> None:
    (writers,) = told("tables: [{name: db.t, backfill: [{set: {note: \"'x'\"}}]}]")
    assert [(w.writer, w.breaks) for w in writers] == [(one, ()) for one in ALL]


def test_streams_that_must_restart_are_those_that_something_breaks() -> None:
    (writers,) = told("tables: [{name: db.t, renames: {v: volume}}]")
    assert [w.writer.engine for w in writers if w.must_restart] == ["flink"]


def test_a_table_to_which_nothing_is_done_names_nobody() -> None:
    assert told("tables: [{name: db.t, columns: [{name: v, type: int}]}]") == [()]


def test_the_writers_of_a_renamed_table_go_along() -> None:
    first, second, third = told(
        "tables: [{name: db.u, renamed_from: db.t}]",
        "tables: [{name: db.u, drop: true}]",
        "tables: [{name: db.u, columns: [{name: id, type: long}]}]",
    )
    assert {w.breaks for w in first} == {("writes `db.t`, which this migration renames to `db.u`",)}
    assert {w.breaks for w in second} == {("writes `db.u`, which this migration drops",)}
    assert [w.writer for w in second] == [*ALL]
    assert third == ()


def test_writers_are_no_part_of_what_a_table_is() -> None:
    assert replace(TABLE, writers=()) == TABLE
    assert TABLE.name == TableName(("db",), "t")


@pytest.mark.parametrize(
    ("text", "writers", "is_told"),
    [
        ('backfill: [{set: {v: "1"}}]', ALL, True),
        ("retype: {v: {to: string, using: cast(v as string)}}", ALL, True),
        ('backfill: [{set: {v: "1"}}]', (SPARK, PYICEBERG), False),
        ("columns: [{name: w, type: int}]", ALL, False),
        ("checks: [{after: 'select 1 from {table}', gives: 1}]", ALL, False),
    ],
)
def test_who_writes_all_day_has_rows_written_again(
    text: str, writers: tuple[Writer, ...], is_told: bool
) -> None:
    (plan,) = plans(f"tables: [{{name: db.t, {text}}}]", writers=writers)
    busy = [note for note in plan.notes if "times a day" in note]
    assert (
        busy
        == [
            "other clients commit about 98 times a day, and each commit during the write repeats it, "
            "5 times at most: pause the other writers of the table while it runs"
        ]
        * is_told
    )


def test_a_table_that_leaves_the_trash_has_no_writer_to_warn_of() -> None:
    trash, name = TableName.parse("icemigrate_trash.db__t__market__0002"), TableName.parse("db.t")
    assert RenameTable(trash, name).writer_impacts() == ()
    assert RenameTable(name, TableName.parse("db.u")).writer_impacts() != ()
