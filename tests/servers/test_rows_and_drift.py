"""Rows that a migration writes, and tables that others changed by hand: on catalogs that have a server.

``tests/spark`` shows the same on SQLite, in more cases.  Rows are written to S3 and asked about there.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from icemigrate.catalog.capabilities import NAME_MAPPING
from icemigrate.execution.failures import Undone
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.planning.undo import UndoOptions
from icemigrate.results.command_results import errors_of
from tests.servers.lake import Lake, on

MAKE = """
    description: Make trades
    tables:
      - name: market_data.trades
        format_version: 3
        columns:
          - {name: id, type: long}
          - {name: venue, type: string}
          - {name: price, type: "decimal(12,2)"}
          - {name: settled, type: date}
"""
FILL = """
    description: Settle in time, with the venue known
    allow: [destructive]
    because: prices come in tenths of cents
    tables:
      - name: market_data.trades
        columns: [{name: note, type: string}]
        backfill: [{set: {venue: "coalesce(upper(venue), 'NONE')", note: "concat('trade ', id)"}}]
        retype:
          settled: {to: timestamp, using: cast(settled as timestamp_ntz)}
          price: {to: "decimal(12,3)", using: "cast(price as decimal(12,3))"}
        checks:
          - {before: "select count(*) from {table} where venue is null", gives: 1}
          - {name: every venue is known, after: "select id from {table} where venue = 'WRONG'"}
          - name: no row is lost
            after: select (select count(*) from {table}) - (select count(*) from {before})
            gives: 0
"""
ROWS = [(1, "xnys", Decimal("10.50"), date(2026, 1, 2)), (2, None, Decimal("20.50"), date(2026, 3, 4))]
FILLED: list[tuple[Any, ...]] = [
    (1, "XNYS", Decimal("10.500"), datetime(2026, 1, 2), "trade 1"),
    (2, "NONE", Decimal("20.500"), datetime(2026, 3, 4), "trade 2"),
]


@pytest.fixture
def trades(lake: Lake) -> Lake:
    """A lake with two trades."""
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'xnys', 10.5, DATE '2026-01-02'), (2, null, 20.5, DATE '2026-03-04')"
    )
    return lake


def rows(lake: Lake) -> list[tuple[Any, ...]]:
    return lake.sql("SELECT * FROM {t} ORDER BY id")


def branches(table: Table) -> set[str]:
    return {name for name, ref in table.refs.items() if ref.kind == "branch"}


def roll_back(lake: Lake, options: UndoOptions) -> None:
    assert lake.api.rollback(options=options, spark=lake.session).rolled_back == ("0002",)


@on("rest")
def test_rows_are_written_and_asked_about_before_anybody_sees_them(trades: Lake) -> None:
    before = trades.table()
    trades.write("0002_fill", FILL.replace("'WRONG'", "'NONE'"))
    with pytest.raises(Undone, match=r"every venue is known: expected no rows, got 1 row: \(2\)") as failed:
        trades.api.apply(spark=trades.session)
    assert "no table was changed" in str(failed.value)
    after = trades.table()
    assert (after.schema.fields, after.snapshot) == (before.schema.fields, before.snapshot)
    assert branches(after) == {"main"}
    assert rows(trades) == ROWS

    trades.write("0002_fill", FILL)
    trades.apply()
    assert rows(trades) == FILLED
    table = trades.table()
    assert [f.name for f in table.schema.fields] == ["id", "venue", "price", "settled", "note"]
    assert branches(table) == {"main"}
    assert trades.sql("SELECT venue FROM {t} VERSION AS OF 'icemigrate-market-0002-before' WHERE id = 1") == [
        ("xnys",)
    ]
    assert trades.api.drift().tables == ()


@on("rest")
def test_rows_that_were_overwritten_go_back_as_it_is_asked(trades: Lake) -> None:
    ids = [f.id for f in trades.table().schema.fields]
    trades.write("0002_fill", FILL)
    trades.apply()
    trades.sql("INSERT INTO {t} VALUES (3, 'XLON', 30.5, TIMESTAMP_NTZ '2026-05-06 07:08:09', 'late')")
    refused = trades.api.plan_rollback(spark=trades.session)
    told = " ".join(f"{d.message} {d.hint}" for d in errors_of(refused.diagnostics))
    assert "was written to since the migration: 1 snapshot, 1 row in 1 new file" in told
    assert "--discard-new-data" in told
    assert "--metadata-only" in told

    roll_back(trades, UndoOptions(metadata_only=True))
    assert rows(trades) == [
        (1, "XNYS", *ROWS[0][2:]),
        (2, "NONE", *ROWS[1][2:]),
        (3, "XLON", None, None),
    ]
    assert [f.id for f in trades.table().schema.fields] == ids

    trades.write("0002_fill", FILL.replace("gives: 1", "gives: 0"))
    trades.api.apply(trades.api.plan(redo="0002"), spark=trades.session)
    assert rows(trades)[:2] == FILLED
    trades.sql("INSERT INTO {t} VALUES (4, 'XPAR', 40.5, null, 'later')")
    roll_back(trades, UndoOptions(discard_new_data=True))
    assert [row[:2] for row in rows(trades)] == [(1, "XNYS"), (2, "NONE"), (3, "XLON")]
    assert trades.api.drift().tables == ()


DAYS = """
    description: Trades by day
    tables:
      - name: market_data.trades
        columns: [{name: at, type: timestamp}, {name: id, type: long}]
        partition_by: ["day(at) as day"]
"""
BUCKETS = """
    description: Trades by id, the old files too
    tables:
      - name: market_data.trades
        partition_by: ["bucket(2, id) as part"]
        rewrite: {partitions: old}
"""


@on("rest")
def test_files_of_the_old_way_are_written_again(lake: Lake) -> None:
    lake.write("0001_make", DAYS)
    lake.apply()
    lake.sql(
        "INSERT INTO {t} SELECT timestampadd(DAY, id, TIMESTAMP_NTZ '2026-01-01 00:00:00'), id FROM range(4)"
    )
    found = rows(lake)
    lake.write("0002_buckets", BUCKETS)
    share = lake.plan().plan.migrations[0].tables[0].old_files
    assert share is not None
    assert (share.files, share.all_files) == (4, 4)
    lake.apply()
    assert rows(lake) == found
    assert lake.sql("SELECT DISTINCT partition.part IS NOT NULL, partition.day IS NULL FROM {t}.files") == [
        (True, True)
    ]
    assert lake.api.status().tables[0].old_files is None
    roll_back(lake, UndoOptions())
    assert [f.name for f in lake.table().spec.live] == ["day"]
    assert rows(lake) == found


ALIKE = """
      - name: market_data.NAME
        columns:
          - {name: id, type: long, required: true, description: Number}
          - {name: volume, type: int}
          - {name: note, type: string}
          - {name: place, type: "struct<city: string, zip: int>"}
          - {name: at, type: timestamptz}
        partition_by: ["day(at) as day"]
        sort_by: [id]
        properties: {owner.team: trading}
"""
TAG = "\n  - {name: market_data.NAME, tags: {first: {branch: main, retention: {max_age: 365d}}}}"
BY_SPARK = """\
ALTER TABLE @ RENAME COLUMN note TO remark
ALTER TABLE @ RENAME COLUMN place.city TO town
ALTER TABLE @ ADD COLUMN venue string
ALTER TABLE @ DROP COLUMN volume
ALTER TABLE @ REPLACE PARTITION FIELD day WITH bucket(8, id)
ALTER TABLE @ WRITE ORDERED BY at
ALTER TABLE @ SET TBLPROPERTIES ('theirs' = '1')
INSERT INTO @ (id, at) VALUES (9, timestamp '2026-02-02 00:00:00')
ALTER TABLE @ CREATE OR REPLACE TAG first RETAIN 9 DAYS""".splitlines()
DRIFT = {
    "columns.id.description",
    "columns.note.name",
    "columns.place.city.name",
    "columns.volume",
    "partition_by",
    "properties.owner.team",
    "sort_by",
    "tags.first",
}
UNMANAGED = {"columns.flag", "columns.venue", "properties.theirs", "properties.write.distribution-mode"}


def by_hand(lake: Lake, *names: str) -> None:
    """What somebody does who knows nothing of migrations."""
    from pyiceberg.types import BooleanType

    for name in names:
        for statement in BY_SPARK:
            lake.sql(statement.replace("@", lake.sql_name(name)))
    catalog = lake.pyiceberg()
    try:
        for name in names:
            table = catalog.load_table((lake.namespace, name))
            with table.transaction() as transaction:
                transaction.set_properties({"owner.team": "research"})
            with table.update_schema() as update:
                update.update_column("id", doc="Key")
                update.add_column("flag", BooleanType())
    finally:
        catalog.close()
    for name in names:
        lake.sql(f"REFRESH TABLE {lake.sql_name(name)}")


def drift(lake: Lake, name: str) -> dict[str, set[str]]:
    """The facts of a table by what is told of them."""
    found: dict[str, set[str]] = {}
    for table in lake.api.drift(f"market_data.{name}").tables:
        for fact in table.facts:
            found.setdefault(fact.told, set()).add(fact.fact)
    return found


def differing(old: Table, new: Table) -> list[str]:
    """What is not as it was, but for what servers keep of their own."""
    facts = [".".join(fact.subject) for fact in find_differing_facts(old, new) if fact.managed]
    return [fact for fact in facts if fact != f"properties.{NAME_MAPPING}"]


@on("postgres", "rest")
def test_what_others_did_is_told_and_accepted_or_led_back(lake: Lake) -> None:
    names = ("trades", "quotes")
    lake.write("0001_make", "tables:" + "".join(dedent(ALIKE).replace("NAME", name) for name in names))
    lake.apply()
    for name in names:
        values = "(1, 10, 'x', named_struct('city', 'Bern', 'zip', 3000), timestamp '2026-01-01 00:00:00')"
        lake.sql(f"INSERT INTO {lake.sql_name(name)} VALUES {values}")
    lake.write("0002_tag", "tables:" + "".join(TAG.replace("NAME", name) for name in names))
    lake.apply()
    assert lake.api.drift().tables == ()
    recorded = lake.table("quotes")
    by_hand(lake, *names)
    assert drift(lake, "trades") == drift(lake, "quotes") == {"drift": DRIFT, "unmanaged": UNMANAGED}

    accepted = lake.api.accept_drift("market_data.trades")
    assert accepted.path is not None
    assert "renames: {note: remark, place.city: town}" in Path(accepted.path).read_text(encoding="utf-8")
    there = lake.table()
    assert lake.apply().applied == ("0003",)
    assert differing(there, lake.table()) == []
    assert drift(lake, "trades") == {}

    refused = lake.api.plan_reconcile("market_data.quotes", spark=lake.session)
    assert [d.code for d in errors_of(refused.diagnostics)] == ["missing-allow"]
    allow = ["destructive market_data.quotes.first"]
    done = lake.api.reconcile("market_data.quotes", allow=allow, spark=lake.session)
    assert done.tables == ("market_data.quotes",)
    assert drift(lake, "quotes") == {"unmanaged": UNMANAGED}
    assert differing(recorded, lake.table("quotes")) == []
    quotes = lake.sql_name("quotes")
    assert lake.sql(f"SELECT id, volume, note, place.city, venue FROM {quotes} ORDER BY id") == [
        (1, 10, "x", "Bern", None),
        (9, None, None, None, None),
    ]
    assert lake.plan().is_empty


@on("postgres", "rest")
def test_a_table_under_another_name_is_found_and_led_back(lake: Lake) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    uuid = lake.table().uuid
    lake.sql(f"ALTER TABLE {{t}} RENAME TO {lake.namespace}.elsewhere")
    (found,) = lake.api.drift().tables
    assert (found.state, found.found) == ("renamed", f"{lake.namespace}.elsewhere")
    lake.api.reconcile(spark=lake.session)
    assert lake.api.drift().tables == ()
    assert lake.table().uuid == uuid
    lake.sql("DROP TABLE {t}")
    (found,) = lake.api.drift().tables
    assert found.state == "gone"
    assert [d.code for d in errors_of(lake.api.plan_reconcile(spark=lake.session).diagnostics)] == [
        "table-gone"
    ]
    assert lake.api.accept_drift().path is not None
    lake.apply()
    assert lake.api.drift().tables == ()
