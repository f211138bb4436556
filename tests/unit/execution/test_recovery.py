"""What becomes of a migration that fails, is stopped or dies on its way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from icemigrate.errors import ConflictError, EngineError, ExitCode, LockHeld, LockLost, Stopped, Terminated
from icemigrate.events import (
    Event,
    LockAwaited,
    LockTakenOver,
    MigrationStarted,
    StatementStarted,
    UndoFinished,
    UndoStarted,
)
from icemigrate.evidence.environment_undo import declared_state_after
from icemigrate.execution.environment_session import Operator
from icemigrate.execution.failures import Failed, Interrupted, Undone, state_before_run
from icemigrate.execution.recovery import PlanInverse
from icemigrate.execution.run import run_plan
from icemigrate.execution.signals import StopRequest, watch_stop_signals
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Field, Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.types import Primitive
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import Direction, MigrationPlan, Plan
from icemigrate.planning.plan_file import structural_json
from icemigrate.planning.undo import MigrationUndo, UndoEnvironment, plan_undo
from tests.support.memory_journal import HISTORY
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine

MAKE = (
    "tables: [" + ", ".join(f"{{name: db.t{i}, columns: [{{name: id, type: long}}]}}" for i in range(5)) + "]"
)
CHANGE = (
    "description: Add to all of them\ntables: ["
    + ", ".join(
        f"{{name: db.t{i}, columns: [{{name: more, type: int}}], properties: {{k: v}}}}" for i in range(5)
    )
    + "]"
)
NAMES = [TableName(("db",), f"t{i}") for i in range(5)]


@dataclass
class World:
    """Tables and a history in memory; failures are undone as they are on real tables."""

    engine: RecordingEngine = field(default_factory=RecordingEngine)
    kept: RecordingEngine = field(default_factory=RecordingEngine)
    events: list[Event] = field(default_factory=list)
    timeout_s: float = 0
    lease_s: float = 60

    @property
    def journal(self) -> Journal:
        return Journal(HistoryWriter(self.kept, HISTORY, "market"), self.lease_s, self.timeout_s)

    @property
    def history(self) -> History:
        return self.journal.writer.read() if self.kept.tables else History("market")

    @property
    def standings(self) -> dict[str, str]:
        return {a.version.text: a.state for a in self.history.applied}

    @property
    def outcomes(self) -> list[tuple[object, object]]:
        return [(row["version_text"], row["outcome"]) for row in self.kept.rows[HISTORY]]

    def plan(self, **files: str) -> Plan:
        versions = {name.removeprefix("v"): text for name, text in files.items()}
        plan = make_plan(
            versions, self.engine.tables, base=self.history.state, namespaces=self.engine.namespaces
        )
        self.engine.expect(plan)
        return plan

    def inverse(self, record: UndoRecord) -> MigrationPlan:
        undo = MigrationUndo(record.version, "", "", record, {})
        state = declared_state_after(record, self.history.state)
        (plan,) = plan_undo([undo], state, self.engine.tables, UndoEnvironment("market", "local")).migrations
        self.engine.expect(Plan("market", "local", "sqlite", "local", (plan,)))
        return plan

    def run(
        self,
        plan: Plan,
        listen: Callable[[Event], None] = lambda event: None,
        inverse: PlanInverse | None = None,
    ) -> tuple[HistoryRecord, ...]:
        def hear(event: Event) -> None:
            self.events.append(event)
            listen(event)

        by = Operator("ana", "ci")
        return run_plan(plan, self.engine, self.journal, hear, by, inverse=inverse or self.inverse)

    def structures(self) -> list[object]:
        return [_without_ids(structural_json(self.engine.tables[name])) for name in NAMES]


def _without_ids(table: dict[str, object]) -> dict[str, object]:
    """Ids that were given once are not given again, so these only grow."""
    return {key: value for key, value in table.items() if not key.startswith("last-")}


@pytest.fixture
def made() -> World:
    world = World()
    world.run(world.plan(v0001=MAKE))
    world.events.clear()
    world.engine.log.clear()
    return world


def at(text: str, act: Callable[[], None]) -> Callable[[Event], None]:
    """Acts before a statement that has the text begins."""

    def listen(event: Event) -> None:
        if isinstance(event, StatementStarted) and text in event.text:
            act()

    return listen


def ask_to_stop(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def test_namespaces_that_a_failed_migration_made_go_the_deepest_first() -> None:
    world = World()
    world.engine.fails.add("CREATE TABLE")
    with pytest.raises(Undone):
        world.run(
            world.plan(
                v0001="{namespaces: [a, a.b], tables: [{name: a.b.t, columns: [{name: id, type: long}]}]}"
            )
        )
    assert world.engine.namespaces == set()


def test_a_statement_that_fails_in_the_third_of_five_tables_is_undone_in_all(made: World) -> None:
    before = made.structures()
    made.engine.fails.add("db.t2 SET TBLPROPERTIES")
    with pytest.raises(Undone) as failed:
        made.run(made.plan(v0002=CHANGE))
    assert made.structures() == before
    fault = failed.value
    assert fault.exit_code == ExitCode.ERROR
    assert len(fault.done) == 5
    assert "db.t2 SET TBLPROPERTIES" in fault.failed
    assert len(fault.remaining) == 4
    assert fault.message.endswith("migration 0002 was undone: no table was changed by it, and it is pending")
    assert "0002" not in made.standings
    assert [type(e) for e in made.events if isinstance(e, (UndoStarted, UndoFinished))] == [
        UndoStarted,
        UndoFinished,
    ]
    assert made.standings == {"0001": "applied"}
    assert (made.history.intents, made.history.lock) == ((), None)
    assert made.outcomes[-2:] == [("0002", "started"), ("0002", "failed")]
    assert "refused: " in str(made.kept.rows[HISTORY][-1]["message"])
    made.engine.fails.clear()
    (record,) = made.run(made.plan(v0002=CHANGE))
    assert len(record.statements) == 10
    assert made.standings["0002"] == "applied"


@pytest.mark.parametrize("fault", [EngineError("the storage does not answer"), KeyboardInterrupt()])
def test_tags_that_cannot_be_taken_off_leave_what_is_undone_undone(
    made: World, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.engine.fails.add("db.t2 SET TBLPROPERTIES")
    plan = made.plan(v0002=CHANGE)

    def marked(event: Event) -> None:
        if isinstance(event, UndoFinished):
            for name in NAMES:
                there = made.engine.tables[name]
                refs = {**there.refs, "icemigrate-market-0002": Ref("tag", 1)}
                made.engine.tables[name] = replace(there, refs=refs)
            monkeypatch.setattr(RecordingEngine, "commit", refuse)

    def refuse(engine: RecordingEngine, name: TableName, *_: object) -> Table:
        tried.append(name)
        raise fault

    tried: list[TableName] = []
    with pytest.raises(Undone):
        made.run(plan, marked)
    assert len(tried) == (1 if isinstance(fault, KeyboardInterrupt) else 3)
    assert made.standings == {"0001": "applied"}
    assert made.outcomes[-1] == ("0002", "failed")
    assert "undo 0002" in str(made.kept.rows[HISTORY][-1]["statements"])  # what undid it is kept too


def test_a_table_that_somebody_made_under_a_planned_name_is_left_alone() -> None:
    world = World()
    theirs = Table(NAMES[2], Schema((Field(1, "theirs", Primitive("long")),)), uuid="theirs")

    def make() -> None:
        world.engine.tables[theirs.name] = theirs

    with pytest.raises(Undone, match=r"another client created table `db\.t2` meanwhile") as failed:
        world.run(world.plan(v0001=MAKE), at("db.t1", make))
    assert failed.value.exit_code == ExitCode.CONFLICT
    assert world.engine.tables[theirs.name] == theirs
    assert not {NAMES[0], NAMES[1]} & set(world.engine.tables), "they are in the trash"


def test_what_cannot_be_undone_stays_and_is_said(made: World) -> None:
    made.engine.fails |= {"db.t1 SET TBLPROPERTIES", "DROP COLUMN", "UNSET", "commit db.t0"}
    plan = made.plan(v0002=CHANGE)
    with pytest.raises(Interrupted, match="the undo failed: refused") as failed:
        made.run(plan)
    assert "`icemigrate apply` continues" in (failed.value.hint or "")
    assert "`icemigrate rollback` undoes it" in (failed.value.hint or "")
    assert made.standings == {"0001": "applied", "0002": "interrupted"}
    intent = made.history.intent
    assert intent is not None
    assert (intent.version.text, intent.direction) == ("0002", Direction.APPLY)
    assert intent.tables == tuple(map(str, NAMES))
    assert set(intent.metadata) == set(map(str, NAMES))
    assert made.history.lock is None
    assert made.outcomes[-1] == ("0002", "interrupted")


@pytest.fixture
def half_done(made: World) -> World:
    """The second migration is interrupted on its way, and nothing could be undone."""
    made.engine.fails.add("db.t2 SET TBLPROPERTIES")
    with pytest.raises(Interrupted, match="no undo could be planned"):
        made.run(made.plan(v0002=CHANGE), inverse=lambda record: None)
    made.engine.fails.clear()
    return made


def test_the_next_apply_goes_on_from_what_is_done(half_done: World) -> None:
    (record,) = half_done.run(half_done.plan(v0002=CHANGE))
    assert len(record.statements) == 5
    assert half_done.standings == {"0001": "applied", "0002": "applied"}
    assert half_done.history.intents == ()
    undo = half_done.history.undo_record(record.version)  # type: ignore[arg-type]
    assert undo is not None
    before = [t.actual_before for t in undo.tables]
    assert all(t is not None and t.schema.find(("more",)) is None for t in before), (
        "as the first run found them"
    )
    assert all(t.after is not None and t.after.schema.find(("more",)) is not None for t in undo.tables)


def test_other_migrations_of_its_tables_wait_and_those_of_others_do_not(half_done: World) -> None:
    with pytest.raises(ConflictError, match="0003 is blocked: migration 0002"):
        half_done.run(half_done.plan(v0003="tables: [{name: db.t4, properties: {z: z}}]"))
    half_done.run(half_done.plan(v0004="tables: [{name: db.other, columns: [{name: id, type: long}]}]"))
    assert half_done.standings == {"0001": "applied", "0002": "interrupted", "0004": "applied"}


def test_a_run_that_goes_on_and_fails_undoes_both(half_done: World) -> None:
    half_done.engine.fails.add("db.t3 SET TBLPROPERTIES")
    with pytest.raises(Undone):
        half_done.run(half_done.plan(v0002=CHANGE))
    assert half_done.standings == {"0001": "applied"}
    assert list(half_done.history.undo) == ["0001"]
    for name in NAMES:
        table = half_done.engine.tables[name]
        assert (table.schema.find(("more",)), table.properties.get("k")) == (None, None)


def test_a_run_that_goes_on_and_stops_before_it_begins_undoes_what_the_first_did(half_done: World) -> None:
    def stop_at_once(event: Event) -> None:
        if isinstance(event, MigrationStarted):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Undone):
        half_done.run(half_done.plan(v0002=CHANGE), stop_at_once)
    assert half_done.standings == {"0001": "applied"}
    for name in NAMES:
        table = half_done.engine.tables[name]
        assert (table.schema.find(("more",)), table.properties.get("k")) == (None, None)


@pytest.mark.parametrize(
    ("number", "kind", "code"), [(signal.SIGINT, "SIGINT", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_a_signal_between_two_statements_ends_in_one_message(
    made: World, number: int, kind: str, code: int
) -> None:
    before, handler = made.structures(), signal.getsignal(number)
    plan = made.plan(v0002=CHANGE)
    with pytest.raises(Undone) as failed:
        made.run(plan, at("db.t2 ADD COLUMN", ask_to_stop(number)))
    assert failed.value.exit_code == code
    assert ("SIGTERM" if kind == "SIGTERM" else "stopped by Ctrl-C") in failed.value.message
    assert failed.value.hint == "run `icemigrate apply` again", "there is no cause to mend"
    assert made.structures() == before
    assert made.history.lock is None
    assert signal.getsignal(number) is handler


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "pending"),
        ({"is_redo": True}, "rolled back"),
        ({"direction": Direction.ROLLBACK}, "applied"),
        ({"direction": Direction.ROLLBACK, "refill_only": True}, "rolled back"),
    ],
)
def test_a_failed_run_that_is_undone_names_the_state_of_its_version(
    made: World, change: dict[str, Any], state: str
) -> None:
    (migration,) = made.plan(v0002=CHANGE).migrations
    assert state_before_run(replace(migration, **change)).text == state


def test_a_redo_that_is_stopped_names_the_command_that_redoes(made: World) -> None:
    plan = replace(made.plan(v0002=CHANGE), redo="2")
    with pytest.raises(Undone) as failed:
        made.run(plan, at("db.t2 ADD COLUMN", ask_to_stop(signal.SIGINT)))
    assert failed.value.hint == "run `icemigrate apply --redo 0002` again"


def test_who_asks_twice_is_not_kept_waiting(made: World) -> None:
    def hurry() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    plan = made.plan(v0002=CHANGE)
    with pytest.raises(Interrupted, match="at once") as failed:
        made.run(plan, at("db.t2 ADD COLUMN", hurry))
    assert failed.value.exit_code == ExitCode.INTERRUPTED
    assert made.standings["0002"] == "interrupted"
    assert made.history.lock is None


def test_a_lock_that_was_taken_away_stops_the_work_before_the_next_change(made: World) -> None:
    def take_away() -> None:
        writer = made.journal.writer
        writer.swap(writer.head().id, "unlocked", None)
        made.engine.log.clear()

    plan = made.plan(v0002=CHANGE)
    made.lease_s = 0.2  # so that the heartbeat soon tells
    gone = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, StatementStarted) and "db.t1 ADD COLUMN" in event.text:
            take_away()
            gone.wait(0.5)

    with pytest.raises(Interrupted) as failed:
        made.run(plan, listen)
    assert isinstance(failed.value.cause, LockLost)
    assert failed.value.exit_code == ExitCode.LOCKED
    assert [text for text in made.engine.log if not text.startswith("ALTER TABLE local.db.t1 ADD")] == []
    assert made.standings["0002"] == "interrupted"


@pytest.mark.parametrize("fails", [True, False])
def test_who_was_replaced_says_that_and_what_holds_now(made: World, fails: bool) -> None:
    """Another process takes the lock, and has applied the version before this one goes on."""
    plan = made.plan(v0002=CHANGE)

    def replaced() -> None:
        writer = made.journal.writer
        writer.swap(writer.head().id, "unlocked", None)
        run_plan(plan, made.engine, made.journal, by=Operator("ben", "ci"))
        if fails:
            raise EngineError("branch `b` has no snapshot of it", "unset `spark.wap.id`")

    with pytest.raises(Interrupted) as failed:
        made.run(plan, at("db.t1 ADD COLUMN", replaced))
    assert made.standings["0002"] == "applied"
    assert failed.value.exit_code == ExitCode.LOCKED
    assert "another process took over: 0002 is applied" in failed.value.message
    assert failed.value.hint is not None
    assert failed.value.hint.startswith("0002 needs nothing more")
    assert ("branch `b` has no snapshot of it" in failed.value.message) is fails


def test_who_was_replaced_names_the_process_that_goes_on(made: World) -> None:
    plan = made.plan(v0002=CHANGE)

    def replaced() -> None:
        writer = made.journal.writer
        lock = writer.head().lock
        assert lock is not None
        writer.swap(writer.head().id, "taken-over", replace(lock, run="other", user="ben", host="ci"))
        raise EngineError("branch `b` has no snapshot of it", "unset `spark.wap.id`")

    with pytest.raises(Interrupted) as failed:
        made.run(plan, at("db.t1 ADD COLUMN", replaced))
    assert failed.value.exit_code == ExitCode.LOCKED
    assert failed.value.message.startswith("the lock was taken over by ben on ci")
    assert "another process took over the lock: ben on ci" in failed.value.message
    assert failed.value.hint is not None
    assert failed.value.hint.startswith("wait until that process has finished")
    assert "spark.wap" not in failed.value.hint + failed.value.message


def test_a_stop_between_two_drops_lists_the_namespace_of_the_trash_once(made: World) -> None:
    drop = "{allow: [destructive], tables: [{name: db.t, drop: true}, {name: db.t2, drop: true}]}"

    def stop() -> None:
        raise EngineError("stopped")

    with pytest.raises(Undone) as stopped:
        made.run(made.plan(v0002=drop), at("db.t2 RENAME TO", stop))
    namespaces = [text for text in (*stopped.value.done, *stopped.value.remaining) if "NAMESPACE" in text]
    assert len(set(namespaces)) == 1
    assert all(text not in stopped.value.done for text in stopped.value.remaining)


def test_a_process_that_died_is_followed(made: World) -> None:
    """What a killed process leaves: its lock, its intent, and half of its statements."""
    plan = made.plan(v0002=CHANGE)

    class Killed(BaseException):
        pass

    def die() -> None:
        made.kept.fails.add("append")  # a dead process writes nothing any more
        raise Killed

    made.lease_s = 0.3
    with pytest.raises(Killed):
        made.run(plan, at("db.t2 ADD COLUMN", die))
    made.kept.fails.clear()
    assert made.history.lock is not None
    assert made.standings["0002"] == "interrupted"
    made.lease_s, made.timeout_s = 60, 60
    made.events.clear()
    (record,) = made.run(made.plan(v0002=CHANGE))
    assert len(record.statements) == 6
    assert [type(e) for e in made.events[:2]] == [LockAwaited, LockTakenOver]
    assert made.standings["0002"] == "applied"


def test_the_lock_is_taken_before_anything_is_looked_at_and_given_back_after_a_refusal(made: World) -> None:
    plan = made.plan(v0002=CHANGE)
    seen: list[str] = []

    def replan() -> Plan:
        lock = made.history.lock
        assert lock is not None
        seen.append(lock.user)
        raise EngineError("another plan by now")

    with pytest.raises(EngineError, match="another plan by now"):
        run_plan(plan, made.engine, made.journal, by=Operator("ana", "ci"), replan=replan)
    assert seen == ["ana"]
    assert made.history.lock is None
    assert made.engine.log == []


def test_who_finds_all_of_it_done_does_nothing(made: World) -> None:
    plan = made.plan(v0002=CHANGE)
    assert run_plan(plan, made.engine, made.journal, replan=lambda: replace(plan, migrations=())) == ()
    assert made.standings == {"0001": "applied"}


def test_two_at_once_do_not_get_in(made: World) -> None:
    plan = made.plan(v0002=CHANGE)

    def second() -> None:
        with pytest.raises(LockHeld, match="held by ana on ci"):
            run_plan(plan, made.engine, made.journal, by=Operator("ben", "ci"))

    made.run(plan, at("db.t0 ADD COLUMN", second))
    assert made.standings["0002"] == "applied"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (signal.SIGINT, "; Ctrl-C again stops at once and leaves more to clean up.\n"),
        (signal.SIGTERM, ".\n"),
    ],
)
def test_the_first_signal_is_answered_at_once(
    number: signal.Signals, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with watch_stop_signals("undoing the migration") as stop:
        os.kill(os.getpid(), number)
        assert stop.signal == number
        err = capfd.readouterr().err
        assert err == f"\nStopping after the current statement, then undoing the migration{text}"
        os.kill(os.getpid(), signal.SIGTERM)
        assert capfd.readouterr().err == ""


def test_outside_the_main_thread_signals_are_not_touched() -> None:
    found: list[StopRequest] = []

    def elsewhere() -> None:
        with watch_stop_signals() as stop:
            found.append(stop)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    found[0].check()


def test_waiting_ends_when_the_user_asks() -> None:
    with pytest.raises(Stopped):
        StopRequest(signal.SIGINT).wait(3600)
    with pytest.raises(Terminated):
        StopRequest(signal.SIGTERM).wait(3600)
    StopRequest().wait(0.01)


def test_both_ends_of_a_failure_are_failures() -> None:
    assert issubclass(Undone, Failed)
    assert issubclass(Interrupted, Failed)
