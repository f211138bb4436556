"""Retention on every kind of catalog and storage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from icemigrate.commands import maintain as maintain_command
from icemigrate.commands.maintain import maintain, plan_maintenance
from icemigrate.errors import ConflictError
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.spark import commit
from tests.servers.lake import Lake

MAKE = """
    description: Make trades
    tables:
      - name: market_data.trades
        columns: [{name: symbol, type: string}, {name: at, type: timestamptz}]
        partition_by: [day(at) as day]
        retention: {snapshots: {max_age: 1d, keep_at_least: 1}, rows: {column: at, max_age: 3650d}}
"""
DROP = """
    description: Drop trades
    allow: [destructive]
    tables: [{name: market_data.trades, drop: true}]
"""


class _NextYear(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(days=365)


def do(lake: Lake, *parts: str) -> MaintainResult:
    plan = plan_maintenance(lake.project, parts=parts, spark=lake.session)
    return maintain(lake.project, plan, spark=lake.session)


def test_a_dropped_table_goes_for_good(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql("INSERT INTO {t} VALUES ('A', TIMESTAMP '2026-01-01 00:00:00Z')")
    (data,) = [path for (path,) in lake.sql("SELECT file_path FROM {t}.files")]
    lake.write("0002_drop", DROP)
    lake.apply()
    assert do(lake, "trash").acts == ()
    monkeypatch.setattr(maintain_command, "datetime", _NextYear)
    (act,) = do(lake, "trash").acts
    assert act.outcome == "dropped for good"
    assert lake.find(lake.name(f"{lake.namespace}__trades__0002", "icemigrate_trash")) is None
    assert not exists(lake, data)
    assert do(lake, "trash").acts == ()


def test_rows_and_schemas_go_and_orphans_are_looked_for_by_the_tables_own_storage(lake: Lake) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    lake.sql(
        "INSERT INTO {t} VALUES ('A', TIMESTAMP '2000-01-01 00:00:00Z'), "
        "('B', TIMESTAMP '2026-01-01 00:00:00Z'), ('C', NULL)"
    )
    assert [a.outcome for a in do(lake, "rows").acts] == ["1 row deleted"]
    assert lake.sql("SELECT symbol FROM {t} ORDER BY symbol") == [("B",), ("C",)]
    result = do(lake, "orphans")
    assert (result.acts, result.kept) == ((), ())
    for column in ("a", "b"):
        lake.sql(f"ALTER TABLE {{t}} ADD COLUMN {column} int")
    assert [a.outcome for a in do(lake, "schemas").acts] == ["1 schema removed"]
    assert lake.sql("SELECT symbol FROM {t} WHERE b IS NULL ORDER BY symbol") == [("B",), ("C",)]


def test_no_snapshot_expires_that_another_client_refers_to_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.write("0001_make", MAKE)
    lake.apply()
    name, committed = lake.name("trades"), commit.commit_fenced

    def insert(symbol: str) -> int:
        lake.sql(f"INSERT INTO {{t}} VALUES ('{symbol}', TIMESTAMP '2026-01-01 00:00:00Z')")
        return int(lake.engine.java.table(name).currentSnapshot().snapshotId())

    def meanwhile(act: Callable[[], None]) -> None:
        """Let another client act once, right before the commit."""
        acts = [act]

        def commit_late(*args: Any) -> None:
            if acts:
                acts.pop()()
            committed(*args)

        monkeypatch.setattr(commit, "commit_fenced", commit_late)

    first, _, _ = insert("A"), insert("B"), insert("C")
    monkeypatch.setattr(maintain_command, "datetime", _NextYear)

    meanwhile(lambda: lake.engine.java.table(name).manageSnapshots().rollbackTo(first).commit())
    with pytest.raises(ConflictError, match="more of its snapshots would expire than were shown"):
        do(lake, "snapshots")
    assert lake.sql("SELECT symbol FROM {t}") == [("A",)]

    insert("D")
    meanwhile(lambda: lake.engine.java.table(name).manageSnapshots().createTag("audit", first).commit())
    with suppress(ConflictError):  # where the catalog compares all of the metadata, the rest expires
        do(lake, "snapshots")
    assert lake.sql("SELECT symbol FROM {t} VERSION AS OF 'audit'") == [("A",)]

    monkeypatch.setattr(commit, "commit_fenced", committed)
    do(lake, "snapshots")
    assert lake.sql("SELECT symbol FROM {t} VERSION AS OF 'audit'") == [("A",)]
    assert sorted(lake.sql("SELECT symbol FROM {t}")) == [("A",), ("D",)]
    assert len(lake.sql("SELECT snapshot_id FROM {t}.snapshots")) <= 3


def exists(lake: Lake, path: str) -> bool:
    """Whether a file is there, by the storage that the lake's tables use."""
    io = lake.engine.java.table(lake.history_name).io()
    return bool(io.newInputFile(path).exists())
