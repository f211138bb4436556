"""When something was done to a table by hand: told by what the history saw of it, of that table alone."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from icemigrate.commands.drift import drift
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile, reconcile_request
from icemigrate.execution.run import run_plan
from icemigrate.history.event_log import EventLog, LogEntry, LogEvent, pack_log, unpack_log
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.history_properties import History, decode_history
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import Plan
from icemigrate.project import open_project
from icemigrate.results.drift_results import DriftFact
from tests.support.embedded_project import HISTORY, Embedded, applied

MAKE = """\
tables:
  - {name: db.a, columns: [{name: id, type: int}], properties: {k: ours}}
  - {name: db.b, columns: [{name: id, type: int}], properties: {k: ours}}
"""


@pytest.fixture
def lake(tmp_path: Path) -> Embedded:
    return applied(tmp_path, MAKE)


def carry_out(lake: Embedded, todo: Plan) -> None:
    lake.engine.expect(todo)
    run_plan(todo, lake.engine, Journal(HistoryWriter(lake.engine, HISTORY, "market")))
    lake.save()


def recorded(lake: Embedded) -> History:
    return decode_history(lake.engine.tables[HISTORY].properties)


def applied_at(lake: Embedded, version: str) -> datetime:
    (found,) = (a.applied_at for a in recorded(lake).applied if a.version.text == version)
    return to_the_millisecond(found)


def to_the_millisecond(at: datetime) -> datetime:
    """A time as metadata has it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def told(lake: Embedded, table: str) -> dict[str, DriftFact]:
    (found,) = drift(open_project(lake.folder), None, [table]).tables
    return {fact.fact: fact for fact in found.facts}


@pytest.mark.parametrize("is_baseline", [False, True])
def test_what_was_there_when_a_table_was_taken_in_was_done_before(lake: Embedded, is_baseline: bool) -> None:
    lake.drop("icemigrate.history")
    (lake.folder / "migrations" / "0001_make.yaml").unlink()
    lake.edit("db.a", {"theirs": "1", "k": "other"})
    lake.write("0001_take.yaml", "tables: [{name: db.a, adopt: true, columns: [{name: id, type: int}]}]\n")
    carry_out(lake, plan(open_project(lake.folder), baseline=is_baseline).plan)
    lake.edit("db.a", {"late": "2"})
    found, taken = told(lake, "db.a"), applied_at(lake, "0001")
    assert {f: (told.after, told.before) for f, told in found.items()} == {
        "properties.theirs": (None, taken),
        "properties.k": (None, taken),
        "properties.late": (taken, None),
    }


def test_what_a_migration_left_as_somebody_had_made_it_was_done_before_it(lake: Embedded) -> None:
    lake.edit("db.a", {"k": "theirs", "more": "1"})
    lake.write("0002_next.yaml", "tables: [{name: db.a, columns: [{name: size, type: int}]}]\n")
    lake.apply()
    made, next_ = applied_at(lake, "0001"), applied_at(lake, "0002")
    found = told(lake, "db.a")
    assert {(told.after, told.before) for told in found.values()} == {(made, next_)}
    lake.edit("db.a", {"more": "2"})
    assert told(lake, "db.a")["properties.more"].after == next_


def test_tables_that_were_led_back_say_nothing_of_others(lake: Embedded) -> None:
    for name in ("db.a", "db.b"):
        lake.edit(name, {"k": "theirs", "more": "1"})
    carry_out(lake, plan_reconcile(open_project(lake.folder), what=reconcile_request(["db.a"])).plan)
    led_back = unpack_log(recorded(lake).log).entries[-1]
    assert (led_back.event, led_back.tables) == ("reconciled", ("db.a",))
    assert told(lake, "db.b")["properties.k"].after == applied_at(lake, "0001")
    lake.edit("db.a", {"k": "again"})
    found = told(lake, "db.a")
    assert found["properties.k"].after == to_the_millisecond(led_back.at)
    # What nobody declared is not led back, so it may be older.
    assert found["properties.more"].after == applied_at(lake, "0001")


def test_the_log_says_what_was_led_back_beside_what_older_versions_read() -> None:
    at = datetime.fromisoformat("2026-11-28T12:00:00+00:00")
    applied = LogEntry(LogEvent.APPLIED, None, "Make", at, "ana", "laptop")
    log = EventLog(
        (
            applied,
            LogEntry(LogEvent.RECONCILED, None, "Lead back", at, "ana", "laptop", tables=("db.a", "db.b")),
        )
    )
    assert unpack_log(pack_log(log)) == log
    assert unpack_log(pack_log(EventLog((applied,)))) == EventLog((applied,))


def test_a_column_that_a_file_declared_once_is_told_as_that(lake: Embedded) -> None:
    name = TableName.parse("db.a")
    lake.write("0002_more.yaml", "tables: [{name: db.a, columns: [{name: size, type: int}]}]\n")
    lake.apply()
    with_size = lake.engine.tables[name]
    lake.write("0003_less.yaml", "{allow: [destructive], tables: [{name: db.a, drop_columns: [size]}]}\n")
    lake.apply()
    lake.engine.tables[name] = with_size
    lake.save()
    note = told(lake, "db.a")["columns.size"].note
    assert note == "unmanaged: 0002 declared it, and no migration declares it now"
