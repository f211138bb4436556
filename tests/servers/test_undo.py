"""Taking back, holding, redoing, and one at a time: on catalogs that have a server.

``tests/spark`` shows the same on SQLite, in more cases.  The lock is looked at on every kind of catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from icemigrate.cli import main
from icemigrate.commands.apply import apply, require_ready
from icemigrate.errors import EngineError, ExitCode, LockHeld
from icemigrate.events import StatementStarted
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.spark_start import spark_settings
from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import choose_environment
from icemigrate.spark.session import start_spark
from tests.servers.lake import Lake, on, rest_kind
from tests.servers.seaweedfs import SeaweedFS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = """
    description: Make trades
    tables:
      - name: market_data.trades
        columns: [{name: symbol, type: string}, {name: volume, type: long}, {name: qualifiers, type: int}]
        partition_by: ["bucket(4, symbol) as part"]
        properties: {my.key: one}
"""
CHANGE = """
    description: Change trades
    allow: [destructive]
    tables:
      - name: market_data.trades
        renames: {volume: quantity}
        drop_columns: [qualifiers]
        columns: [{name: venue, type: string, after: symbol}]
        partition_by: []
        properties: {my.key: two}
"""


@pytest.fixture
def changed(lake: Lake) -> Lake:
    """Trades with rows of before and after a change, and a column of somebody else."""
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7)")
    lake.write("0002_change", CHANGE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('B', 'X', 20)")
    lake.sql("ALTER TABLE {t} ADD COLUMN theirs int")
    return lake


def roll_back(lake: Lake) -> tuple[str, ...]:
    return lake.api.rollback(spark=lake.session, on_event=lake.events.append).rolled_back


def namespaces(lake: Lake) -> tuple[tuple[str, ...], ...]:
    with open_environment(lake.project, None) as world:
        return world.catalog.namespaces()


def states(lake: Lake) -> list[tuple[str, str]]:
    return [(m.version, m.state) for m in lake.api.status().migrations]


@on("postgres", "rest")
def test_a_rollback_keeps_newer_rows_and_foreign_columns_and_brings_values_back(changed: Lake) -> None:
    before = changed.table()
    assert roll_back(changed) == ("0002",)
    after = changed.table()
    assert after.uuid == before.uuid
    assert after.snapshot == before.snapshot
    assert [f.name for f in after.schema.fields] == ["symbol", "volume", "qualifiers", "theirs"]
    assert [f.name for f in after.spec.live] == ["part"]
    assert after.properties["my.key"] == "one"
    assert changed.sql("SELECT symbol, volume, qualifiers FROM {t} ORDER BY symbol") == [
        ("A", 10, 7),
        ("B", 20, None),
    ]


@on("postgres", "rest")
def test_a_version_that_was_taken_back_is_held_and_redone_under_its_field_ids(changed: Lake) -> None:
    ids = {f.name: f.id for f in changed.table().schema.fields}
    roll_back(changed)
    assert states(changed) == [("0001", "applied"), ("0002", "held")]
    assert changed.plan().is_empty, "the next deployment does not apply it again"
    redo = changed.api.plan(redo="0002")
    require_ready(redo)
    changed.api.apply(redo, spark=changed.session)
    assert states(changed) == [("0001", "applied"), ("0002", "applied")]
    assert {f.name: f.id for f in changed.table().schema.fields} == ids
    assert changed.sql("SELECT symbol, venue, quantity FROM {t} ORDER BY symbol") == [
        ("A", None, 10),
        ("B", "X", 20),
    ]


@on("postgres", "rest")
def test_a_drop_and_a_creation_are_taken_back(lake: Lake) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7)")
    uuid = lake.table().uuid
    lake.write("0002_drop", "allow: [destructive]\ntables: [{name: market_data.trades, drop: true}]")
    lake.apply()
    assert lake.tables() == ()
    assert roll_back(lake) == ("0002",)
    assert lake.table().uuid == uuid
    assert lake.sql("SELECT symbol, volume FROM {t}") == [("A", 10)]
    # What a migration made is put away, not destroyed.
    assert roll_back(lake) == ("0001",)
    assert lake.tables() == ()
    away = lake.find(TableName(("icemigrate_trash",), f"{lake.namespace}__trades__market__0001"))
    assert away is not None
    assert away.uuid == uuid
    # The namespace that it had made goes, unless it took the files of what is in the trash along.
    assert ((lake.namespace,) in namespaces(lake)) == (lake.kind.name == "rest")
    lake.api.apply(lake.api.plan(redo="0001"), spark=lake.session)
    assert lake.sql("SELECT symbol, volume FROM {t}") == [("A", 10)]
    lake.sql(f"CREATE TABLE {lake.sql_name('theirs')} (id INT) USING iceberg")
    assert roll_back(lake) == ("0001",)
    assert (lake.namespace,) in namespaces(lake), "somebody else has a table in it"
    lake.sql(f"DROP TABLE {lake.sql_name('theirs')}")


@on("postgres", "rest")
@contextmanager
def polled(lake: Lake) -> Iterator[set[tuple[str, ...]]]:
    """A block in which PyIceberg reads trades all the time; the columns that it found."""
    seen, rows, over, catalog = set[tuple[str, ...]](), set[int](), Event(), lake.pyiceberg()

    def read() -> None:
        while not over.wait(0.05):
            table = catalog.load_table((lake.namespace, "trades")).scan().to_arrow()
            seen.add(tuple(table.column_names))
            rows.add(table.num_rows)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            yield seen
        finally:
            over.set()
    reader.result()  # raises what the reader raised
    catalog.close()
    assert rows == {1}


def test_commits_in_python_and_with_spark_follow_each_other_while_others_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.folder)

    def run(*args: str) -> None:
        assert main([*args, "--auto-approve"]) == ExitCode.OK

    lake.write("0001_make", MAKE)
    run("apply", "--apply-with", "metadata")
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7)")
    lake.write("0002_change", CHANGE)
    with polled(lake) as seen:
        run("apply", "--apply-with", "metadata")
        ids = {f.name: f.id for f in lake.table().schema.fields}
        run("rollback", "--apply-with", "metadata")
        run("apply", "--redo", "0002", "--apply-with", "spark")
        assert {f.name: f.id for f in lake.table().schema.fields} == ids
        run("rollback", "--apply-with", "metadata")
    assert seen <= {("symbol", "volume", "qualifiers"), ("symbol", "venue", "quantity")}
    assert lake.sql("SELECT symbol, volume, qualifiers FROM {t}") == [("A", 10, 7)]
    assert states(lake) == [("0001", "applied"), ("0002", "held")]


def test_a_move_is_taken_back(changed: Lake) -> None:
    uuid = changed.table().uuid
    changed.write("0003_move", "tables: [{name: archive.deals, renamed_from: market_data.trades}]")
    changed.apply()
    assert roll_back(changed) == ("0003",)
    is_there = (f"{changed.namespace}_archive",) in namespaces(changed)
    assert is_there == (changed.kind.name == "rest"), "it may take files along there"
    assert changed.tables() == (changed.name(),)
    assert changed.table().uuid == uuid


def test_while_one_applies_another_is_told_who_does(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(lake.folder)
    lake.write("0001_make", MAKE)
    seen: list[str] = []

    def meddle(event: object) -> None:
        if isinstance(event, StatementStarted) and not seen:
            history = lake.history()
            assert history.lock is not None
            seen.append(history.lock.words())
            # Others see it too, and do not get in.
            assert main(["doctor"]) == ExitCode.OK
            with pytest.raises(LockHeld, match=r"\(process \d+\)"):
                apply(lake.project, lake.plan().plan, spark=lake.session, lock_timeout_s=0)

    lake.api.apply(spark=lake.session, on_event=meddle)
    assert "process" in seen[0]
    assert f"held by {seen[0].split(',')[0]}" in capfd.readouterr().out
    assert lake.history().lock is None


def test_what_a_storage_refuses_of_a_refill_is_told(
    seaweedfs_server: SeaweedFS, spark_jvm: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row ids are found by merge-on-read alone, whose files a table bucket does not admit."""
    kind = rest_kind(seaweedfs_server)
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    project = kind.project(tmp_path, "refused", "refused_meta.history")
    session = start_spark(spark_settings(choose_environment(project, None, kind.variables)))
    lake = Lake(kind, session, tmp_path, "refused")
    lake.write("0001_make", f"{MAKE.rstrip()}\n        format_version: 3\n")
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7), ('B', 11, 8)")
    lake.write("0002_change", CHANGE)
    lake.apply()
    lake.sql("UPDATE {t} SET venue = 'X'")
    before = lake.table()
    with pytest.raises(EngineError, match=r"the storage rejects `\.puffin` files") as failed:
        lake.api.rollback(options=UndoOptions(refill=True), spark=lake.session)
    assert lake.table() == before, "a trial found it before anything was committed"
    assert "`icemigrate rollback --no-refill` ends an undo" in str(failed.value.hint)
    lake.api.rollback(options=UndoOptions(refill=False), spark=lake.session)
    lost = [("A", 10, None), ("B", 11, None)]
    assert lake.sql("SELECT symbol, volume, qualifiers FROM {t} ORDER BY symbol") == lost
    assert {name for name, ref in lake.table().refs.items() if ref.kind == "branch"} == {"main"}


@on("rest")
def test_values_that_were_rewritten_away_come_back_from_the_tag(lake: Lake) -> None:
    make = MAKE.replace("{name: symbol, type: string}", "{name: symbol, type: string, required: true}")
    lake.write("0001_make", f"{make.rstrip()}\n        identifier: [symbol]\n")
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', 10, 7), ('B', 11, 8)")
    lake.write("0002_change", CHANGE)
    lake.apply()
    lake.sql("UPDATE {t} SET venue = 'X'")
    lake.sql("INSERT INTO {t} VALUES ('C', 'Y', 12)")
    lake.api.rollback(options=UndoOptions(refill=True), spark=lake.session, on_event=lake.events.append)
    assert lake.sql("SELECT symbol, volume, qualifiers FROM {t} ORDER BY symbol") == [
        ("A", 10, 7),
        ("B", 11, 8),
        ("C", 12, None),
    ]
    assert {name for name, ref in lake.table().refs.items() if ref.kind == "branch"} == {"main"}


@on("rest")
def test_a_column_that_partitioned_reads_its_values_on_every_branch(lake: Lake) -> None:
    """Iceberg merges the manifests of the earlier partitioning, and writes null for its values."""
    make = "{tables: [{name: market_data.trades, columns: [{name: id, type: long}, {name: s, type: string}], "
    make += "partition_by: [s]}]}"
    change = (
        "{allow: [destructive], tables: [{name: market_data.trades, partition_by: [], drop_columns: [s]}]}"
    )
    lake.write("0001_make", make)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES (1, 'eu')")
    lake.sql("INSERT INTO {t} VALUES (2, 'us')")
    lake.write("0002_change", change)
    lake.apply()
    lake.sql("ALTER TABLE {t} CREATE BRANCH side")
    lake.sql("INSERT INTO {t}.branch_side (id) VALUES (4)")
    lake.sql("INSERT INTO {t} (id) VALUES (3)")
    roll_back(lake)
    assert lake.sql("SELECT id, s FROM {t} ORDER BY id") == [(1, "eu"), (2, "us"), (3, None)]
    assert lake.sql("SELECT id FROM {t} WHERE s = 'eu'") == [(1,)]
    assert lake.sql("SELECT id, s FROM {t}.branch_side ORDER BY id") == [(1, "eu"), (2, "us"), (4, None)]
