"""Rows that others write while a migration is at work on their table, without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from icemigrate.changes.change import SqlStatement
from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.publication_state import DATA_SUMMARY_PROPERTY
from icemigrate.errors import CheckFailed, ConflictError, EngineError
from icemigrate.events import Event, NoteAdded
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.execution.table_rows import mentions_table
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher, OnCommit, Publisher, apply_step, no_commit
from icemigrate.spark.statement_events import Listener
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine
from tests.support.small_tables import NAME, table

OTHER = replace(NAME, name="u")
BRANCH = "icemigrate-shop-0002-data"


@dataclass(slots=True)
class Lake(RecordingEngine):
    """An engine whose tables have branches, and to which others write.

    :param then: what somebody does once, right behind a statement with this text.
    :param made: the snapshots of each table, with what each was made on and what its summary says.
    """

    then: dict[str, Callable[[], None]] = field(default_factory=dict)
    made: dict[TableName, list[tuple[int, int | None, dict[str, str]]]] = field(default_factory=dict)

    def new(self, name: TableName, on: int | None, summary: Mapping[str, str]) -> int:
        made = self.made.setdefault(name, [(1, None, {})])
        made.append((len(made) + 1, on, dict(summary)))
        return len(made)

    def move(self, name: TableName, to: int) -> None:
        there = self.tables[name]
        refs = {**there.refs, "main": Ref("branch", to)}
        self.tables[name] = replace(there, snapshot=Snapshot(to, to, 3), refs=refs)

    def append(self, name: TableName = NAME) -> None:  # type: ignore[override]
        """Somebody else writes a row."""
        there = self.tables[name].snapshot
        self.log.append("-- somebody writes")
        self.move(name, self.new(name, None if there is None else there.id, {}))

    def empty(self, name: TableName = NAME) -> None:
        """Somebody replaces the table."""
        self.tables[name] = replace(self.tables[name], snapshot=None, refs={})

    def sql(self, text: str) -> None:
        # Without zero-argument super(), which a class with slots does not have.
        RecordingEngine.sql(self, text)
        (at,) = re.findall(r"db\.([tu])\b", text)[:1] or ["t"]
        name = replace(NAME, name=at)
        there = self.tables[name]
        main = None if there.snapshot is None else there.snapshot.id
        if "CREATE OR REPLACE BRANCH" in text:
            assert main is not None
            self.tables[name] = replace(there, refs={**there.refs, BRANCH: Ref("branch", main)})
        elif "DROP BRANCH" in text:
            self.tables[name] = replace(there, refs={n: r for n, r in there.refs.items() if n != BRANCH})
        elif "fast_forward" in text:
            to = there.refs[BRANCH].snapshot_id
            if main not in self._line(name, to):
                raise EngineError("main is no ancestor")
            self.move(name, to)
        self._happened(text)

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        RecordingEngine.sql(self, text)
        there = self.tables[name]
        to = self.new(name, there.refs[BRANCH].snapshot_id, summary)
        self.tables[name] = replace(there, refs={**there.refs, BRANCH: Ref("branch", to)})
        self._happened(text)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        answer = RecordingEngine.ask(self, text)
        self._happened(text)
        return answer

    def metadata_json(self, name: TableName) -> Mapping[str, Any]:
        there = self.tables[name].snapshot
        return {
            "current-snapshot-id": -1 if there is None else there.id,
            "snapshots": [
                {"snapshot-id": n, "timestamp-ms": n, "summary": {"operation": "overwrite", **summary}}
                | ({} if on is None else {"parent-snapshot-id": on})
                for n, on, summary in self.made.get(name, [(1, None, {})])
            ],
        }

    def _line(self, name: TableName, at: int | None) -> list[int]:
        parents = {n: on for n, on, _ in self.made.get(name, [(1, None, {})])}
        line = []
        while at is not None:
            line.append(at)
            at = parents[at]
        return line

    def _happened(self, text: str) -> None:
        for part in [part for part in self.then if part in text]:
            self.then.pop(part)()


@dataclass(slots=True)
class AtOnce:
    """Publishes all steps of a table in one commit, as the atomic publisher does.

    :param before: what somebody does right before a migration's last commit of a table, the last first.
    """

    engine: Lake
    before: list[Callable[[], None]] = field(default_factory=list)
    is_single_commit: bool = True
    tags_at_once: bool = False
    signs: bool = False

    def publish(
        self,
        plan: TablePlan,
        before: Table | None,
        marker: Marker,
        on_event: Listener,
        on_commit: OnCommit = no_commit,
    ) -> Table | None:
        if self.before and not marker.is_started:
            self.before.pop()()
        now = self.engine.tables[plan.name]
        for step in plan.steps:
            now = apply_step(step, now)
        self.engine.log.append(f"-- lands: {'; '.join(c.text for s in plan.steps for c in s.changes)}")
        self.engine.tables[plan.name] = now
        return now


def planned(text: str, *tables: Table) -> tuple[MigrationPlan, Lake]:
    """A migration, and the lake that it is of."""
    there = {t.name: replace(t, snapshot=Snapshot(1, 1, 3), refs={"main": Ref("branch", 1)}) for t in tables}
    made = make_plan({"0002": text}, there, "lake", DeclaredState({t.name: t for t in tables}), [("db",)])
    assert made.ready
    lake = Lake(there, answers={"SELECT count": [(0,)], "select count": [(0,)]})
    lake.expect(made)
    (migration,) = made.migrations
    return migration, lake


def work(
    migration: MigrationPlan,
    lake: Lake,
    publisher: Publisher | None = None,
    *,
    first: Mapping[TableName, Table] | None = None,
    notes: list[str] | None = None,
) -> MigrationRun:
    """The run of it.

    :param first: the tables as an earlier run of it has found them.
    """

    def hear(event: Event) -> None:
        if notes is not None and isinstance(event, NoteAdded):
            notes.append(event.text)

    found = first or dict(lake.tables)
    tables = [found[t.name] for t in migration.tables]
    undo = UndoRecord("0002", tuple(TableUndo(t.name, t.name, t, t, t, t) for t in tables))
    publisher = publisher or DirectPublisher(lake, tags=False)
    marker = Marker("shop", "0002", "", "")
    return MigrationRun(
        migration,
        lake,
        publisher,
        marker,
        hear,
        catalog="lake",
        undo=undo,
        planned_tables=dict(lake.tables),
        is_resumed=first is not None,
    )


def resumed(text: str, columns: str) -> tuple[MigrationPlan, Lake, Mapping[TableName, Table]]:
    """A migration whose rows an earlier run has published, and that died then."""
    migration, lake = planned(text, table(columns))
    (plan,) = migration.tables
    first = dict(lake.tables)
    for step in plan.steps:
        lake.tables[NAME] = apply_step(step, lake.tables[NAME])
    lake.move(NAME, lake.new(NAME, 1, {DATA_SUMMARY_PROPERTY: "shop/0002"}))
    return replace(migration, tables=(replace(plan, steps=()),)), lake, first


FILLED = """
allow: [incompatible]
tables:
  - {name: db.t, columns: [{name: key, type: long, required: true}], backfill: [{set: {key: id * 10}}]}
"""
RETYPED = """
allow: [destructive, incompatible]
tables:
  - name: db.t
    retype: {v: {to: int, using: length(v)}}
    columns: [{name: v, required: true}]
"""
TWICE = FILLED.replace(
    "[{set: {key: id * 10}}]", "[{set: {key: id * 10}}, {set: {key: 0}, where: key is null}]"
)
ON_BRANCH = f"lake.db.t.`branch_{BRANCH}`"


@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize(
    ("text", "columns", "value", "question"),
    [
        (FILLED, "id: long", "SET key = coalesce(key, id * 10) WHERE (key IS NULL)", "WHERE key IS NULL"),
        (
            RETYPED,
            "id: long, v: string",
            "SET v__icemigrate = length(v) WHERE v__icemigrate IS NULL",
            "WHERE v__icemigrate IS NULL",
        ),
    ],
)
def test_rows_that_came_behind_a_dead_run_are_filled_and_asked_about_before_all_lands(
    text: str, columns: str, value: str, question: str, is_early: bool
) -> None:
    migration, lake, first = resumed(text, columns)
    publisher = AtOnce(lake)
    if is_early:
        lake.append()
    else:  # behind the look at what came, and right before the commit
        publisher.before.append(lake.append)
    work(migration, lake, publisher, first=first).run()
    at = [lake.log.index(t) for t in lake.log if value in t or t.endswith(question)]
    (landed,) = (lake.log.index(t) for t in lake.log if "optional → required" in t)
    assert lake.log.index("-- somebody writes") < at[0]
    assert len(at) >= 2
    assert at[-1] < landed
    assert "publish the rows" in lake.log[landed]
    assert BRANCH not in lake.tables[NAME].refs


def test_where_nobody_wrote_a_run_that_goes_on_writes_nothing() -> None:
    migration, lake, first = resumed(FILLED, "id: long")
    work(migration, lake, AtOnce(lake), first=first).run()
    assert not [text for text in lake.log if text.startswith(("UPDATE", "SELECT"))]


@pytest.mark.parametrize("count", [0, 1])
def test_what_several_steps_fill_is_asked_of_rows_of_others_and_not_filled(count: int) -> None:
    migration, lake, first = resumed(TWICE, "id: long")
    lake.append()
    lake.answers["SELECT count"] = [(count,)]
    if count:
        with pytest.raises(CheckFailed, match="rows without a value of `key`: expected 0, got 1"):
            work(migration, lake, AtOnce(lake), first=first).run()
    else:
        work(migration, lake, AtOnce(lake), first=first).run()
    assert not [text for text in lake.log if text.startswith("UPDATE")]
    assert "SELECT count(*) FROM lake.db.t WHERE key IS NULL" in lake.log


def test_rows_that_come_while_columns_are_swapped_one_by_one_are_filled_before() -> None:
    migration, lake = planned(FILLED, table("id: long"))
    lake.then["fast_forward"] = lake.append
    notes: list[str] = []
    work(migration, lake, notes=notes).run()
    (late,) = (lake.log.index(t) for t in lake.log if "coalesce(key" in t)
    assert late < lake.log.index("commit db.t")
    assert any("another client added rows" in note for note in notes)
    assert lake.tables[NAME].schema.find(("key",)).required  # type: ignore[union-attr]


def test_of_one_step_that_fills_several_all_see_the_row_as_it_was() -> None:
    step = Backfill((("a", "1"), ("b", "a + 1"), ("c", "2")), "d or e")
    (statement,) = step.late_row_statements("t", [("a",), ("b",)])
    assert statement == SqlStatement(
        "UPDATE t SET a = coalesce(a, 1), b = coalesce(b, a + 1) WHERE (d or e) AND (a IS NULL OR b IS NULL)"
    )
    assert step.late_row_statements("t", [("x",)]) == ()


TWO = """
allow: [destructive]
tables:
  - {name: db.t, columns: [{name: w, type: int}], drop_columns: [v], backfill: [{set: {w: v}}]}
  - {name: db.u, backfill: [{set: {id: VALUE}}]}
"""


def two(value: str = "abs(id)") -> tuple[MigrationPlan, Lake]:
    return planned(TWO.replace("VALUE", value), table("id: long, v: int"), table("id: long", name=OTHER))


@pytest.mark.parametrize("is_at_once", [True, False])
@pytest.mark.parametrize("behind", ["UPDATE lake.db.t", "UPDATE lake.db.u"])
def test_a_table_that_others_replace_meanwhile_has_nothing_to_be_published(
    behind: str, is_at_once: bool
) -> None:
    migration, lake = two()
    lake.then[behind] = lake.empty
    work(migration, lake, AtOnce(lake) if is_at_once else None).run()
    assert lake.tables[NAME].snapshot is None
    assert lake.tables[NAME].schema.find(("v",)) is None


def test_others_who_replace_a_table_at_its_publication_are_seen() -> None:
    migration, lake = two()
    work(migration, lake, AtOnce(lake, [lambda: None, lake.empty])).run()
    assert lake.tables[NAME].snapshot is None


def test_somebody_who_takes_a_branch_away_is_told_of() -> None:
    migration, lake = two()
    lake.then["UPDATE lake.db.u"] = lambda: lake.sql("ALTER TABLE lake.db.t DROP BRANCH")
    with pytest.raises(
        EngineError, match="another client dropped branch `icemigrate-shop-0002-data` of table"
    ):
        work(migration, lake, AtOnce(lake)).run()


def test_where_a_publication_fails_no_branch_is_left() -> None:
    migration, lake = two()
    lake.fails.add("fast_forward('db.t'")
    with pytest.raises(EngineError):
        work(migration, lake).run()
    assert [BRANCH in t.refs for t in lake.tables.values()] == [False, False]


@pytest.mark.parametrize("is_at_once", [True, False])
def test_where_others_write_all_the_while_it_ends(is_at_once: bool) -> None:
    migration, lake = two()
    publisher = AtOnce(lake, [lake.append] * 9)

    def again() -> None:
        lake.append()
        lake.then["w = v"] = again

    if not is_at_once:
        again()
    with pytest.raises(EngineError, match="its rows were written 5 times") as failed:
        work(migration, lake, publisher if is_at_once else None).run()
    assert (
        failed.value.hint == "pause the other writers of the table while it runs, and run the command again"
    )
    assert len([text for text in lake.log if text.startswith("UPDATE lake.db.t")]) == 5


def test_a_run_that_goes_on_ends_too_where_others_write_all_the_while() -> None:
    migration, lake, first = resumed(TWICE, "id: long")
    with pytest.raises(EngineError, match="other writers kept changing"):
        work(migration, lake, AtOnce(lake, [lake.append] * 9), first=first).run()


@pytest.mark.parametrize("value", ["(select sum(v) from lake.db.t)", "abs(id)"])
def test_rows_that_ask_a_table_are_not_written_again_when_its_own_are_out(value: str) -> None:
    migration, lake = two(value)
    lake.then["fast_forward('db.t'"] = lambda: lake.append(OTHER)
    if "select" in value:
        with pytest.raises(
            EngineError, match=r"their SQL reads table `db\.t`, which this migration has changed"
        ):
            work(migration, lake).run()
        assert BRANCH not in lake.tables[OTHER].refs
    else:
        work(migration, lake).run()
    written = [text for text in lake.log if text.startswith("UPDATE lake.db.u")]
    assert len(written) == (1 if "select" in value else 2)


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("SELECT 1 FROM lake.db.t", True),
        ("SELECT 1 FROM `DB` . `T` WHERE x", True),
        ("SELECT t FROM lake.db.trades", False),
        ("SELECT t.x FROM lake.odb.t AS t", False),
    ],
)
def test_sql_speaks_of_a_table_by_its_whole_name(text: str, is_said: bool) -> None:
    assert mentions_table(text, NAME) is is_said


REQUIRED = "{allow: [incompatible], tables: [{name: db.t, columns: [{name: v, required: true}]}]}"


@pytest.mark.parametrize("is_early", [True, False])
def test_rows_that_come_behind_the_question_are_asked_too_before_a_column_is_required(is_early: bool) -> None:
    migration, lake = planned(REQUIRED, table("id: long, v: int"))
    question = "SELECT count(*) FROM lake.db.t WHERE v IS NULL"

    def again() -> None:
        lake.append()
        if not is_early:
            lake.then["SELECT count"] = lake.append

    lake.then["SELECT count"] = again
    if is_early:
        work(migration, lake).run()
    else:  # nobody can ask for ever
        with pytest.raises(ConflictError, match="after the check for nulls in `v`"):
            work(migration, lake).run()
    assert [t for t in lake.log if t in (question, "commit db.t")] == [question, question, "commit db.t"]
    column = lake.tables[NAME].schema.find(("v",))
    assert column is not None
    assert column.required is is_early


def test_a_column_that_becomes_required_is_one_commit_with_the_marker() -> None:
    migration, lake = planned(REQUIRED, table("id: long, v: int"))
    work(migration, lake, DirectPublisher(lake)).run()
    assert [marker.is_started for _, marker in lake.markers] == [False]


CHECKED = """
tables:
  - name: db.t
    columns: [{name: v, description: how many}]
    checks: [{before: "select count(*) from {table} where v < 0", gives: 0}]
"""


def test_what_must_hold_before_is_never_passed_over_in_a_first_run() -> None:
    migration, lake = planned(CHECKED, table("id: long, v: int"))
    run = work(migration, lake)
    there = lake.tables[NAME]
    lake.tables[NAME] = replace(there, properties={"k": "x"})
    lake.answers = {"v < 0": [(1,)]}
    with pytest.raises(CheckFailed):
        run.run()
    lake.tables[NAME] = replace(there, schema=replace(there.schema, fields=there.schema.fields[:1]))
    with pytest.raises(ConflictError):  # rather than the fault of a query that cannot run
        run.run()
