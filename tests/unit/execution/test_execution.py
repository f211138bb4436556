from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from icemigrate.errors import HeadMoved, LockHeld, StalePlan
from icemigrate.events import (
    Event,
    MigrationRecorded,
    MigrationStarted,
    NoteAdded,
    StatementFinished,
    StatementStarted,
    TableMarked,
    TableVerified,
)
from icemigrate.execution.environment_session import Operator, current_operator
from icemigrate.execution.failures import Interrupted, Undone
from icemigrate.execution.recovery import PlanInverse
from icemigrate.execution.run import run_plan
from icemigrate.execution.table_checks import verify_table
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord
from icemigrate.history.journal import Journal
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.iceberg.types import Field, Primitive, Struct
from icemigrate.planning.plan import Plan
from icemigrate.spark.append_snapshot import FOR_EVER_MS, max_ref_age_ms
from icemigrate.spark.engine_port import Marker
from tests.support.memory_journal import HISTORY, journal_in_memory
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine

T = TableName(("db",), "t")
U = TableName(("db",), "u")

MAKE = """
    tables:
      - name: db.t
        columns: [{name: id, type: long}, {name: name, type: string}]
"""
CHANGE = """
    description: Change it
    allow: [incompatible]
    tables:
      - name: db.t
        columns: [{name: more, type: int}, {name: id, required: true}]
        properties: {k: v}
"""


@dataclass
class World:
    """Tables and a history, each in a memory of its own.

    :param state: as the last run that succeeded recorded it.
    """

    engine: RecordingEngine = field(default_factory=RecordingEngine)
    kept: RecordingEngine = field(default_factory=RecordingEngine)
    events: list[Event] = field(default_factory=list)
    inverse: PlanInverse = lambda record: None

    @property
    def journal(self) -> Journal:
        return journal_in_memory(self.kept)

    @property
    def history(self) -> History:
        return self.journal.writer.read() if self.kept.tables else History("market")

    @property
    def state(self) -> DeclaredState:
        return self.history.state

    @property
    def applied(self) -> list[tuple[str, str]]:
        return [(a.version.text, a.state) for a in self.history.applied]

    def rows(self) -> list[tuple[object, object]]:
        return [(row["version_text"], row["outcome"]) for row in self.kept.rows.get(HISTORY, [])]

    def plan(self, **files: str) -> Plan:
        versions = {name.removeprefix("v"): text for name, text in files.items()}
        plan = make_plan(versions, self.engine.tables, base=self.state, namespaces=self.engine.namespaces)
        self.engine.expect(plan)
        return plan

    def run(self, plan: Plan, keep: timedelta | None = None) -> tuple[HistoryRecord, ...]:
        return self.apply(plan, self.events.append, keep)

    def apply(
        self,
        plan: Plan,
        listen: Callable[[Event], None] = lambda event: None,
        keep: timedelta | None = None,
    ) -> tuple[HistoryRecord, ...]:
        by = Operator("ana", "ci")
        return run_plan(plan, self.engine, self.journal, listen, by, keep, inverse=self.inverse)

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def made(world: World) -> World:
    """A world in which the first migration is applied."""
    world.run(world.plan(v0001=MAKE))
    world.events.clear()
    world.engine.log.clear()
    return world


def with_rows(world: World, rows: int | None = 5) -> None:
    world.engine.tables[T] = replace(world.engine.tables[T], snapshot=Snapshot(77, 0, rows))


def test_every_step_is_told_in_order(world: World) -> None:
    (record,) = world.run(world.plan(v0001=MAKE))
    kinds = [type(event) for event in world.events]
    assert kinds == [
        MigrationStarted,
        StatementStarted,
        StatementFinished,
        StatementStarted,
        StatementFinished,
        TableMarked,
        TableVerified,
        MigrationRecorded,
    ]
    started = [e for e in world.events if isinstance(e, StatementStarted)]
    assert [(e.number, e.of, e.table) for e in started] == [(1, 2, None), (2, 2, T)]
    assert world.engine.namespaces == {("db",)}
    assert record.statements == tuple(e.text for e in started)
    assert (record.user, record.host, record.outcome) == ("ana", "ci", "applied")
    assert (record.project, record.environment, record.tables) == ("market", "local", ("db.t",))
    assert record.started_at <= record.finished_at


def test_what_is_recorded_has_the_ids_that_the_catalog_gave(made: World) -> None:
    made.run(made.plan(v0002=CHANGE))
    state = made.state
    assert state.tables[T].schema.fields == made.engine.tables[T].schema.fields
    assert [f.id for f in state.tables[T].schema.fields] == [1, 2, 3]
    assert state.namespaces == {("db",)}


def test_statements_and_commits_run_in_the_order_of_the_plan(made: World) -> None:
    (record,) = made.run(made.plan(v0002=CHANGE))
    assert any(text.startswith("metadata commit: make id required") for text in record.statements)
    assert f"commit {T}" in made.engine.log
    assert made.engine.log.index(f"commit {T}") < next(
        i for i, text in enumerate(made.engine.log) if "ADD COLUMN" in text
    )


def test_several_migrations_are_recorded_one_by_one(world: World) -> None:
    records = world.run(world.plan(v0001=MAKE, v0002=CHANGE))
    assert [r.version.text for r in records] == ["0001", "0002"]
    assert [(e.number, e.of) for e in world.events if isinstance(e, MigrationStarted)] == [(1, 2), (2, 2)]
    assert [marker.tag for _, marker in world.engine.markers] == [
        "icemigrate-market-0001",
        "icemigrate-market-0002",
    ]


def test_a_plan_without_migrations_touches_nothing(world: World) -> None:
    assert world.apply(world.plan()) == ()
    assert world.kept.log == []
    assert world.engine.log == []


def test_a_statement_that_fails_ends_the_run_and_tells_what_is_left(made: World) -> None:
    made.engine.fails.add("ADD COLUMN")
    plan = made.plan(v0002=CHANGE, v0003="tables: [{name: db.t, properties: {z: z}}]")
    with pytest.raises(Interrupted) as stopped:
        made.run(plan)
    fault = stopped.value
    assert fault.done == ("metadata commit: make id required",)
    assert "ADD COLUMN" in fault.failed
    assert len(fault.remaining) == 1
    assert "SET TBLPROPERTIES" in fault.remaining[0]
    assert "refused" in fault.message
    assert made.applied == [("0001", "applied"), ("0002", "interrupted")]
    assert [marker.tag for _, marker in made.engine.markers] == ["icemigrate-market-0001"]

    made.engine.fails.clear()
    again = made.plan(v0002=CHANGE, v0003="tables: [{name: db.t, properties: {z: z}}]")
    records = made.run(again)
    assert [r.version.text for r in records] == ["0002", "0003"]
    assert not any("required" in text for text in records[0].statements)


def test_a_first_statement_that_fails_says_that_nothing_was_done(made: World) -> None:
    made.engine.fails.add("SET TBLPROPERTIES")
    with pytest.raises(Undone, match="no statement ran before that") as stopped:
        made.run(made.plan(v0002="tables: [{name: db.t, properties: {z: z}}]"))
    assert stopped.value.done == ()
    assert stopped.value.remaining == ()
    assert "not done" not in stopped.value.message


@pytest.mark.parametrize(
    ("ignored", "fact"),
    [("ADD COLUMN", "more"), (f"commit {T}", "id.required"), ("SET TBLPROPERTIES", "properties.k")],
)
def test_a_change_that_the_catalog_ignores_is_a_fault(made: World, ignored: str, fact: str) -> None:
    made.engine.ignores.add(ignored)
    with pytest.raises(Interrupted, match="accepted the change but did not") as stopped:
        made.run(made.plan(v0002=CHANGE))
    assert fact in stopped.value.message
    assert stopped.value.remaining == ()
    assert len(stopped.value.done) == 3
    assert made.applied[-1] == ("0002", "interrupted")


def test_a_table_that_is_not_there_afterwards_is_a_fault(world: World) -> None:
    world.engine.ignores.add("CREATE TABLE")
    with pytest.raises(Undone, match="is missing after the migration"):
        world.run(world.plan(v0001=MAKE))


def test_a_table_that_kept_its_old_name_is_a_fault(made: World) -> None:
    class Copying(RecordingEngine):
        def sql(self, text: str) -> None:
            before = dict(self.tables)
            super().sql(text)
            self.tables |= before

    made.engine = Copying(tables=made.engine.tables, namespaces=made.engine.namespaces)
    plan = made.plan(v0002="tables: [{name: db.u, renamed_from: db.t}]")
    with pytest.raises(Interrupted, match="still there under its old name"):
        made.run(plan)


def test_a_record_that_fails_leaves_everything_else_done(made: World) -> None:
    plan = made.plan(v0002=CHANGE)

    def fill(event: Event) -> None:
        if isinstance(event, TableVerified):
            made.kept.fails.add("append")

    with pytest.raises(Interrupted, match="refused: append") as stopped:
        made.apply(plan, fill)
    assert stopped.value.failed == "the record in the history"
    assert len(stopped.value.done) == 3
    assert made.applied[-1] == ("0002", "interrupted")

    made.kept.fails.clear()
    with pytest.raises(LockHeld, match=r"held by ana on ci .*, at: 0002: "):
        made.apply(made.plan(v0002=CHANGE))
    take_away(made)
    (record,) = made.run(made.plan(v0002=CHANGE))
    assert record.statements == ()
    assert [marker.tag for _, marker in made.engine.markers][-1] == "icemigrate-market-0002"


def take_away(world: World) -> None:
    """The lock of a process that is gone."""
    writer = world.journal.writer
    writer.swap(writer.head().id, "unlocked", None)


@pytest.mark.parametrize(("rows", "before"), [(5, 77), (None, 77), (0, None)])
def test_the_rows_before_are_tagged_where_there_may_be_any(
    made: World, rows: int | None, before: int | None
) -> None:
    with_rows(made, rows)
    made.engine.answers = {"id IS NULL": [(0,)]}
    made.run(made.plan(v0002=CHANGE), keep=timedelta(days=3))
    name, marker = made.engine.markers[-1]
    assert name == T
    assert marker.before == before
    assert marker.keep == timedelta(days=3)
    assert marker.summary["icemigrate.description"] == "Change it"


def test_a_table_found_as_declared_is_tagged_but_its_rows_are_not(made: World) -> None:
    with_rows(made)
    made.run(made.plan(v0002="tables: [{name: db.t, columns: [{name: id, type: long}]}]"))
    assert made.engine.markers[-1][1].before is None


def test_what_somebody_else_changes_meanwhile_is_a_note(made: World) -> None:
    def meddle(table: Table) -> Table:
        return replace(table, properties={**table.properties, "their.key": "x"})

    plan = made.plan(v0002=CHANGE)

    def listen(event: Event) -> None:
        made.events.append(event)
        if isinstance(event, StatementStarted) and event.number == 3:
            made.engine.tables[T] = meddle(made.engine.tables[T])

    made.apply(plan, listen)
    notes = [e.text for e in made.events if isinstance(e, NoteAdded)]
    assert notes == ["changed by another client meanwhile: db.t:properties.their.key"]


def test_other_field_ids_than_foreseen_stop_what_was_planned_on_them(made: World) -> None:
    plan = made.plan(v0002=CHANGE, v0003="tables: [{name: db.t, renames: {more: most}}]")

    def listen(event: Event) -> None:
        made.events.append(event)
        if isinstance(event, StatementStarted) and "ADD COLUMN" in event.text:
            table = made.engine.tables[T]
            theirs = Field(table.last_column_id + 1, "theirs", Primitive("int"))
            schema = replace(table.schema, fields=(*table.schema.fields, theirs))
            made.engine.tables[T] = replace(table, schema=schema, last_column_id=theirs.id)

    with pytest.raises(StalePlan, match="other field ids"):
        made.apply(plan, listen)
    assert made.applied == [("0001", "applied"), ("0002", "applied")]
    recorded = made.state.tables[T]
    assert {f.name: f.id for f in recorded.schema.fields} == {"id": 1, "name": 2, "more": 4}
    (third,) = made.run(made.plan(v0003="tables: [{name: db.t, renames: {more: most}}]"))
    assert len(third.statements) == 1


def test_a_renamed_table_is_followed_and_its_old_name_remembered(made: World) -> None:
    text = "tables: [{name: db.u, renamed_from: db.t, properties: {k: v}}]"
    made.run(made.plan(v0002=text))
    assert set(made.engine.tables) == {U}
    assert set(made.state.tables) == {U}
    assert made.state.former == {T}
    assert made.engine.markers[-1][0] == U


def test_a_table_renamed_by_an_earlier_run_is_found_under_its_new_name(made: World) -> None:
    text = "tables: [{name: db.u, renamed_from: db.t, properties: {k: v}}]"
    made.engine.fails.add("SET TBLPROPERTIES")
    with pytest.raises(Interrupted):
        made.run(made.plan(v0002=text))
    made.engine.fails.clear()
    (record,) = made.run(made.plan(v0002=text))
    assert len(record.statements) == 1
    assert made.engine.tables[U].properties["k"] == "v"
    assert made.engine.markers[-1][0] == U


def test_a_dropped_table_is_in_the_trash_and_not_marked(made: World) -> None:
    made.run(made.plan(v0002="allow: [destructive]\ntables: [{name: db.t, drop: true}]"))
    (name,) = made.engine.tables
    assert name.namespace == ("icemigrate_trash",)
    assert (dict(made.state.tables), made.state.former) == ({}, {T})
    assert [marker.tag for _, marker in made.engine.markers] == ["icemigrate-market-0001"]


def test_a_table_without_words_in_spark_is_made_through_the_engine(world: World) -> None:
    world.run(world.plan(v0001="tables: [{name: db.t, columns: [{name: at, type: time}]}]"))
    assert f"create {T}" in world.engine.log
    assert world.engine.tables[T].schema.fields == (Field(1, "at", Primitive("time")),)


def test_a_plan_that_may_not_run_is_a_bug_of_the_caller(made: World) -> None:
    plan = made.plan(v0002=CHANGE)
    broken = replace(plan, migrations=(replace(plan.migrations[0], unconsented=(None,)),))  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        made.apply(broken)


def test_the_history_is_kept_in_the_same_catalog(world: World) -> None:
    run_plan(world.plan(v0001=MAKE), world.engine, journal_in_memory(world.engine))
    outcomes = [(row["version_text"], row["outcome"]) for row in world.engine.rows[HISTORY]]
    assert outcomes == [("0001", "started"), ("0001", "applied")]
    assert world.engine.tables[HISTORY].properties["icemigrate.project"] == "market"


def test_who_applies_is_known_even_where_the_user_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid 1234")

    assert current_operator().user
    monkeypatch.setattr("getpass.getuser", nameless)
    assert current_operator().user == "unknown"


@pytest.mark.parametrize(
    ("keep", "age_ms", "limit"),
    [
        (None, 5, FOR_EVER_MS),
        (timedelta(days=1), 0, 86_400_000),
        (timedelta(days=1), 1000, 86_401_000),
        (timedelta(seconds=1), -5000, 1000),
        (timedelta(0), 0, 1),
    ],
)
def test_a_tag_is_kept_from_now_on(keep: timedelta | None, age_ms: int, limit: int) -> None:
    assert max_ref_age_ms(keep, age_ms) == limit


def test_a_marker_says_what_it_marks() -> None:
    marker = Marker("p", "0003", "d", "c")
    assert (marker.tag, marker.before_tag({})) == ("icemigrate-p-0003", "icemigrate-p-0003-before")
    assert marker.summary == {
        "icemigrate.project": "p",
        "icemigrate.version": "0003",
        "icemigrate.description": "d",
        "icemigrate.checksum": "c",
    }


def table(*fields: Field, **values: object) -> Table:
    last = max(f.id for _, f in Schema(fields).walk())
    return replace(Table(T, Schema(fields), last_column_id=last), **values)  # type: ignore[arg-type]


A, B, C = (Field(i, n, Primitive("int")) for i, n in ((1, "a"), (2, "b"), (3, "c")))
Ordering = Callable[[tuple[Field, ...]], Table]


def nested(fields: tuple[Field, ...]) -> Table:
    return table(Field(9, "s", Struct(fields)))


def flat(fields: tuple[Field, ...]) -> Table:
    return table(*fields)


@pytest.mark.parametrize("of", [flat, nested])
@pytest.mark.parametrize(
    ("before", "expected", "actual", "misplaced"),
    [
        ((A, B), (B, A), (A, B), True),
        ((A, B), (B, A), (B, A), False),
        ((A, B), (A, B, C), (B, A, C), False),  # somebody else moved one
        ((A, B), (A, C, B), (A, B, C), True),
        ((A, B, C), (C, B), (B, C), True),
    ],
)
def test_an_order_that_was_asked_for_is_checked(
    of: Ordering,
    before: tuple[Field, ...],
    expected: tuple[Field, ...],
    actual: tuple[Field, ...],
    misplaced: bool,
) -> None:
    ignored = verify_table(of(before), of(expected), of(actual)).ignored
    assert bool(ignored) is misplaced
    assert all("the order of" in text for text in ignored)


def test_a_new_table_lies_where_it_was_asked_to() -> None:
    wanted = table(A, location="s3://lake/t__0003")
    assert not verify_table(None, wanted, table(A, location="s3://lake/t__0003/")).ignored
    assert verify_table(None, wanted, table(A, location="s3://lake/t")).ignored
    assert not verify_table(None, table(A), table(A, location="s3://lake/t")).ignored


def test_what_a_catalog_adds_to_a_new_table_is_nobody_s_change() -> None:
    verdict = verify_table(None, table(A), table(A, properties={"owner": "ana", "server.key": "x"}))
    assert (verdict.ignored, verdict.foreign) == ((), ())


def test_a_commit_to_a_branch_is_no_change_of_the_branch() -> None:
    old, new = Ref("branch", 1, None, 9), Ref("branch", 2, None, 9)
    verdict = verify_table(
        table(A, refs={"main": old}), table(A, B, refs={"main": old}), table(A, B, refs={"main": new})
    )
    assert (verdict.ignored, verdict.foreign) == ((), ())
    moved = {"main": new, "audit": Ref("tag", 2)}
    verdict = verify_table(
        table(A, refs={"main": old, "audit": Ref("tag", 1)}),
        table(A, B, refs={"main": old, "audit": Ref("tag", 1)}),
        table(A, B, refs=moved),
    )
    assert verdict.foreign == ("db.t:tags.audit",)


def test_a_value_that_is_neither_the_old_nor_the_new_is_told() -> None:
    before, wanted = table(A, properties={"k": "1"}), table(A, properties={"k": "2"})
    (told,) = verify_table(before, wanted, table(A, properties={"k": "3"})).ignored
    assert told == "db.t:properties.k is 3 instead of 2"


def test_the_engine_without_spark_refuses_a_head_that_moved(world: World) -> None:
    world.engine.create(table(A))
    head = world.engine.append(T, [], {}, (), expected_head=None, summary={})
    for expected in (None, head + 1):
        with pytest.raises(HeadMoved, match="another writer changed"):
            world.engine.append(T, [{}], {}, (), expected_head=expected, summary={})
    assert world.engine.rows[T] == []
    assert world.engine.metadata_json(T) is None
