"""Tables on S3, which DuckDB reads itself where it can sign in, and PyIceberg reads otherwise."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from icemigrate import IcebergManager
from icemigrate.errors import IcemigrateError
from icemigrate.project import open_project
from icemigrate.results.query_results import QueriedTable
from icemigrate.table_data import query_views, table_session
from icemigrate.table_data.query_explain import explain_query
from icemigrate.table_data.query_tables import open_table_query
from icemigrate.table_data.table_session import open_tables
from tests.servers.lake import Kind, on

_numbers = count(1)
pytestmark = on("rest")


@pytest.fixture
def manager(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IcebergManager:
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    kind.project(tmp_path, f"objects{next(_numbers)}", history="objects.history")
    return IcebergManager(tmp_path)


@pytest.fixture
def trades(manager: IcebergManager) -> str:
    """A table with rows, renamed and widened columns, and rows that were deleted and updated."""
    name = "market_data.trades"
    manager.create_table(name, {"id": "long", "qty": "int"})
    manager.insert_data(name, [{"id": number, "qty": number * 10} for number in range(50)])
    manager.rename_column(name, "qty", "quantity")
    manager.add_column(name, "note", "string")
    manager.insert_data(name, [{"id": 100, "quantity": 1, "note": "it's new"}])
    manager.delete_data(name, "id < 10")
    manager.update_data(name, {"note": "'old'"}, "id = 11")
    return name


def explained(folder: Path, table: str) -> QueriedTable:
    with open_tables(open_project(folder), None) as session, open_table_query(session, table) as query:
        (found,) = explain_query(session, query).tables
        return found


def reader_of(folder: Path, table: str) -> tuple[str, str]:
    found = explained(folder, table)
    return found.reader, found.reason


def test_duckdb_and_pyiceberg_read_the_same_rows_of_every_snapshot(
    manager: IcebergManager, trades: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = [one.snapshot_id for one in manager.list_snapshots(trades)]
    by_duckdb = [manager.query_snapshot(trades, number).sort_by("id").to_pylist() for number in snapshots]
    assert reader_of(tmp_path, trades)[0] == "duckdb"
    monkeypatch.setattr(table_session, "find_object_storage", lambda _: None)
    assert reader_of(tmp_path, trades)[0] == "pyiceberg"
    by_pyiceberg = [manager.query_snapshot(trades, number).sort_by("id").to_pylist() for number in snapshots]
    assert by_duckdb == by_pyiceberg
    assert len(snapshots) >= 4
    assert sorted(len(rows) for rows in by_duckdb)[-1] == 51


def test_a_query_of_all_rows_reads_every_file(trades: str, tmp_path: Path) -> None:
    found = explained(tmp_path, trades)
    assert found.reader == "duckdb"
    assert found.files_read == found.files > 1
    assert found.bytes_read == found.bytes


def test_pyiceberg_reads_what_duckdb_cannot_reach(
    manager: IcebergManager, trades: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = query_views.load_iceberg
    monkeypatch.setattr(
        query_views,
        "load_iceberg",
        lambda connection, secret: load(connection, secret.replace("USE_SSL false", "USE_SSL true")),
    )
    assert manager.query_table(trades).num_rows == 41
    reader, reason = reader_of(tmp_path, trades)
    assert reader == "pyiceberg"
    assert "it does not reach the storage" in reason


def test_a_query_reads_no_other_object(trades: str, tmp_path: Path) -> None:
    with open_tables(open_project(tmp_path), None) as session, open_table_query(session, trades) as query:
        location = query.reads[0].table.metadata["location"]
        bucket = location.split("/")[2]
        for other in (
            f"s3://{bucket}/x",
            "s3://other/x",
            f"{location}2/x",
            "https://127.0.0.1/x",
            "/etc/passwd",
        ):
            with pytest.raises(Exception, match="disabled by configuration"):
                query.connection.execute(f"SELECT * FROM read_text('{other}')")


def test_a_query_does_not_show_the_keys(manager: IcebergManager, kind: Kind, trades: str) -> None:
    with pytest.raises(IcemigrateError) as raised:
        manager.query_table(trades, "id IN (SELECT 1 FROM duckdb_secrets())")
    assert kind.variables["S3_SECRET_KEY"] not in str(raised.value)


def test_earlier_rows_are_read_and_old_snapshots_expire(manager: IcebergManager, trades: str) -> None:
    first, *_, last = manager.list_snapshots(trades)
    earlier = manager.query_as_of(trades, first.at)
    assert earlier.schema.names == ["id", "qty"]
    assert earlier.num_rows == 50
    done = manager.upsert(trades, {"id": [11, 500], "note": ["new", "first"]}, on="id")
    assert (done.updated, done.inserted) == (1, 1)
    rows = {row["id"]: row["note"] for row in manager.query_table(trades).to_pylist()}
    assert (len(rows), rows[11], rows[500]) == (42, "new", "first")
    expired = manager.expire_snapshots(trades, 0)
    assert first.snapshot_id in expired.expired
    assert last.snapshot_id in expired.expired
    assert expired.data_files >= 1
    assert len(manager.list_snapshots(trades)) == 1
    assert {row["id"]: row["note"] for row in manager.query_table(trades).to_pylist()} == rows
    with pytest.raises(IcemigrateError, match=str(first.snapshot_id)):
        manager.query_snapshot(trades, first.snapshot_id)
