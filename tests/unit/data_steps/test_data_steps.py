"""Data steps where no rows are: what tables, answers and expressions say of them."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icemigrate.commands.squash import squash
from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.column_mentions import bare_word
from icemigrate.data_steps.data_step_kind import DataStepContext, QueryExpectation, TableDataStep
from icemigrate.data_steps.not_null_check import NotNullCheck
from icemigrate.data_steps.publication_state import DATA_SUMMARY_PROPERTY, find_publication
from icemigrate.data_steps.retype import Retype
from icemigrate.diagnostics import once_quoted
from icemigrate.errors import CheckFailed, EngineError, Mistakes
from icemigrate.execution.failures import Failed, Undone
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.execution.table_rows import MigrationRows
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence, PublishedRows
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.expand_contract import data_step_problems
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.planning.stages import StagesOfTables, migration_stages
from icemigrate.planning.table_plan import plan_table
from icemigrate.planning.undo.undo_inputs import UndoOptions
from icemigrate.project import open_project
from icemigrate.render.phrases import row_statement_lines
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher
from tests.support.case_documents import World, make_plan
from tests.support.memory_lake import Lake
from tests.support.recording_engine import RecordingEngine
from tests.support.replayed_migrations import replay_text
from tests.unit.planning.undo.rows import plan_of

NAME = TableName.parse("db.t")


def _local(utc: datetime) -> datetime:
    """As PySpark gives a ``timestamptz``: by the clock of the process, and without its zone."""
    return utc.replace(tzinfo=timezone.utc).astimezone().replace(tzinfo=None)


@pytest.mark.parametrize(
    ("gives", "rows", "is_right"),
    [
        ("0", [(0,)], True),
        ("0", [(Decimal("0.00"),)], True),
        ("0", [(False,)], False),
        ("0", [], False),
        ("0", [(0,), (0,)], False),
        ("null", [(None,)], True),
        ("[]", [], True),
        ("[]", [(1,)], False),
        ('["b", "a"]', [("a",), ("b",)], True),
        ('[["a", 1.5], ["b", null]]', [("b", None), ("a", Decimal("1.50"))], True),
        ('"2026-11-28"', [(date(2026, 11, 28),)], True),
        ('"2026-11-28T09:30:00"', [(datetime(2026, 11, 28, 9, 30),)], True),
        ('"2026-11-28 09:30:00"', [(datetime(2026, 11, 28, 9, 30),)], True),
        ('"2026-11-28T09:30"', [(datetime(2026, 11, 28, 9, 30),)], True),
        ('"2026-11-28T09:30:00.5"', [(datetime(2026, 11, 28, 9, 30, 0, 500_000),)], True),
        ('"2026-11-28T09:30:00.000001"', [(datetime(2026, 11, 28, 9, 30),)], False),
        ('"2026-11-28T09:30:00Z"', [(_local(datetime(2026, 11, 28, 9, 30)),)], True),
        ('"2026-11-28T10:30:00+0100"', [(_local(datetime(2026, 11, 28, 9, 30)),)], True),
        ('"2026-11-28T10:30:00Z"', [(_local(datetime(2026, 11, 28, 9, 30)),)], False),
        ('"2026-11-28T25:30:00"', [(datetime(2026, 11, 28, 9, 30),)], False),
        (
            '[["a", null], ["b", "2026-11-28T09:30"]]',
            [("a", None), ("b", datetime(2026, 11, 28, 9, 30))],
            True,
        ),
        # A text is no moment, whatever it looks like.
        ('"2026-11-28T09:30:00"', [("2026-11-28 09:30:00",)], False),
        ('"1"', [(1,)], False),
        ("12345678901234567890123456789.5", [(Decimal("12345678901234567890123456789.50"),)], True),
        ("12345678901234567890123456789.5", [(Decimal("12345678901234567890123456789.51"),)], False),
        (
            "12345678901234567890123456789012345678",
            [(Decimal("12345678901234567890123456789012345679"),)],
            False,
        ),
    ],
)
def test_an_answer_is_as_the_file_says_or_not(
    gives: str, rows: list[tuple[Any, ...]], is_right: bool
) -> None:
    assert (QueryExpectation("", gives, "x", "").failure(rows) is None) is is_right


def test_a_wrong_answer_is_shown_and_a_long_one_in_part() -> None:
    assert QueryExpectation("", "0", "x", "").failure([(2,)]) == "x: expected 0, got 2"
    rows = [(n, None) for n in range(7)]
    shown = QueryExpectation("", "[]", "x", "").failure(rows)
    assert shown is not None
    assert shown.startswith("x: expected no rows, got 7 rows: (0, null), (1, null)")
    assert QueryExpectation("", "[]", "x", "").failure([(0,)]) == "x: expected no rows, got 1 row: (0)"
    assert shown.endswith("(4, null) and 2 more")


@pytest.mark.parametrize(
    ("where", "is_safe"),
    [
        ("venue is null", True),
        ("  VENUE IS NULL", False),
        ("id > 1 AND venue Is Null", True),
        ("side is not null and venue is null", True),
        ("`venue` is null", True),
        ("side is null", False),
        ("venue is null or id = 1", False),
        ("not venue is null", False),
        ("side = 'x and venue is null'", False),
        ("(venue is null)", False),
        (None, False),
    ],
)
def test_only_a_condition_that_says_so_plainly_fills_nulls_alone(where: str | None, is_safe: bool) -> None:
    fields = tuple(Field(i, n, Primitive("string")) for i, n in enumerate(("id", "venue", "side"), 1))
    table = Table(NAME, Schema(fields))
    ground = DataStepContext(NAME, table, frozenset(schema_index(table.schema)))
    step = Backfill((("venue", "'x'"),), where)
    assert (step.hazards(ground) == ()) is is_safe
    assert step.overwrites(ground)
    assert not step.overwrites(replace(ground, old=frozenset()))


def metadata(*snapshots: tuple[int, int | None, str], current: int) -> dict[str, Any]:
    return {
        "current-snapshot-id": current,
        "snapshots": [
            {
                "snapshot-id": i,
                "timestamp-ms": i,
                "summary": {"operation": "overwrite"} | ({DATA_SUMMARY_PROPERTY: note} if note else {}),
            }
            | ({} if parent is None else {"parent-snapshot-id": parent})
            for i, parent, note in snapshots
        ],
    }


def test_what_was_published_is_read_from_the_ancestors_of_main() -> None:
    mine = "shop/0002"
    found = find_publication(
        metadata((1, None, ""), (2, 1, ""), (3, 2, mine), (4, 3, mine), (5, 4, ""), (6, 2, mine), current=5),
        mine,
        1,
    )
    assert found is not None
    assert found.before is not None
    # Others wrote between its begin and the branch; and behind it.
    assert (found.before.id, found.last.id) == (2, 4)


def test_what_an_earlier_try_left_is_not_this_ones() -> None:
    mine = "shop/0002"
    earlier = metadata((1, None, ""), (2, 1, mine), (3, 2, ""), current=3)
    assert find_publication(earlier, mine, 3) is None
    assert find_publication(earlier, "shop/0003", None) is None
    assert find_publication({"snapshots": []}, mine, None) is None


def test_what_the_rows_were_written_on_may_have_expired() -> None:
    found = find_publication(metadata((3, 2, "shop/0002"), current=3), "shop/0002", 1)
    assert found is not None
    assert found.before is None


def backfilled(lake: Lake) -> Any:
    lake.apply("0001", "{tables: [{name: db.t, columns: [{name: a, type: int}]}]}")
    lake.write(7)
    lake.apply("0002", "{tables: [{name: db.t, properties: {k: x}}]}")
    return replace(lake.record("0002").tables[0], rows_changed=True, rows_open=True)


def test_rows_that_nobody_recorded_go_back_as_far_as_they_were_published() -> None:
    lake = Lake()
    undo = backfilled(lake)
    nothing = plan_of(lake, undo, Evidence(), UndoOptions())
    assert nothing.after.snapshot is not None
    assert nothing.after.snapshot.id == 7

    lake.write(9)
    published = PublishedRows(Snapshot(8, 8, 3), Snapshot(9, 9, 3))
    done = plan_of(lake, undo, Evidence(published=published), UndoOptions())
    assert done.problems == ()
    assert done.after.snapshot is not None
    assert done.after.snapshot.id == 8

    lake.write(10)
    newer = Evidence(published=published, snapshots=1, rows=3, files=1)
    assert [p.rule for p in plan_of(lake, undo, newer, UndoOptions()).problems] == ["newer-rows"]
    gone = replace(newer, published=replace(published, before=None))
    assert [p.rule for p in plan_of(lake, undo, gone, UndoOptions()).problems] == ["snapshot-expired"]
    (own,) = plan_of(lake, undo, replace(newer, steps=("shop/0003", "shop/0004")), UndoOptions()).problems
    assert own.message == "later migrations wrote rows of `db.t` (0003, 0004); no other client did"
    others = replace(newer, steps=("shop/0003", ""))
    assert plan_of(lake, undo, others, UndoOptions(taken_back=frozenset({"shop/0003"}))).problems
    later = replace(newer, steps=("shop/0003",))
    assert plan_of(lake, undo, later, UndoOptions(taken_back=frozenset({"shop/0003"}))).problems == ()


def test_a_branch_that_a_dead_run_has_left_goes_with_the_undo() -> None:
    lake = Lake()
    undo = backfilled(lake)
    refs = {"icemigrate-market-0002-data": Ref("branch", 8), "audit": Ref("branch", 7)}
    lake.by_hand(lambda t: replace(t, refs={**t.refs, **refs}))
    done = plan_of(lake, undo, Evidence(), UndoOptions())
    assert done.problems == ()
    assert "drop branch icemigrate-market-0002-data" in [c.text for step in done.steps for c in step.changes]
    assert "audit" in done.after.refs
    assert "icemigrate-market-0002-data" not in done.after.refs


def test_what_does_not_hold_before_keeps_everything_from_being_done() -> None:
    lake = Lake()
    lake.apply("0001", "{tables: [{name: db.t, columns: [{name: a, type: int}]}]}")
    lake.write(7)
    lake.engine.answers["from local.db.t"] = [(1,)]
    before = lake.table()
    text = (
        "{tables: [{name: db.t, properties: {k: x}, checks: [{before: 'select 1 from {table}', gives: 0}]}]}"
    )
    with pytest.raises(Undone, match="expected 0, got 1") as refused:
        lake.apply("0002", text)
    fault = refused.value
    assert fault.done == ()
    assert fault.message.splitlines() == [
        "check 1: expected 0, got 1",
        "migration 0002 stopped at: select 1 from local.db.t",
        "no statement ran before that",
        "statements that did not run:",
        "  ALTER TABLE local.db.t SET TBLPROPERTIES ('k' = 'x')",
        "no table was changed by migration 0002, and it is pending",
    ]
    assert fault.hint == "correct the rows or the check; then run `icemigrate apply` again"
    assert lake.table() == before
    lake.engine.answers["from local.db.t"] = [(0,)]
    lake.apply("0002", text)
    assert lake.table().properties["k"] == "x"


def test_a_check_that_fails_is_known_by_the_plans_words_where_no_row_is_written() -> None:
    lake = Lake()
    lake.apply("0001", "{tables: [{name: db.t, columns: [{name: a, type: int}]}]}")
    lake.engine.answers["from local.db.t"] = [(1,)]
    with pytest.raises(Failed, match="expected 0, got 1") as refused:
        lake.apply(
            "0002",
            "{tables: [{name: db.t, columns: [{name: b, type: int}], backfill: [{set: {b: '1'}}], "
            "checks: [{after: 'select 1 from {table}', gives: 0}]}]}",
        )
    assert refused.value.failed == "select 1 from local.db.t.`branch_icemigrate-market-0002-data`"
    assert refused.value.failed not in refused.value.remaining


def test_what_must_hold_before_is_asked_of_all_tables_before_any_is_touched() -> None:
    lake = Lake()
    both = "{name: db.t, columns: [{name: a, type: int}]}, {name: db.u, columns: [{name: a, type: int}]}"
    lake.apply("0001", f"{{tables: [{both}]}}")
    lake.write(7)
    lake.engine.answers["from local.db.u"] = [(1,)]
    text = (
        "{tables: [{name: db.t, properties: {k: x}}, "
        "{name: db.u, properties: {k: x}, checks: [{before: 'select 1 from {table}', gives: 0}]}]}"
    )
    with pytest.raises(Undone, match="expected 0, got 1") as refused:
        lake.apply("0002", text)
    assert refused.value.done == ()
    assert "no table was changed" in refused.value.message
    lake.engine.answers["from local.db.u"] = [(0,)]
    lake.apply("0002", text)
    assert lake.table().properties["k"] == "x"


RETYPE = """
allow: [destructive]
tables:
  - name: db.t
    retype: {a: {to: string, using: cast(a as string)}}
"""


def planned(world: World, text: str) -> MigrationPlan:
    found = make_plan(world, "0002", text).plan
    assert found is not None
    return found


def test_a_retype_goes_on_from_whatever_was_done_of_it() -> None:
    made = make_plan(
        World(), "0001", "{tables: [{name: db.t, columns: [{name: a, type: int}, {name: b, type: int}]}]}"
    )
    table = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    world = World(made.base, {NAME: table}, frozenset({("db",)}))
    (whole,) = planned(world, RETYPE).tables
    first, last = ([c.change for step in part for c in step.changes] for part in (whole.steps, whole.finish))
    assert [c.kind for c in first] == ["add_column"]
    assert [c.kind for c in last] == ["drop_column", "rename_column"]

    half = table
    for change in first:
        half = change.apply(half)
    (rest,) = planned(World(world.base, {NAME: half}, world.namespaces), RETYPE).tables
    assert rest.steps == ()
    assert rest.rows == whole.rows
    assert [c.kind for c in (p.change for step in rest.finish for p in step.changes)] == [
        "drop_column",
        "rename_column",
    ]

    done = half
    for change in last:
        done = change.apply(done)
    (nothing,) = planned(replace(world, actual={NAME: done}), RETYPE).tables
    assert (nothing.steps, nothing.rows, nothing.finish) == ((), (), ())
    assert [f.name for f in done.schema.fields] == ["a", "b"]


FILL = """
allow: [destructive]
tables:
  - name: db.t
    checks: [{before: "select count(*) from {table} where a is null", gives: 1}]
    backfill: [{set: {a: a + 1}}]
"""


class Behind(RecordingEngine):
    """Its answer to a publication gets lost, and somebody writes right behind that."""

    is_out = False

    def sql(self, text: str) -> None:
        super().sql(text)
        if "fast_forward" in text:
            self.is_out = True
            own = {"icemigrate-shop-0002-data": Ref("branch", 2)}
            self.tables[NAME] = replace(self.tables[NAME], snapshot=Snapshot(3, 3, 3), refs=own)
            raise EngineError("no answer came")

    def metadata_json(self, name: TableName) -> dict[str, Any]:
        theirs = ((2, 1, "shop/0002"), (3, 2, "")) if self.is_out else ()
        return metadata((1, None, ""), *theirs, current=3 if self.is_out else 1)


def fill() -> tuple[Table, MigrationPlan]:
    """A table with rows, and a migration that overwrites them."""
    made = make_plan(World(), "0001", "{tables: [{name: db.t, columns: [{name: a, type: int}]}]}")
    table = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    return table, planned(World(made.base, {NAME: table}, frozenset({("db",)})), FILL)


def test_a_check_that_is_to_find_nothing_is_shown_in_words() -> None:
    table, _ = fill()
    text = "{tables: [{name: db.t, checks: [{after: 'select a from {table} where a < 0'}]}]}"
    world = World(DeclaredState({NAME: table}), {NAME: table}, frozenset({("db",)}))
    migration = planned(world, text)
    stages = StagesOfTables(migration_stages(migration, "lake", "market")).of(migration.tables[0])
    (line,) = (line for stage in stages for line in row_statement_lines(stage, migration))
    assert line.endswith("where a < 0;  -- gives no rows")


def test_rows_whose_publication_got_no_answer_are_not_written_twice() -> None:
    table, migration = fill()
    engine = Behind({NAME: table})
    (plan,) = migration.tables
    stages = StagesOfTables(migration_stages(migration, "lake", "shop")).of(plan)
    rows = MigrationRows(engine, plan, "shop", "0002", "lake", 1, lambda event: None, stages=stages)
    rows.write(NAME)
    rows.publish(NAME)
    assert rows.base == table.snapshot
    assert len([text for text in engine.log if text.startswith("UPDATE")]) == 1


@pytest.mark.parametrize("is_out", [False, True])
def test_what_held_before_the_rows_is_asked_only_until_they_are_out(is_out: bool) -> None:
    table, migration = fill()
    # Without tags nothing but its rows tells that an earlier run came so far.
    now = replace(table, snapshot=Snapshot(3, 3, 3)) if is_out else table
    engine = Behind({NAME: now}, answers={"a is null": [(0,)]})
    engine.is_out = is_out
    undo = UndoRecord("0002", (TableUndo(NAME, NAME, table, table, table, table),))
    marker = Marker("shop", "0002", "", "")
    publisher = DirectPublisher(engine, tags=False)
    work = MigrationRun(migration, engine, publisher, marker, lambda event: None, catalog="lake", undo=undo)
    if is_out:
        work.run()
        assert not [text for text in engine.log if text.startswith("UPDATE")]
    else:
        with pytest.raises(CheckFailed):
            work.run()


def test_a_catalog_that_branches_harm_has_no_data_steps() -> None:
    table = Table(NAME, Schema((Field(1, "a", Primitive("int")),)))
    (problem,) = data_step_problems(
        [Backfill((("a", "1"),))], DataStepContext(NAME, table, frozenset({1})), has_branches=False
    )
    assert problem.rule == "no-branches"
    assert problem.subject == ("backfill", "0")


def test_a_squash_forgets_data_steps_but_of_adopted_tables(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "icemigrate.yaml").write_text("project: shop\n", encoding="utf-8")

    def write(name: str, text: str) -> None:
        (tmp_path / "migrations" / name).write_text(text, encoding="utf-8")

    write("0001_a.yaml", "{tables: [{name: db.t, adopt: true, columns: [{name: a, type: int}]}]}")
    write("0002_b.yaml", "{allow: [destructive], tables: [{name: db.t, backfill: [{set: {a: 1}}]}]}")
    with pytest.raises(Mistakes) as refused:
        squash(open_project(tmp_path), "0002")
    assert [d.code for d in refused.value.diagnostics] == ["squash-rows"]
    write("0001_a.yaml", "{tables: [{name: db.t, columns: [{name: a, type: int}]}]}")
    squash(open_project(tmp_path), "0002")
    (path,) = (tmp_path / "migrations").glob("*.yaml")
    assert "backfill" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("EUR", "EUR"),
        (" unknown\n", "unknown"),
        ("'EUR'", None),
        ("`EUR`", None),
        ("legs.side", None),
        ("1", None),
        ("_file", None),
        ("Null", None),
        ("TRUE", None),
        ("current_date", None),
        ("upper(a)", None),
    ],
)
def test_a_word_by_itself_can_only_be_a_column(expression: str, word: str | None) -> None:
    assert bare_word(expression) == word


@pytest.mark.parametrize(
    ("step", "subjects"),
    [
        (Backfill((("a", "EUR"), ("b", "A")), "b"), [("backfill", "0", "set", "a")]),
        (Backfill((("a", "b"),), "eur", 1), [("backfill", "1", "where")]),
        (Retype("a", "EUR", "string", 1), [("retype", "a", "using")]),
        (Retype("a", "B", "string", 1), []),
    ],
)
def test_a_word_that_is_no_column_is_told_with_its_place(step: TableDataStep, subjects: list[Any]) -> None:
    fields = (Field(1, "a", Primitive("int")), Field(2, "b", Primitive("boolean")))
    found = [
        *step.unknown_column_problems(DataStepContext(NAME, Table(NAME, Schema(fields)), frozenset({1})))
    ]
    assert [problem.subject for problem in found] == subjects
    assert all("write a string in quotes of its own: `\"'" in (problem.hint or "") for problem in found)


@pytest.mark.parametrize("is_known", [True, False])
def test_only_where_all_columns_are_known_a_strange_word_is_a_mistake(is_known: bool) -> None:
    table, _ = fill()
    state = DeclaredState({NAME: table})
    (wanted,) = replay_text("{tables: [{name: db.t, backfill: [{set: {a: EUR}}]}]}", state).wanted
    around = PlanningContext("shop", "lake", is_catalog_known=is_known)
    done = plan_table(wanted, table, {NAME: table}, "0002", frozenset(), around)
    told = done.problems if is_known else done.warnings
    assert [p.message for p in told] == [
        "the expression is the name `EUR`, but table `db.t` has no such column"
    ]


@pytest.mark.parametrize(
    ("columns", "properties", "entry", "place", "reason"),
    [
        (
            "{name: id, type: int, required: true}",
            "{write.update.mode: merge-on-read}",
            "retype: {id: {to: string, using: cast(id as string)}}",
            ("retype", "id"),
            "`write.update.mode` is merge-on-read, which does not rewrite existing files",
        ),
        (
            "{name: id, type: int}",
            "{write.update.mode: merge-on-read}",
            "columns: [{name: x, type: int, required: true}], backfill: [{set: {x: '1'}}]",
            ("backfill", "0"),
            "`write.update.mode` is merge-on-read, which does not rewrite existing files",
        ),
        (
            "{name: leg, type: 'struct<size: required int>'}",
            "{}",
            "retype: {leg.size: {to: string, using: cast(leg.size as string)}}",
            ("retype", "leg.size"),
            "files in which `leg` is always null are not rewritten",
        ),
        (
            "{name: id, type: int}",
            "{}",
            "columns: [{name: x, type: int, required: true}], "
            "backfill: [{set: {x: '1'}, where: id = 1}, {set: {x: '2'}, where: id = 2}]",
            ("backfill", "0"),
            "files in which no row matches the condition are not rewritten",
        ),
        (
            "{name: s, type: 'struct<a: int>'}",
            "{}",
            "columns: [{name: s.b, type: int, required: true},"
            " {name: made, fields: [{name: at, type: int, required: true}]}]",
            ("columns", "s.b", "required"),
            "existing files do not contain it",
        ),
    ],
)
def test_what_is_required_must_be_in_every_file(
    columns: str, properties: str, entry: str, place: tuple[str, ...], reason: str
) -> None:
    made = make_plan(
        World(), "0001", f"{{tables: [{{name: db.t, columns: [{columns}], properties: {properties}}}]}}"
    )
    text = f"{{allow: [destructive, incompatible], tables: [{{name: db.t, {entry}}}]}}"
    empty = made.base.tables[NAME]
    for table, told in ((empty, False), (replace(empty, snapshot=Snapshot(1, 1, 3)), True)):
        plan = make_plan(World(made.base, {NAME: table}, frozenset({("db",)})), "0002", text).plan
        found = [p for p in plan.problems if p.rule == "required-not-in-every-file"]
        assert [(p.subject, reason in p.message) for p in found] == [(place, True)] * told


@pytest.mark.parametrize(
    "entry",
    [
        "columns: [{name: x, type: int, required: true}], backfill: [{set: {x: '1'}}]",
        "columns: [{name: x, type: int, required: true}], backfill: [{set: {x: '1'}, where: x is null}]",
        "columns: [{name: x, type: int}], backfill: [{set: {x: '1'}, where: id = 1}]",
        "retype: {id: {to: string, using: cast(id as string)}}",
    ],
)
def test_what_every_file_gets_may_be_required(entry: str) -> None:
    made = make_plan(
        World(), "0001", "{tables: [{name: db.t, columns: [{name: id, type: int, required: true}]}]}"
    )
    table = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    text = f"{{allow: [destructive, incompatible], tables: [{{name: db.t, {entry}}}]}}"
    plan = make_plan(World(made.base, {NAME: table}, frozenset({("db",)})), "0002", text).plan
    assert plan.problems == ()


@pytest.mark.parametrize(
    ("columns", "entry", "query", "told"),
    [
        (
            "{name: place, type: string}",
            "renames: {place: venue}, columns: [{name: venue, required: true}]",
            "SELECT count(*) FROM lake.db.t WHERE place IS NULL",
            "rows without a value of `venue`: expected 0, got 2",
        ),
        (
            "{name: a, type: int}, {name: s, type: 'struct<`b c`: int>'}, {name: l, type: list<string>}",
            "columns: [{name: a, required: true}, {name: s.`b c`, required: true},"
            " {name: l, element: {required: true}}]",
            "SELECT coalesce(nullif(concat_ws(', ', IF(count_if(a IS NULL) > 0, 'a', NULL), "
            "IF(count_if(s IS NOT NULL AND s.`b c` IS NULL) > 0, 's.`b c`', NULL), "
            "IF(count_if(exists(l, x1 -> x1 IS NULL)) > 0, 'l.element', NULL)), ''), 'none') FROM lake.db.t "
            "WHERE (a IS NULL) OR (s IS NOT NULL AND s.`b c` IS NULL) OR (exists(l, x1 -> x1 IS NULL))",
            "there are rows without a value of 2",
        ),
    ],
)
def test_before_a_column_is_required_its_rows_are_asked(
    columns: str, entry: str, query: str, told: str
) -> None:
    made = make_plan(World(), "0001", f"{{tables: [{{name: db.t, columns: [{columns}]}}]}}")
    empty = made.base.tables[NAME]
    text = f"{{allow: [incompatible], tables: [{{name: db.t, {entry}}}]}}"
    for table, works in ((empty, 0), (replace(empty, snapshot=Snapshot(1, 1, 3)), 1)):
        plan = make_plan(World(made.base, {NAME: table}, frozenset({("db",)})), "0002", text).plan
        assert len(plan.tables[0].rows) == works
    (work,) = plan.tables[0].rows
    (ask,) = work.statements
    assert isinstance(ask, QueryExpectation)
    assert ask.text == query
    assert ask.failure([(0 if ask.gives == "0" else "none",)]) is None
    assert ask.failure([(2,)]) == told


FILLED_AND_REQUIRED = """
    allow: [destructive, incompatible]
    tables:
      - name: db.t
        columns:
          - {name: s, type: "struct<a: required int, b: int>", required: true}
          - {name: id, required: true}
        backfill: [{set: {s.a: 1, s.b: 2}}, {set: {id: 7}, where: id is null}]
        identifier: [s.a]
"""


@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_is_filled_is_required_when_its_rows_are_out(is_resumed: bool) -> None:
    made = make_plan(World(), "0001", "{tables: [{name: db.t, columns: [{name: id, type: int}]}]}")
    base = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    (wanted,) = replay_text(FILLED_AND_REQUIRED, made.base).wanted
    around = PlanningContext("market", "local")
    found = plan_table(wanted, base, {NAME: base}, "0002", frozenset(), around)
    assert found.between is not None
    if is_resumed:  # the first run died when it had made the columns
        begun = replace(around, begun=frozenset({"0002"}))
        found = plan_table(wanted, base, {NAME: found.between}, "0002", frozenset(), begun)
        assert (found.plan.steps, found.plan.conflicts) == ((), ())
    assert found.problems == ()
    assert found.between is not None
    assert not any(entry.field.required for entry in schema_index(found.between.schema).values())
    assert found.between.schema.identifier_ids == frozenset()
    assert found.after is not None
    required = {entry.path for entry in schema_index(found.after.schema).values() if entry.field.required}
    assert required == {("id",), ("s",), ("s", "a")}
    branch = "local.db.t.`branch_icemigrate-market-0002-data`"
    asked = [[s.text for s in work.statements if isinstance(s, QueryExpectation)] for work in found.plan.rows]
    assert asked == [
        [f"SELECT count(*) FROM {branch} WHERE s.a IS NULL"],
        [f"SELECT count(*) FROM {branch} WHERE id IS NULL"],
    ]


def test_a_column_of_that_name_that_somebody_else_made_optional_is_a_conflict() -> None:
    made = make_plan(World(), "0001", "{tables: [{name: db.t, columns: [{name: id, type: int}]}]}")
    base = made.base.tables[NAME]
    there = replace(base, schema=Schema((*base.schema.fields, Field(2, "x", Primitive("int")))))
    text = "{allow: [incompatible], tables: [{name: db.t, columns: [{name: x, type: int, required: true}]}]}"
    (wanted,) = replay_text(text, made.base).wanted
    found = plan_table(wanted, base, {NAME: there}, "0002", frozenset(), PlanningContext("market", "local"))
    assert [c.fact for c in found.plan.conflicts] == ["db.t:columns.x.required"]


@pytest.mark.parametrize(("required", "asked"), [("", 2), (", required: true", 1)])
def test_a_column_that_was_optional_is_asked_for_nulls_when_it_is_retyped_to_a_required_one(
    required: str, asked: int
) -> None:
    made = make_plan(
        World(), "0001", f"{{tables: [{{name: db.t, columns: [{{name: id, type: int{required}}}]}}]}}"
    )
    text = (
        "{allow: [destructive, incompatible], tables: [{name: db.t, columns: [{name: id, required: true}], "
        "retype: {id: {to: string, using: cast(id as string)}}}]}"
    )
    table = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    plan = make_plan(World(made.base, {NAME: table}, frozenset({("db",)})), "0002", text).plan
    (work,) = plan.tables[0].rows
    questions = [s for s in work.statements if isinstance(s, QueryExpectation)]
    assert len(questions) == asked
    assert questions[-1].text.endswith(" WHERE id__icemigrate IS NULL") or asked == 1


WHOLE = """
    allow: [destructive, incompatible]
    tables:
      - name: db.t
        columns: [{name: leg.size, required: true}, {name: leg.unit, type: int, required: true}]
        backfill: [{set: {leg: "named_struct('size', coalesce(leg.size, 0), 'unit', 1)"}}]
"""


def test_what_is_in_a_struct_that_is_filled_whole_is_required_behind_it() -> None:
    made = make_plan(
        World(), "0001", "{tables: [{name: db.t, columns: [{name: leg, type: 'struct<size: int>'}]}]}"
    )
    table = replace(made.base.tables[NAME], snapshot=Snapshot(1, 1, 3))
    world = World(made.base, {NAME: table}, frozenset({("db",)}))
    plan = make_plan(world, "0002", WHOLE).plan
    assert plan.problems == ()
    (entry,) = plan.tables
    branch = "lake.db.t.`branch_icemigrate-market-0002-data`"
    (filled,) = entry.rows
    assert [statement.text for statement in filled.statements[1:]] == [
        f"SELECT count(*) FROM {branch} WHERE leg IS NOT NULL AND leg.size IS NULL",
        f"SELECT count(*) FROM {branch} WHERE leg IS NOT NULL AND leg.unit IS NULL",
    ]
    assert [planned.text for step in entry.finish for planned in step.changes] == [
        "leg.size optional → required",
        "leg.unit optional → required",
    ]
    aside = WHOLE.replace("leg: \"named_struct('size', coalesce(leg.size, 0), 'unit', 1)\"", "leg.unit: '1'")
    asked, _ = make_plan(world, "0002", aside).plan.tables[0].rows
    assert asked.text == "check before: every row has a value of leg.size"


@pytest.mark.parametrize(
    ("answer", "place"), [("b", "b"), ("c, a", "a"), ("`b, c`, c", "`b, c`"), ("7", "a"), ("`x", "a")]
)
def test_a_value_that_lacks_is_told_where_its_column_becomes_required(answer: str, place: str) -> None:
    asked = NotNullCheck(("a", "b", "`b, c`", "c"), ("a IS NULL",) * 4)
    (ask,) = asked.statements("t")
    assert isinstance(ask, QueryExpectation)
    with pytest.raises(CheckFailed) as failed:
        ask.require([(answer,)])
    assert failed.value.message == once_quoted(f"there are rows without a value of {answer}")
    assert asked.failure_subject(failed.value) == ("columns", place, "required")
