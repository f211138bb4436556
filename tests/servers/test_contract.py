"""What icemigrate promises, on every kind of catalog: one suite, run on SQLite, Postgres and REST with S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.errors import ConflictError, ExitCode, StalePlan
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.type_text import format_type
from tests.servers.lake import Lake

CREATE = """
    description: Make trades
    tables:
      - name: market_data.trades
        description: What was traded
        columns:
          - {name: at, type: timestamp, required: true}
          - {name: symbol, type: string, required: true, description: Ticker}
          - {name: company_id, type: int, required: true}
          - {name: price, type: "decimal(18,6)", required: true}
          - {name: volume, type: long}
          - {name: qualifiers, type: int}
          - {name: place, type: "struct<city: string, zip: int>"}
        # By the first column: one of the servers refuses that in a CREATE.
        partition_by: [day(at)]
        sort_by: [at]
        properties: {write.parquet.compression-codec: zstd}
        format_version: 2
"""
EVOLVE = """
    description: Evolve trades
    allow: [destructive, incompatible]
    tables:
      - name: market_data.trades
        renames: {volume: quantity}
        drop_columns: [qualifiers, place.zip]
        columns:
          - {name: company_id, type: long}
          - {name: price, type: "decimal(20,6)"}
          - {name: quantity, required: true}
          - {name: venue, type: string, description: Where, after: symbol}
          - {name: place, fields: [{name: country, type: string}]}
        identifier: [symbol, at]
        partition_by: [day(at), "bucket(16, symbol) as symbol_bucket"]
        sort_by: [at, company_id desc nulls last]
        properties: {my.key: yes it is, write.parquet.compression-codec: null}
        branches: {audit: {}}
"""
ROW = (
    "INSERT INTO {t} VALUES (TIMESTAMP_NTZ '2026-01-01 10:00:00', 'A', 1, 1.5, 10, 7,"
    " named_struct('city', 'Bern', 'zip', 3000))"
)


@pytest.fixture
def trades(lake: Lake) -> Lake:
    """A lake with trades, a row in it."""
    lake.write("0001_make", CREATE)
    lake.apply()
    lake.sql(ROW)
    return lake


def test_a_table_is_made_as_declared(lake: Lake) -> None:
    lake.write("0001_make", CREATE)
    assert lake.apply().applied == ("0001",)
    table = lake.table()
    assert [(f.id, ".".join(path), f.required) for path, f in table.schema.walk()] == [
        (1, "at", True),
        (2, "symbol", True),
        (3, "company_id", True),
        (4, "price", True),
        (5, "volume", False),
        (6, "qualifiers", False),
        (7, "place", False),
        (8, "place.city", False),
        (9, "place.zip", False),
    ]
    assert [f.name for f in table.spec.live] == ["at_day"]
    assert [f.source_ids for f in table.sort_order.fields] == [(1,)]
    assert table.properties["comment"] == "What was traded"
    assert table.properties["write.parquet.compression-codec"] == "zstd"
    assert "icemigrate-market-0001" in table.refs
    # A foreign client's own idea of it: rows go in and come out.
    lake.sql(ROW)
    assert lake.sql("SELECT symbol, volume, place.zip FROM {t}") == [("A", 10, 3000)]


def test_a_table_is_evolved_under_its_rows(trades: Lake) -> None:
    before = trades.table()
    trades.write("0002_evolve", EVOLVE)
    planned = trades.plan()
    (migration,) = planned.plan.migrations
    steps = [s for t in migration.tables for step in t.steps for s in step.statements]
    assert len({type(s).__name__ for s in steps}) == 2, "statements, and a commit for what SQL cannot say"
    assert trades.apply().applied == ("0002",)
    table = trades.table()
    assert {".".join(path): (f.id, format_type(f.type), f.required) for path, f in table.schema.walk()} == {
        "at": (1, "timestamp", True),
        "symbol": (2, "string", True),
        "venue": (10, "string", False),
        "company_id": (3, "long", True),
        "price": (4, "decimal(20,6)", True),
        "quantity": (5, "long", True),
        "place": (7, "struct<city: string, country: string>", False),
        "place.city": (8, "string", False),
        "place.country": (11, "string", False),
    }
    assert [f.name for f in table.schema.fields][:3] == ["at", "symbol", "venue"]
    assert table.schema.identifier_ids == {1, 2}
    assert [f.name for f in table.spec.live] == ["at_day", "symbol_bucket"]
    assert len(table.sort_order.fields) == 2
    assert table.properties["my.key"] == "yes it is"
    assert "write.parquet.compression-codec" not in table.properties
    assert table.refs["audit"].kind == "branch"
    assert table.snapshot == before.snapshot, "no branch moves"
    assert table.uuid == before.uuid
    trades.sql(
        "INSERT INTO {t} VALUES (TIMESTAMP_NTZ '2026-01-02 10:00:00', 'B', 'X', 2, 2.5, 20,"
        " named_struct('city', 'Rome', 'country', 'IT'))"
    )
    assert trades.sql("SELECT symbol, quantity, venue, place.country FROM {t} ORDER BY symbol") == [
        ("A", 10, None, None),
        ("B", 20, "X", "IT"),
    ]


def test_the_history_says_what_was_applied_to_a_plan_and_to_sql(trades: Lake) -> None:
    trades.write("0002_evolve", EVOLVE)
    trades.apply()
    history = trades.history()
    assert [(a.version.text, a.description, a.state) for a in history.applied] == [
        ("0001", "Make trades", "applied"),
        ("0002", "Evolve trades", "applied"),
    ]
    base = history.state.tables[TableName(("market_data",), "trades")]
    assert base.uuid == trades.table().uuid
    assert base.schema.fields == trades.table().schema.fields
    name = f"{trades.kind.catalog}.{trades.history_name}"
    rows = trades.sql(f"SELECT DISTINCT version_text, description FROM {name} ORDER BY 1")
    assert rows == [("0001", "Make trades"), ("0002", "Evolve trades")]
    status = trades.api.status()
    assert [m.state for m in status.migrations] == ["applied", "applied"]
    assert [(t.table, t.name, t.exists) for t in status.tables] == [
        ("market_data.trades", f"{trades.namespace}.trades", True)
    ]


def test_the_tags_read_with_their_schema_and_their_rows(trades: Lake) -> None:
    trades.write("0002_evolve", EVOLVE)
    trades.apply()
    trades.sql("DELETE FROM {t}")
    assert trades.sql("SELECT * FROM {t} VERSION AS OF 'icemigrate-market-0001'") == []
    before = (
        "SELECT symbol, volume, qualifiers, place.zip FROM {t} VERSION AS OF 'icemigrate-market-0002-before'"
    )
    assert trades.sql(before) == [("A", 10, 7, 3000)]
    assert trades.sql("SELECT symbol, quantity FROM {t} VERSION AS OF 'icemigrate-market-0002'") == [
        ("A", 10)
    ]
    summaries = trades.sql(
        "SELECT summary['icemigrate.version'], summary['icemigrate.project'] FROM {t}.snapshots"
        " WHERE summary['icemigrate.version'] IS NOT NULL ORDER BY 1"
    )
    assert summaries == [("0001", "market"), ("0002", "market")]


def test_a_table_moves_to_another_namespace_with_its_rows(trades: Lake) -> None:
    before = trades.table()
    trades.write(
        "0002_move",
        "tables: [{name: archive.deals, renamed_from: market_data.trades, columns: [{name: x, type: int}]}]",
    )
    trades.apply()
    deals = trades.table("deals", f"{trades.namespace}_archive")
    assert (deals.uuid, deals.snapshot) == (before.uuid, before.snapshot)
    assert trades.tables() == (deals.name,)
    name = trades.sql_name("deals", f"{trades.namespace}_archive")
    assert trades.sql(f"SELECT symbol, x FROM {name}") == [("A", None)]
    assert trades.sql(f"SELECT symbol FROM {name} VERSION AS OF 'icemigrate-market-0002-before'") == [("A",)]
    # Back again, under the name that it had.
    trades.write("0003_back", "tables: [{name: market_data.trades, renamed_from: archive.deals}]")
    trades.apply()
    assert trades.table().uuid == before.uuid
    assert trades.tables() == (trades.name(),)


def test_a_dropped_table_waits_in_the_trash_and_a_new_one_keeps_away_from_its_files(trades: Lake) -> None:
    before = trades.table()
    trades.write("0002_drop", "allow: [destructive]\ntables: [{name: market_data.trades, drop: true}]")
    trades.apply()
    assert trades.tables() == ()
    trash = TableName(("icemigrate_trash",), f"{trades.namespace}__trades__market__0002")
    waiting = trades.find(trash)
    assert waiting is not None
    assert waiting.uuid == before.uuid
    trades.write("0003_anew", CREATE)
    trades.apply()
    anew = trades.table()
    assert anew.uuid != before.uuid
    assert anew.location is not None
    assert before.location is not None
    assert anew.location.rstrip("/") != before.location.rstrip("/")
    assert not f"{anew.location.rstrip('/')}/".startswith(f"{before.location.rstrip('/')}/")
    trades.sql("DROP TABLE {t} PURGE")
    # Bringing it back is a rename; its rows are there still.
    trades.engine.rename(trash, trades.name())
    assert trades.table().uuid == before.uuid
    assert trades.sql("SELECT symbol, volume FROM {t}") == [("A", 10)]


def test_an_equal_table_is_adopted_and_another_one_is_a_conflict(lake: Lake) -> None:
    lake.sql(f"CREATE NAMESPACE {lake.kind.catalog}.{lake.namespace}")
    lake.sql("CREATE TABLE {t} (id bigint, name string) USING iceberg")
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    before = lake.table()
    columns = "columns: [{{name: id, type: {}}}, {{name: name, type: string}}]{}"
    text = f"tables: [{{{{name: market_data.trades, {columns}}}}}]"
    lake.write("0001_take", text.format("long", ""))
    assert [p.rule for p in lake.plan().plan.migrations[0].problems] == ["table-exists"]
    lake.write("0001_take", text.format("string", ", adopt: true"))
    assert lake.plan().obstacle == ExitCode.CONFLICT
    lake.write("0001_take", text.format("long", ", adopt: true"))
    lake.apply()
    after = lake.table()
    assert (after.schema, after.snapshot, after.uuid) == (before.schema, before.snapshot, before.uuid)
    assert {"icemigrate-market-0001", "icemigrate-market-0001-before"} <= set(after.refs)


def test_what_was_changed_by_hand_is_never_overwritten_in_silence(trades: Lake) -> None:
    trades.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.parquet.compression-codec' = 'gzip')")
    trades.sql("ALTER TABLE {t} ADD COLUMN theirs int")
    trades.write(
        "0002_set",
        "tables: [{name: market_data.trades, properties: {write.parquet.compression-codec: snappy}}]",
    )
    planned = trades.plan()
    (conflict,) = planned.plan.migrations[0].conflicts
    assert (conflict.base, conflict.actual, conflict.wanted) == ("zstd", "gzip", "snappy")
    with pytest.raises(ConflictError):
        trades.api.apply(spark=trades.session)
    trades.api.apply(trades.api.plan(overwrite=[conflict.fact]), spark=trades.session)
    table = trades.table()
    assert table.properties["write.parquet.compression-codec"] == "snappy"
    assert table.schema.find(("theirs",)) is not None, "what nobody declared is left alone"


def test_a_saved_plan_runs_as_it_was_shown_or_not_at_all(
    trades: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trades.folder)
    trades.write(
        "0002_widen", "tables: [{name: market_data.trades, columns: [{name: company_id, type: long}]}]"
    )
    saved = tmp_path / "plan.json"
    assert main(["plan", "--out", str(saved)]) == ExitCode.OK
    # Rows make nothing stale.
    trades.sql(ROW)
    first = trades.plan().plan
    trades.sql("ALTER TABLE {t} ADD COLUMN theirs int")
    assert main(["apply", str(saved), "--auto-approve"]) == ExitCode.CONFLICT
    with pytest.raises(StalePlan):
        trades.api.apply(first, spark=trades.session)
    assert trades.type_of("company_id") == "int"
    assert main(["plan", "--out", str(saved)]) == ExitCode.OK
    assert main(["apply", str(saved), "--auto-approve"]) == ExitCode.OK
    assert trades.type_of("company_id") == "long"
    assert trades.sql("SELECT count(*), sum(company_id) FROM {t}") == [(2, 2)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_format_version_is_made_and_changed(lake: Lake, version: int) -> None:
    lake.write(
        "0001_make",
        f"""
        tables:
          - name: market_data.trades
            format_version: {version}
            columns: [{{name: id, type: int}}, {{name: gone, type: string}}]
        """,
    )
    lake.write(
        "0002_change",
        """
        allow: [destructive]
        tables:
          - name: market_data.trades
            columns: [{name: id, type: long}, {name: made, type: uuid}]
            drop_columns: [gone]
        """,
    )
    lake.apply()
    table = lake.table()
    assert table.format_version == version
    assert [(f.id, f.name, format_type(f.type)) for f in table.schema.fields] == [
        (1, "id", "long"),
        (3, "made", "uuid"),
    ]
    assert {"icemigrate-market-0001", "icemigrate-market-0002"} <= set(table.refs)


def test_an_environment_s_overrides_and_namespaces_hold_in_the_catalog(trades: Lake) -> None:
    file = trades.folder / "icemigrate.yaml"
    override = "    overrides: [{tables: 'market_data.*', properties: {env.key: here}}]\n"
    file.write_text(file.read_text(encoding="utf-8") + override, encoding="utf-8")
    trades.write("0002_more", "tables: [{name: market_data.trades, properties: {my.key: mine}}]")
    from icemigrate import Project

    Project(trades.folder).apply(spark=trades.session)
    properties = trades.table().properties
    assert (properties["my.key"], properties["env.key"]) == ("mine", "here")
    assert trades.find(TableName(("market_data",), "trades")) is None
