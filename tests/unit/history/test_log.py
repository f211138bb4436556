"""What happened to the versions: told in order, kept short, and read with a plan."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.status import history, history_events
from icemigrate.commands.unlock import unlock
from icemigrate.errors import HistoryError
from icemigrate.events import Event, StatementStarted
from icemigrate.execution.environment_session import Operator
from icemigrate.execution.failures import Interrupted, Undone
from icemigrate.execution.run import run_plan
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.event_log import MAX_LOG_ENTRIES, EventLog, LogEntry, LogEvent, pack_log, unpack_log
from icemigrate.history.head_snapshot import LockInfo, head_summary, parse_head
from icemigrate.history.history_io import HistoryWriter, history_of
from icemigrate.history.history_properties import LOG_KEY
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.journal import Journal
from icemigrate.iceberg.json_text import compress
from icemigrate.iceberg.table import Snapshot
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.status_results import HistoryEvent, HistoryResult, LockStatus
from icemigrate.system.process_identity import process_identity
from tests.support.embedded_project import HISTORY, Embedded, applied
from tests.support.memory_lake import Lake

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "history.schema.json").read_text("utf-8"))
NOON = datetime(2026, 11, 27, 12, 0, 0, 123_000, tzinfo=timezone.utc)
LOCK = LockInfo("r1", "ana", "ci", 7, NOON, 60.0)
CREATE = "{description: Make, tables: [{name: db.t, columns: [{name: a, type: int}]}]}\n"
ADD = "{description: Add b, tables: [{name: db.t, columns: [{name: b, type: int}], properties: {k: v}}]}\n"


class Killed(BaseException):
    """What a process feels of SIGKILL: nothing more is said."""


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    made = applied(tmp_path, CREATE)
    made.write("0002_add.yaml", ADD)
    return made


def run(shop: Embedded, *, dies: bool = False) -> None:
    """Apply as ana does it, with nothing that could undo a failure."""
    todo = plan(open_project(shop.folder)).plan
    shop.engine.expect(todo)

    def listen(event: Event) -> None:
        if dies and isinstance(event, StatementStarted):
            shop.engine.fails.add("append")  # a dead process writes nothing any more
            raise Killed

    journal = Journal(HistoryWriter(shop.engine, HISTORY, "market"), lease_s=0.2)
    try:
        run_plan(todo, shop.engine, journal, listen, Operator("ana", "ci"), inverse=lambda _: None)
    finally:
        shop.engine.fails.clear()
        shop.save()


def told(shop: Embedded) -> list[str]:
    """What ``history`` tells, as JSON that fits its schema."""
    document = json.loads(render(history(open_project(shop.folder)), "json"))
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    return [f"{e['event']} {e['version']}" for e in document["events"]]


def turns(lake: Lake) -> list[str]:
    return [f"{e.event} {e.version}" for e in unpack_log(lake.history.log).entries]


def test_every_turn_of_a_version_is_told_in_order() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", ADD)
    lake.rollback("0002")
    lake.apply("0003", ADD.replace("name: b", "name: c"))
    lake.apply("0002", ADD)
    assert turns(lake) == ["applied 0001", "applied 0002", "rolled_back 0002", "applied 0003", "redone 0002"]
    lake.rollback("0002")
    lake.apply("0002", ADD)
    assert turns(lake)[-2:] == ["rolled_back 0002", "redone 0002"]
    entry = unpack_log(lake.history.log).entries[1]
    assert (entry.description, entry.message) == ("Add b", None)
    assert {entry.user, entry.host} == {lake.engine.rows[_history(lake)][0][key] for key in ("user", "host")}
    assert entry.run == lake.engine.rows[_history(lake)][3]["run"]


def _history(lake: Lake):  # type: ignore[no-untyped-def]
    return next(name for name in lake.engine.tables if name.name == "history")


def test_failures_are_told_with_their_reason_and_who_finished_it(shop: Embedded) -> None:
    shop.engine.fails.add("ADD COLUMN")
    with pytest.raises(Undone):
        run(shop)
    shop.engine.fails.add("SET TBLPROPERTIES")
    with pytest.raises(Interrupted):
        run(shop)
    assert told(shop) == ["applied 0001", "failed 0002", "interrupted 0002"]
    last = history(open_project(shop.folder)).events[-1]
    assert (last.by, last.host, last.description) == ("ana", "ci", "Add b")
    assert last.message is not None
    assert last.message.startswith("refused: ")
    assert " migration 0002 stopped at: ALTER TABLE" in last.message
    run(shop)
    assert told(shop) == ["applied 0001", "failed 0002", "interrupted 0002", "applied 0002"]


def test_a_process_that_died_is_told_of_before_and_after_somebody_follows_it(shop: Embedded) -> None:
    with pytest.raises(Killed):
        run(shop, dies=True)
    assert told(shop) == ["applied 0001", "interrupted 0002"]
    left = HistoryWriter(shop.engine, HISTORY, "market").read()
    going = history_events(left, unpack_log(left.log))[-1]
    # Its lock is there still, so for all that the history says it is at work.
    assert (going.event, going.by, going.description, going.duration_ms) == ("running", "ana", "Add b", None)
    run(shop)
    assert told(shop) == ["applied 0001", "interrupted 0002", "applied 0002"]
    broken = history(open_project(shop.folder)).events[1]
    assert (broken.at, broken.run, broken.message) == (
        going.at.replace(microsecond=going.at.microsecond // 1000 * 1000),
        going.run,
        "the process ended before it recorded the outcome",
    )


def test_taking_a_lock_away_is_told(shop: Embedded) -> None:
    with pytest.raises(Killed):
        run(shop, dies=True)
    writer = HistoryWriter(shop.engine, HISTORY, "market")
    record = HistoryRecord(
        None,
        "",
        "",
        "market",
        "local",
        RunOutcome.UNLOCKED,
        NOON,
        NOON,
        "bob",
        "desk",
        "1",
        message="from ana",
    )
    Journal(writer).unlock(writer.read().head, record)
    shop.save()
    assert told(shop) == ["applied 0001", "unlocked None", "interrupted 0002"]


def test_what_an_older_history_knows_is_told_though_it_kept_no_log(shop: Embedded) -> None:
    name = HISTORY
    writer = HistoryWriter(shop.engine, name, "market")
    from icemigrate.history.history_properties import encode_history

    older = encode_history(replace(writer.read(), log=""))
    assert LOG_KEY not in older
    shop.engine.tables[name] = replace(shop.engine.tables[name], properties=older)
    shop.save()
    assert told(shop) == ["applied 0001"]
    run(shop)
    assert told(shop) == ["applied 0001", "applied 0002"]


def _entries(number: int) -> list[LogEntry]:
    words = "Add the venue of each trade and what the exchange calls it"
    return [
        LogEntry(
            LogEvent.APPLIED,
            Version.parse(f"{i:04}"),
            f"{words} {i * 7919 % 1000}",
            NOON + timedelta(seconds=i * 7919),
            "deployer",
            "ci-runner-7",
            i * 31 % 4000,
            f"{i * 0x9E3779B97F4A7C15 % 2**64:016x}",
        )
        for i in range(1, number + 1)
    ]


def test_the_log_comes_back_as_it_was() -> None:
    log = EventLog(
        (*_entries(3), LogEntry(LogEvent.UNLOCKED, None, "", NOON, "ö", "", 0, "", "from “ana”")), 5
    )
    assert unpack_log(pack_log(log)) == log
    assert unpack_log("") == EventLog()


@pytest.mark.parametrize(
    "text", ["%%%", "AAAA", "eJyLBQAA+wD7", "eJyrVkpNLMpJLVKyMtRRSs0rKcpMLVayio6tBQBqnQhT"]
)
def test_a_damaged_log_is_said_to_be_damaged(text: str) -> None:
    with pytest.raises(HistoryError, match="log is damaged"):
        unpack_log(text)


ENTRY = ["applied", "0001", "Make", 0, "ana", "ci", 5, "r1", None]


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ({"entries": [[*ENTRY[:3], 10**18, *ENTRY[4:]]]}, "time: the number of milliseconds is out of range"),
        ({"entries": [[*ENTRY[:3], -(10**18), *ENTRY[4:]]]}, "time: the number of milliseconds is out"),
        ({"entries": [[*ENTRY[:6], 10**400, *ENTRY[7:]]]}, "duration: the number of milliseconds is out"),
        ({"entries": [[*ENTRY[:4], 7, *ENTRY[5:]]]}, r"entries\[0\]\[4\]: expected `str`, got `int`"),
        ({"entries": [ENTRY[:4]]}, "at least length 9"),
        ({"entries": [], "earlier": "x"}, "earlier: expected `int`, got `str`"),
        ({"entries": [], "earlier": -1}, "earlier: -1 is no number of events"),
        ({"entries": [], "tables": {"0": "db.t"}}, "tables"),
    ],
)
def test_a_log_with_values_out_of_range_is_damaged(stored: dict[str, object], why: str) -> None:
    assert unpack_log(compress(json.dumps({"earlier": 0, "entries": [ENTRY]}))).entries[0].user == "ana"
    with pytest.raises(HistoryError, match=why) as caught:
        unpack_log(compress(json.dumps({"earlier": 0, **stored})))
    assert "restore their values" in (caught.value.hint or "")


def test_a_clock_that_was_set_back_damages_no_log() -> None:
    stored = {"earlier": 0, "entries": [[*ENTRY[:6], -5_000, *ENTRY[7:]]]}
    assert unpack_log(compress(json.dumps(stored))).entries[0].duration_ms == 0


def test_a_log_that_is_nested_too_deeply_is_damaged() -> None:
    with pytest.raises(HistoryError, match="nested too deeply"):
        unpack_log(compress("[" * 100_000))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"pid": "x"}, "pid: "),
        ({"pid": str(2**62)}, "pid: `4611686018427387904` is no number of a process"),
        ({"pid": "-1"}, "pid: `-1` is no number of a process"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since: 0001-01-01T00:00:00+14:00 is out of range"),
        ({"since": "2026-01-01T00:00:00"}, "since: 2026-01-01T00:00:00 has no time zone"),
        ({"lease-s": "inf"}, "lease-s: "),
        ({"lease-s": "-5"}, "lease-s: `-5` is no number of seconds"),
        ({"tables": "[" * 5000}, "tables: it is nested too deeply"),
        ({"tables": '"db.t"'}, "tables: "),
    ],
)
def test_unlock_removes_a_lock_that_cannot_be_read(
    shop: Embedded, damage: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HistoryWriter(shop.engine, HISTORY, "market")
    lock = replace(LOCK, pid=os.getpid(), tables=("db.t",), process=process_identity())
    writer.swap(writer.head().id, "locked", lock)
    table = shop.engine.tables[HISTORY]
    assert table.snapshot is not None
    notes = {**table.snapshot.notes, **damage}
    shop.engine.tables[HISTORY] = replace(table, snapshot=replace(table.snapshot, notes=notes))
    with pytest.raises(HistoryError, match=f"its head cannot be read: {re.escape(why)}") as caught:
        writer.read()
    assert caught.value.hint == "icemigrate unlock"
    shown: list[str] = []

    def approve(lock: LockStatus) -> bool:
        shown.append(lock.words)
        return True

    monkeypatch.setattr("icemigrate.commands.unlock.history_engine", lambda *_: shop.engine)
    monkeypatch.setattr(
        "icemigrate.history.history_io.read_history",
        lambda _catalog, name, project, **how: history_of(shop.engine.tables[name], name, project, **how),
    )
    assert unlock(open_project(shop.folder), approve=approve).taken
    assert f"ana on ci (its entries cannot be read: {why}" in shown[0]
    left = writer.read().lock
    is_fenced = left is not None and left.is_taken_away and left.tables == ("db.t",)
    assert is_fenced or (left is None and "tables" in damage)


def test_a_head_of_any_time_can_be_read() -> None:
    notes = {key.removeprefix("icemigrate."): value for key, value in head_summary("locked", LOCK).items()}
    for moved_ms in (2**62, -(2**62), 2**100):
        assert parse_head(Snapshot(1, timestamp_ms=moved_ms, operation="append", notes=notes)).lock == LOCK


def test_the_log_stays_small_and_says_how_much_it_left_out() -> None:
    log = EventLog().with_entries(_entries(MAX_LOG_ENTRIES + 20))
    assert (len(log.entries), log.earlier) == (MAX_LOG_ENTRIES, 20)
    assert log.entries[0].version == Version.parse("0021")
    assert len(pack_log(log)) < 20_000
    result = HistoryResult("p", "e", (), (HistoryEvent("applied", "1", "x", NOON, "ana", "ci", 1200),), 20)
    assert render(result).splitlines()[-1] == "20 earlier events not shown: the history table has them."


def test_the_log_for_people() -> None:
    happened = (
        HistoryEvent("applied", "0001", "Make", NOON, "ana", "ci", 1200),
        HistoryEvent("rolled_back", "0001", "Make", NOON + timedelta(minutes=1), "bob", "desk", 300),
        HistoryEvent("unlocked", None, "", NOON + timedelta(minutes=2), "bob", "desk", None, "", "from ana"),
    )
    assert render(HistoryResult("p", "e", (), happened)).splitlines() == [
        "at                       event        version  took   by   description",
        "2026-11-27 12:00:00 UTC  applied      0001     1.2 s  ana  Make",
        "2026-11-27 12:01:00 UTC  rolled back  0001     0.3 s  bob  Make",
        "2026-11-27 12:02:00 UTC  unlocked     –        –      bob  from ana",
    ]


def test_the_newest_messages_are_whole_and_older_ones_end_with_a_mark() -> None:
    log = EventLog()
    for number in range(40):
        entry = LogEntry(LogEvent.FAILED, Version.parse("0001"), "", NOON, "ana", "ci", message="x" * 1500)
        log = log.with_entries([replace(entry, run=str(number))])
    messages = [e.message or "" for e in unpack_log(pack_log(log)).entries]
    assert [len(m) for m in messages] == [200] * 10 + [1500] * 30
    assert messages[0].endswith("x…")
