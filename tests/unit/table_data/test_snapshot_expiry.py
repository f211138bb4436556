"""`table expire`: snapshots go, and only files that no other snapshot lists."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import ExitCode, IcemigrateError, UsageError
from icemigrate.results.snapshot_results import ExpireResult
from icemigrate.table_data.live_files import LiveFileReader
from icemigrate.table_data.snapshot_expiry import expire_snapshots
from tests.support.table_project import TableProject, orders
from tests.support.table_rows import append_rows, foreign_table

__all__ = ["orders"]


def _expire(project: TableProject, *, dry_run: bool = False, days_later: float = 30) -> ExpireResult:
    """Expire what is older than five days, as if some days had passed."""
    at = datetime.now(timezone.utc) + timedelta(days=days_later)
    with project.tables() as tables:
        return expire_snapshots(tables, "sales.orders", 5, dry_run=dry_run, at=at)


def _files(project: TableProject) -> set[Path]:
    """The files that the snapshots of the table need, except metadata files."""
    with project.tables() as tables:
        metadata = tables.load("sales.orders").metadata
        reader = LiveFileReader(metadata, tables.environment.catalog.read_file)
        found = {s["manifest-list"] for s in metadata["snapshots"]}
        for snapshot in metadata["snapshots"]:
            found |= {manifest.path for manifest in reader.manifests(snapshot)}
            found |= {file.path for file in reader.of(snapshot)}
    return {path for location in found if (path := local_path(location)) is not None}


def _stored(project: TableProject) -> set[Path]:
    """The files in the table's folder, except metadata files."""
    with project.tables() as tables:
        folder = local_path(tables.load("sales.orders").metadata["location"])
    assert folder is not None
    return {path for path in folder.rglob("*") if path.is_file() and path.suffix in (".avro", ".parquet")}


def _rewritten(project: TableProject) -> list[int]:
    """Two appends, a rewrite of all rows, a deletion of some, and another append; ids of the snapshots."""
    ids = [append_rows(project, [{"id": number}]) for number in (1, 2)]
    table = foreign_table(project)
    table.overwrite(table.scan().to_arrow())
    table.delete("id = 1")
    append_rows(project, [{"id": 3}])
    ids += [s.snapshot_id for s in foreign_table(project).metadata.snapshots if s.snapshot_id not in ids]
    return ids


def test_only_files_of_expired_snapshots_are_deleted(orders: TableProject) -> None:
    _rewritten(orders)
    before = _files(orders)
    assert before == _stored(orders)
    planned = _expire(orders, dry_run=True)
    assert _stored(orders) == before
    done = _expire(orders)
    assert (done.expired, done.data_files, done.metadata_files) == (
        planned.expired,
        planned.data_files,
        planned.metadata_files,
    )
    assert done.done
    assert done.data_files == 3
    assert _files(orders) == _stored(orders) < before
    assert sorted(foreign_table(orders).scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_a_writer_that_commits_first_does_not_stop_it(
    orders: TableProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    _rewritten(orders)
    with orders.tables() as tables:
        owner = type(tables.store)
    real, others = owner.commit, list[int]()

    def overtaken(*args: Any) -> Any:
        if len(others) < 2:
            others.append(append_rows(orders, [{"id": 10 + len(others)}]))
        return real(*args)

    monkeypatch.setattr(owner, "commit", overtaken)
    done = _expire(orders)
    assert (done.done, len(others)) == (True, 2)
    assert not {*others[1:]} & {*done.expired}
    assert _files(orders) == _stored(orders)
    assert sorted(foreign_table(orders).scan().to_arrow()["id"].to_pylist()) == [2, 3, 10, 11]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["commit", "delete"])
def test_a_signal_does_not_leave_files_of_expired_snapshots(
    orders: TableProject, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, stage: str
) -> None:
    _rewritten(orders)
    raised = list[signal.Signals]()
    with orders.tables() as tables:
        owner = type(tables.store if stage == "commit" else tables.store.files)
    real = getattr(owner, stage)

    def interrupted(*args: Any) -> Any:
        if not raised:
            raised.append(number)
            signal.raise_signal(number)
        return real(*args)

    monkeypatch.setattr(owner, stage, interrupted)
    done = _expire(orders)
    assert raised == [number]
    assert done.data_files == 3
    assert _files(orders) == _stored(orders)


def test_a_tag_keeps_its_snapshot_and_its_files(orders: TableProject) -> None:
    ids = _rewritten(orders)
    foreign_table(orders).manage_snapshots().create_tag(ids[1], "audit").commit()
    result = _expire(orders)
    assert ids[1] not in result.expired
    assert any("audit" in kept.reason for kept in result.kept)
    assert _files(orders) == _stored(orders)
    assert sorted(foreign_table(orders).scan(snapshot_id=ids[1]).to_arrow()["id"].to_pylist()) == [1, 2]


def test_younger_snapshots_stay(orders: TableProject) -> None:
    _rewritten(orders)
    before = _stored(orders)
    assert _expire(orders, days_later=0).is_empty
    assert _stored(orders) == before


def test_a_tag_whose_own_limit_is_over_is_removed(orders: TableProject) -> None:
    ids = _rewritten(orders)
    foreign_table(orders).manage_snapshots().create_tag(ids[0], "short", max_ref_age_ms=1_000).commit()
    assert _expire(orders).refs == ("short",)
    assert "short" not in foreign_table(orders).metadata.refs


@pytest.mark.parametrize(
    ("property_", "value", "message"),
    [("gc.enabled", "false", "`gc.enabled` of table `sales.orders` is false")],
)
def test_a_table_whose_files_may_not_be_deleted(
    orders: TableProject, property_: str, value: str, message: str
) -> None:
    _rewritten(orders)
    foreign_table(orders).transaction().set_properties({property_: value}).commit_transaction()
    before = _stored(orders)
    with pytest.raises(IcemigrateError, match=message):
        _expire(orders)
    assert _stored(orders) == before


def test_a_table_with_a_copy(orders: TableProject) -> None:
    _rewritten(orders)
    table = foreign_table(orders)
    table.catalog.register_table("sales.copy", table.metadata_location)
    before = _stored(orders)
    with pytest.raises(IcemigrateError, match="started as a copy of the same table"):
        _expire(orders)
    assert _stored(orders) == before


def test_a_manifest_that_cannot_be_read_stops_it(orders: TableProject) -> None:
    _rewritten(orders)
    manifest = next(path for path in _stored(orders) if path.name.endswith("-m0.avro"))
    manifest.write_bytes(manifest.read_bytes()[:-7])
    before = _stored(orders)
    with pytest.raises(IcemigrateError, match="cannot be read: it has"):
        _expire(orders)
    assert _stored(orders) == before


def test_more_snapshots_than_were_shown_do_not_expire(orders: TableProject) -> None:
    _rewritten(orders)
    at = datetime.now(timezone.utc) + timedelta(days=30)
    with orders.tables() as tables:
        shown = expire_snapshots(tables, "sales.orders", 5, dry_run=True, at=at)
        fewer = type(shown)(shown.table, shown.name, shown.older_than, shown.expired[1:])
        with pytest.raises(IcemigrateError, match="would expire than were shown"):
            expire_snapshots(tables, "sales.orders", 5, at=at, shown=fewer)


def test_the_command(orders: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    ids = _rewritten(orders)
    capsys.readouterr()
    assert orders.run("table", "expire", "sales.orders", "--days", "0", "-y") == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"    {ids[0]}\n" in shown
    assert "were deleted" in shown
    assert shown.count("table sales.orders") == 1
    assert orders.run("table", "expire", "sales.orders", "--days", "5", "-y") == ExitCode.OK
    assert "Nothing to expire" in capsys.readouterr().out


@pytest.mark.parametrize("days", ["nan", "inf", "-inf", "1e308"])
def test_days_that_are_no_decimal_number_are_an_error(
    orders: TableProject, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    assert orders.run("table", "expire", "sales.orders", f"--days={days}", "-y") == ExitCode.USAGE
    assert f"`{days}` is not a decimal number" in capsys.readouterr().err
    with orders.tables() as tables, pytest.raises(UsageError, match="out of range"):
        expire_snapshots(tables, "sales.orders", float(days))


@pytest.mark.parametrize("days", ["-1", "36501"])
def test_a_number_of_days_out_of_range_is_an_error(
    orders: TableProject, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    assert orders.run("table", "expire", "sales.orders", f"--days={days}", "-y") == ExitCode.USAGE
    assert "give a number of days from 0 to 36500" in capsys.readouterr().err
