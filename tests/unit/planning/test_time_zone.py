"""The time zone of data steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from icemigrate.data_steps.time_zone import depends_on_time_zone
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.memory_lake import Lake
from tests.support.planned_migrations import pending
from tests.support.small_tables import table

MAKE = (
    "tables: [{name: db.t, columns: [{name: id, type: long}, {name: at, type: timestamp}, "
    "{name: seen, type: timestamptz}]}]"
)
FILL = (
    "allow: [destructive, irreversible]\ntables: [{name: db.t, backfill: [{set: {%s}, where: 'id = 1'}]}]\n"
)


def _lake() -> Lake:
    lake = Lake()
    lake.apply("0001", MAKE)
    lake.write(1)
    return lake


def _notes(text: str) -> list[str]:
    lake = _lake()
    around = PlanningContext("market", "local")
    planned = plan_migrations([pending("0002", text)], lake.state, lake.engine.tables, around)
    return [n for m in planned.migrations for t in m.tables for n in t.notes if "time zone" in n]


def test_the_plan_shows_the_zone_where_a_step_depends_on_it() -> None:
    note = "data steps run in the time zone {}; `time_zone` in the file sets another"
    assert _notes(FILL % "seen: at") == [note.format("UTC")]
    assert _notes(FILL % "seen: \"to_timestamp('2026-01-01')\"") == [note.format("UTC")]
    berlin = "time_zone: Europe/Berlin\n" + FILL % "seen: at"
    assert _notes(berlin) == [note.format("Europe/Berlin")]
    assert _notes(FILL % "id: id + 1") == []


@pytest.mark.parametrize(
    ("sql", "depends"),
    [
        ("SELECT cast(x AS TIMESTAMP)", True),
        ("SELECT cast(x AS TIMESTAMP_NTZ)", False),
        ("SELECT date_trunc('day', x)", True),
        ("SELECT 'timestamp' -- current_date\n", False),
        ("SELECT count(*) FROM t WHERE Seen < '2026-01-01'", True),
        ("SELECT count(*) FROM t WHERE unseen", False),
    ],
)
def test_what_depends_on_the_zone(sql: str, depends: bool) -> None:
    assert depends_on_time_zone(sql, table("id: long, seen: timestamptz, day: date").schema) is depends


def test_a_migration_runs_in_the_zone_of_its_file() -> None:
    zones: list[str] = []

    @contextmanager
    def in_time_zone(zone: str) -> Iterator[None]:
        zones.append(zone)
        yield

    lake = _lake()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(lake.engine), "in_time_zone", lambda self, zone: in_time_zone(zone))
        lake.apply("0002", "tables: [{name: db.t, properties: {k: v}}]")
        lake.apply("0003", "time_zone: '+01:00'\ntables: [{name: db.t, properties: {k: w}}]")
    assert zones == ["UTC", "+01:00"]


_ACCEPTED = [
    "UTC",
    "Europe/Berlin",
    "Etc/GMT+12",
    "'+00:00'",
    "'-00:00'",
    "'+05:45'",
    "'+18:00'",
    "'-18:00'",
]
_MISSPELLED = ["Europe/Berlim", "europe/Berlin", "EUROPE/BERLIN", "Europe/berlin", "Factory", "ROC", "Utc"]
_NO_OFFSETS = [
    "'+18:01'",
    "'+18:30'",
    "'-18:01'",
    "'+19:00'",
    "'+5'",
    "'1:00'",
    "UTC+19",
    "GMT-18:01",
    "UTC+5",
]


@pytest.mark.parametrize("zone", _ACCEPTED + _MISSPELLED + _NO_OFFSETS)
def test_a_zone_that_spark_does_not_know_is_an_error(zone: str) -> None:
    text = f"time_zone: {zone}\ntables: [{{name: db.t, properties: {{k: v}}}}]\n"
    read = read_migration(SourceText("0001.yaml", text), Version.parse("0001"), "")
    found = [(str(d.place), d.code) for d in read.diagnostics]
    if zone in _ACCEPTED:
        assert found == []
    else:
        assert found in ([("0001.yaml:1:12", "bad-value")], [("0001.yaml:1:12", "bad-format")])
        assert (
            read.diagnostics[0].hint or "`+01:00`, from `-18:00` to `+18:00`" in read.diagnostics[0].message
        )
