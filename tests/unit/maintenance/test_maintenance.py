"""What may be deleted, decided without Spark: shared folders, expiring snapshots, what lies in the trash."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.cli import main
from icemigrate.commands.maintain import _part, still_due
from icemigrate.errors import EngineError, ExitCode, HistoryError, IcemigrateError, Stopped
from icemigrate.execution.signals import StopRequest
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.event_log import EventLog, LogEntry, LogEvent, pack_log
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, Intent, VersionState
from icemigrate.history.undo_record_codec import pack_undo
from icemigrate.iceberg.locations import (
    NearbyTables,
    copies_of,
    normalize_location,
    shared_with,
    table_locations,
)
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import (
    is_branch_of,
    is_icemigrate_branch,
    is_maintain_branch_of,
    maintain_branch_name,
)
from icemigrate.iceberg.retention import retained_by_references, retained_since, snapshot_ids_to_expire
from icemigrate.iceberg.schema import Field, Schema
from icemigrate.iceberg.table import Table, purge_name
from icemigrate.iceberg.types import Primitive
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.maintenance.context import MaintenanceAction, MaintenanceContext
from icemigrate.maintenance.trash import _unsafe, find_trashed_tables
from icemigrate.render.formats import render
from icemigrate.results.maintain_results import ActionSummary, MaintainResult, SkippedTable
from icemigrate.spark.maintenance_calls import expire_text, orphans_sql
from icemigrate.spark.row_retention import delete_sql, deleted_rows

DAY = 86_400_000
A, B = TableName(("db",), "a"), TableName(("db",), "b")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("s3a://lake/db/t/", "s3://lake/db/t"),
        ("s3n://lake//db/t", "s3://lake/db/t"),
        ("file:///lake/t", "/lake/t"),
        ("file:/lake/t", "/lake/t"),
        ("/lake/t/", "/lake/t"),
        ("gs://lake/t", "gs://lake/t"),
    ],
)
def test_one_place_has_one_spelling(written: str, meant: str) -> None:
    assert normalize_location(written) == meant


def metadata(location: str, **more: Any) -> dict[str, Any]:
    return {"location": location, **more}


@pytest.mark.parametrize(
    ("other", "is_shared"),
    [
        (metadata("s3a://lake/db/a/"), True),
        (metadata("s3://lake/db/a/inner"), True),
        (metadata("s3://lake/db"), True),
        (metadata("s3://lake/db/ab"), False),
        (metadata("s3://lake/db/b"), False),
        (metadata("s3://lake/b", properties={"write.data.path": "s3://lake/db/a/data"}), True),
        (metadata("s3://lake/b", properties={"write.metadata.path": "s3://lake/db"}), True),
        (metadata("s3://lake/b", **{"metadata-log": [{"metadata-file": "s3://lake/db/a/metadata/1"}]}), True),
        (metadata("s3://lake/b", snapshots=[{"manifest-list": "s3://lake/db/a/metadata/snap.avro"}]), True),
        (metadata("s3://lake/b", snapshots=[{"manifest-list": "s3://lake/b/metadata/snap.avro"}]), False),
    ],
)
def test_a_folder_is_shared_by_all_that_other_tables_keep_in_it(
    other: dict[str, Any], is_shared: bool
) -> None:
    mine = table_locations(A, metadata("s3://lake/db/a"), "s3://lake/db/a/metadata/v1.json")
    theirs = table_locations(B, other, None)
    found = list(shared_with(mine, [mine, theirs]))
    assert bool(found) == is_shared
    assert all("`db.b`" in text for text in found)


def test_where_the_metadata_file_lies_counts_too() -> None:
    mine = table_locations(A, metadata("s3://lake/db/a"), None)
    assert list(
        shared_with(mine, [table_locations(B, metadata("s3://lake/b"), "s3://lake/db/a/metadata/v1.json")])
    )


@pytest.mark.parametrize(
    ("other", "is_copy"),
    [
        (
            metadata("s3://lake/db/a", snapshots=[{"manifest-list": "s3a://lake/db/a/metadata/snap.avro"}]),
            True,
        ),
        (metadata("s3://lake/b", **{"metadata-log": [{"metadata-file": "s3://lake/db/a/metadata/1"}]}), True),
        (metadata("s3://lake/db/a", snapshots=[{"manifest-list": "s3://lake/db/a/metadata/2.avro"}]), False),
    ],
)
def test_a_copy_is_known_by_files_of_metadata_and_not_by_its_folder(
    other: dict[str, Any], is_copy: bool
) -> None:
    snapshots = [{"manifest-list": "s3://lake/db/a/metadata/snap.avro"}]
    mine = table_locations(A, metadata("s3://lake/db/a", snapshots=snapshots), "s3://lake/db/a/metadata/1")
    assert bool(list(copies_of(mine, [mine, table_locations(B, other, None)]))) == is_copy


def test_a_table_that_went_meanwhile_is_refused() -> None:
    theirs = table_locations(B, metadata("s3://lake/b"), None)
    look = MaintenanceContext(None, History("market"), AT, lambda: None, _places=NearbyTables([theirs]))  # type: ignore[arg-type, return-value]
    assert look.shared_folder(A) == look.shared_files(A) == "its location is unknown"
    assert look.shared_folder(B) is None


def snapshot(id_: int, day: int, parent: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"snapshot-id": id_, "timestamp-ms": day * DAY}
    return found if parent is None else {**found, "parent-snapshot-id": parent}


LINE = [snapshot(1, 1), snapshot(2, 2, 1), snapshot(3, 3, 2), snapshot(4, 4, 3), snapshot(9, 1)]
MAIN = {"main": {"snapshot-id": 4, "type": "branch"}}


@pytest.mark.parametrize(
    ("properties", "refs", "gone"),
    [
        ({}, MAIN, {1, 2, 3, 9}),
        ({"history.expire.max-snapshot-age-ms": str(100 * DAY)}, MAIN, set()),
        ({"history.expire.min-snapshots-to-keep": "3"}, MAIN, {1, 9}),
        ({}, {**MAIN, "icemigrate-market-0001-before": {"snapshot-id": 2, "type": "tag"}}, {1, 3, 9}),
        ({}, {**MAIN, "icemigrate-market-0001": {"snapshot-id": 9, "type": "tag"}}, {1, 2, 3}),
        ({}, {**MAIN, "old": {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": DAY}}, {1, 2, 3, 9}),
        ({}, {**MAIN, "b": {"snapshot-id": 2, "type": "branch", "min-snapshots-to-keep": 2}}, {3, 9}),
        ({}, {}, {1, 2, 3, 9}),
    ],
)
def test_what_expires_is_what_no_reference_needs(
    properties: dict[str, str], refs: dict[str, Any], gone: set[int]
) -> None:
    read = {"properties": properties, "refs": refs, "snapshots": LINE, "current-snapshot-id": 4}
    assert snapshot_ids_to_expire(read, 40 * DAY) == gone


@pytest.mark.parametrize(
    ("refs", "kept"),
    [
        ({}, (0, ())),
        ({"icemigrate-market-0001": {"snapshot-id": 2, "type": "tag"}}, (1, ("icemigrate-market-0001",))),
        ({"new": {"snapshot-id": 4, "type": "tag"}}, (0, ())),
        ({"old": {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": DAY}}, (0, ())),
        ({"b": {"snapshot-id": 2, "type": "branch", "min-snapshots-to-keep": 2}}, (2, ("b",))),
    ],
)
def test_what_is_old_enough_and_kept_by_a_reference_is_counted(refs: dict[str, Any], kept: Any) -> None:
    assert retained_by_references({"refs": {**MAIN, **refs}, "snapshots": LINE}, 40 * DAY) == kept


@pytest.mark.parametrize(
    ("age", "day"), [({}, 35), ({"history.expire.max-snapshot-age-ms": str(2**63 - 1)}, 0)]
)
def test_an_age_counts_from_the_moment_that_was_shown(age: dict[str, str], day: int) -> None:
    since = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(days=day)
    assert retained_since({"properties": age}, 40 * DAY) == since
    assert snapshot_ids_to_expire({"properties": age, "refs": MAIN, "snapshots": LINE}, 40 * DAY) or day == 0


@pytest.mark.parametrize(
    ("type_", "literal"),
    [
        ("date", "DATE '2026-01-02'"),
        ("timestamp", "TIMESTAMP_NTZ '2026-01-02 03:04:05'"),
        ("timestamptz", "TIMESTAMP '2026-01-02 03:04:05+00:00'"),
    ],
)
def test_a_row_without_a_value_is_never_old(type_: str, literal: str) -> None:
    at = datetime(2026, 1, 2, 4, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    text = delete_sql("lake", A, ("of day", "at"), type_, at)
    assert text == f"DELETE FROM lake.db.a WHERE `of day`.at IS NOT NULL AND `of day`.at < {literal}"


def test_calls_name_their_table_in_a_string() -> None:
    at = datetime(2026, 1, 2, tzinfo=timezone.utc)
    name = TableName(("db",), "it's")
    assert expire_text(A, at + timedelta(milliseconds=7)) == (
        "metadata commit on db.a: "
        "expireSnapshots().expireOlderThan(TIMESTAMP '2026-01-02 00:00:00.007000+00:00')"
    )
    assert r"remove_orphan_files(table => 'db.`it\'s`', " in orphans_sql("lake", name, at, "/lake/a")
    on_s3 = orphans_sql("lake", A, at, "s3://lake/a")
    assert on_s3.endswith(
        "older_than => TIMESTAMP '2026-01-02 00:00:00.000000+00:00', prefix_listing => true, dry_run => true)"
    )
    assert "prefix_listing" not in orphans_sql("lake", A, at, "/lake/a")


def test_each_run_of_maintain_has_names_of_its_own() -> None:
    run, other = "0123456789abcdef", "fedcba9876543210"
    own = purge_name(GONE, run)
    assert own == TableName(GONE.namespace, "db__a__market__0002__01234567")
    assert purge_name(own, other) == TableName(GONE.namespace, "db__a__market__0002__fedcba98")
    branch = maintain_branch_name("market", run)
    assert is_icemigrate_branch(branch)
    assert is_branch_of(branch, "market", "0001"), "who takes the lock over drops it"
    assert not is_branch_of(branch, "desk", "0001")
    assert not is_maintain_branch_of("icemigrate-market-maintain-0002-data", "market"), "another project's"
    (one,) = find_trashed_tables(dropped(), "market", [Table(own, SCHEMA, uuid="u1")])
    assert (one.version, one.is_known) == ("0002", True), "what a killed purge left is found"


def test_tables_of_another_project_are_not_maintained() -> None:
    mine = Table(A, SCHEMA, uuid="u1", owner="market")
    look: Any = SimpleNamespace(session=SimpleNamespace(project=SimpleNamespace(name="desk")))
    assert _unsafe(look, mine) == "it belongs to project `market`"


SCHEMA = Schema((Field(1, "id", Primitive("long"), required=False),))
AT = datetime(2026, 5, 1, tzinfo=timezone.utc)
GONE = TableName(("icemigrate_trash",), "db__a__market__0002")


def dropped(standing: str = "applied", log: EventLog | None = None) -> History:
    table = Table(A, SCHEMA, uuid="u1")
    undo = UndoRecord("0002", (TableUndo(A, None, table, None, table, None, GONE),))
    version = Version.parse("0002")
    return History(
        "market",
        applied=(AppliedVersion(version, "c", "", AT, state=VersionState(standing)),),
        undo={"0002": pack_undo(undo)},
        log="" if log is None else pack_log(log),
    )


def entry(event: Any, day: int, version: str = "0002") -> LogEntry:
    return LogEntry(LogEvent(event), Version.parse(version), "", AT + timedelta(days=day), "ada", "ci")


def test_a_table_in_the_trash_is_known_by_its_uuid_and_the_projects_mark_alone_is_not_enough() -> None:
    history = dropped()
    ours = Table(GONE, SCHEMA, uuid="u1")
    made = Table(
        TableName(GONE.namespace, "db__c__market__0001"),
        SCHEMA,
        {},
        uuid="u2",
    )
    made = replace(made, spec=ours.spec, properties={"icemigrate.created-by": "market/0001"})
    theirs = replace(made, properties={"icemigrate.created-by": "other/0001"}, uuid="u3")
    by_hand = replace(ours, name=TableName(GONE.namespace, "mine"))
    found = list(find_trashed_tables(history, "market", [ours, made, theirs, by_hand]))
    assert [one.table for one in found] == [ours, made]
    assert [one.version for one in found] == ["0002", "0001"]
    assert [one.is_known for one in found] == [True, False], "two histories can have one project name"


@pytest.mark.parametrize(
    ("history", "since"),
    [
        (dropped(), AT),
        (dropped("held"), None),
        (dropped(log=EventLog((entry("applied", 1), entry("rolled_back", 2), entry("redone", 3)))), 3),
        (dropped("held", EventLog((entry("applied", 7, "0009"),), earlier=5)), 7),
    ],
)
def test_a_stay_in_the_trash_counts_from_the_last_that_happened(history: History, since: Any) -> None:
    (one,) = find_trashed_tables(history, "market", [Table(GONE, SCHEMA, uuid="u1")])
    assert one.since == (AT + timedelta(days=since) if isinstance(since, int) else since)


def test_a_table_that_a_reset_and_a_later_version_put_into_the_trash_counts_from_the_version() -> None:
    reset = replace(entry("reset", 1), version=None, tables=(str(GONE),))
    history = dropped(log=EventLog((reset, entry("applied", 5))))
    (one,) = find_trashed_tables(history, "market", [Table(GONE, SCHEMA, uuid="u1")])
    assert (one.since, one.is_known) == (AT + timedelta(days=5), True)


def test_what_is_lost_is_said_before_and_refusals_are_told() -> None:
    (one,) = find_trashed_tables(dropped(), "market", [Table(GONE, SCHEMA, uuid="u1")])
    lost = one.lost(dropped())
    assert "0002 dropped `db.a` and cannot be undone after that" in lost[0]
    act = ActionSummary("trash", str(GONE), "drop for good", "catalog.dropTable(…)", lost)
    kept = (
        SkippedTable("orphans", "db.b", "other tables use its folder", True),
        SkippedTable("trash", "x.y", "early"),
    )
    result = MaintainResult("market", "prod", ("trash", "orphans"), AT, (act,), kept)
    text = render(result)
    assert lost[0] in text
    assert "db.b (orphans): refused: other tables use its folder" in text
    assert text.endswith("Maintenance: 1 table to drop permanently.\n")
    done = render(replace(result, acts=(replace(act, outcome="dropped for good"),), done=True))
    assert done.endswith("Maintained 1 table in prod in 0.0 s.\n")
    assert result.refused == kept[:1]


def test_an_interrupted_migration_is_no_lock_but_is_waited_for() -> None:
    intent = Intent(Version.parse("0003"), "apply", AT, "ada", "ci", "r", ("db.a",))
    look = MaintenanceContext(None, History("market", intents=(intent,)), AT, lambda: None)  # type: ignore[arg-type, return-value]
    assert "0003 was interrupted" in (look.interrupted_reason(A) or "")
    assert look.interrupted_reason(B) is None


def act(name: TableName, *consequences: str, run: Any = lambda engine: "done") -> MaintenanceAction:
    return MaintenanceAction(ActionSummary("trash", str(name), "drop", "…", consequences), name, "u", run)


def test_what_costs_more_than_was_shown_is_passed_over() -> None:
    shown = (act(A, "one", "two"), act(B, "one"), act(GONE))
    due, notes = still_due(shown, (act(A, "two"), act(B, "one", "three")))
    assert due == (act(A, "two"),)
    assert notes == (
        "db.b: trash would now lose more than was shown: three",
        f"{GONE}: `trash` has nothing to do any more",
    )


class _Held:
    """What a journal is told."""

    lock = SimpleNamespace(holder=SimpleNamespace(user="ada", host="ci"), require_not_taken=lambda: None)
    run = "r"

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.recorded: list[Any] = []

    def step(self, text: str) -> None: ...

    def supersede(self, records: Any, _change: Any) -> None:
        self.recorded.extend(records)
        if self.fault is not None:
            raise self.fault


def carry_out(held: _Held, stop: StopRequest, *acts: MaintenanceAction) -> None:
    world: Any = SimpleNamespace(
        project=SimpleNamespace(name="market"), environment=SimpleNamespace(name="prod")
    )
    engine: Any = None
    _part(world, held, "trash", acts, engine, stop, lambda part, table: None)


def failing(fault: BaseException) -> Any:
    def run(_engine: Any) -> str:
        raise fault

    return run


def test_who_asks_to_stop_is_heard_between_two_acts() -> None:
    held, stop = _Held(), StopRequest()

    def interrupted(_engine: Any) -> str:
        stop.signal = signal.SIGINT
        return "done"

    with pytest.raises(Stopped):
        carry_out(held, stop, act(A, run=interrupted), act(B, run=failing(AssertionError())))
    assert [record.tables for record in held.recorded] == [("db.a",)]


def test_a_call_that_was_torn_apart_is_followed_by_no_other() -> None:
    held = _Held()
    with pytest.raises(KeyboardInterrupt):
        carry_out(held, StopRequest(), act(A), act(B, run=failing(KeyboardInterrupt())))
    assert held.recorded == []


def test_a_history_that_cannot_be_written_hides_no_failure_of_an_act() -> None:
    with pytest.raises(EngineError, match="the storage is gone"):
        carry_out(
            _Held(HistoryError("full")),
            StopRequest(),
            act(A),
            act(B, run=failing(EngineError("the storage is gone"))),
        )
    with pytest.raises(IcemigrateError, match="full"):
        carry_out(_Held(HistoryError("full")), StopRequest(), act(A))


@pytest.mark.parametrize(
    ("said", "asked", "least"),
    [
        ("", "2d", "3d"),
        ("rules: {IM204: {at_least: 7d}}", "5d", "7d"),
        ("rules: {IM204: {at_least: 1d}}", "2d", "3d"),
    ],
)
def test_files_that_a_write_may_need_are_no_orphans(
    said: str, asked: str, least: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "icemigrate.yaml").write_text(said)
    options = ["--project", str(tmp_path), "--orphans", "--older-than", asked]
    assert main(["maintain", *options]) == ExitCode.USAGE
    assert f"files younger than {least} cannot be removed as orphans" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("summary", "number"),
    [
        ({"total-records": "7", "deleted-records": "5", "added-records": "2"}, 3),
        ({"total-records": "7", "added-position-deletes": "4", "removed-position-deletes": "1"}, 3),
        ({"total-records": "7", "deleted-records": "5"}, 5),
        ({}, None),
    ],
)
def test_the_number_of_deleted_rows_is_in_the_summary(summary: dict[str, str], number: int | None) -> None:
    assert deleted_rows(_two_snapshots({}, summary), 2) == number


@pytest.mark.parametrize(
    ("before", "summary", "number"),
    [
        ({"total-position-deletes": "2"}, {"deleted-records": "5", "added-records": "2"}, None),
        ({"total-equality-deletes": "1"}, {"deleted-records": "5"}, None),
        ({"total-position-deletes": "2"}, {"added-position-deletes": "4"}, 4),
        ({"total-position-deletes": "0"}, {"deleted-records": "5"}, 5),
    ],
)
def test_a_removed_file_with_earlier_deletions_does_not_show_the_number(
    before: dict[str, str], summary: dict[str, str], number: int | None
) -> None:
    assert deleted_rows(_two_snapshots(before, {"total-records": "7", **summary}), 2) == number


def _two_snapshots(before: dict[str, str], summary: dict[str, str]) -> dict[str, object]:
    latest = {"snapshot-id": 2, "parent-snapshot-id": 1, "summary": summary}
    return {"snapshots": [{"snapshot-id": 1, "summary": before}, latest]}
