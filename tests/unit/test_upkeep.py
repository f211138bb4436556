"""What may be deleted, decided without Spark: shared folders, expiring snapshots, what lies in the trash."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.app.maintaining import _part, still_due
from icemigrate.app.trash import trashed
from icemigrate.app.upkeep import Act, Look
from icemigrate.cli import main
from icemigrate.declare.version import Version
from icemigrate.engine.upkeep import delete_sql, expire_sql, orphans_sql
from icemigrate.errors import EngineError, ExitCode, HistoryError, IcemigrateError, Stopped
from icemigrate.executor.signals import Stop
from icemigrate.frozen import replace
from icemigrate.history.applied import Applied
from icemigrate.history.intent import Intent
from icemigrate.history.log import Entry, Log, pack
from icemigrate.history.properties import History
from icemigrate.history.undo_record import pack_undo
from icemigrate.model.expiry import expiring, kept_by_references, kept_since
from icemigrate.model.locations import copies_of, normal, places_of, shared_with
from icemigrate.model.names import TableName
from icemigrate.model.schema import Field, Schema
from icemigrate.model.table import Table
from icemigrate.model.types import Primitive
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.model.upkeep import Kept, MaintainResult, Upkeep
from icemigrate.render.formats import render

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
    assert normal(written) == meant


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
    mine = places_of(A, metadata("s3://lake/db/a"), "s3://lake/db/a/metadata/v1.json")
    theirs = places_of(B, other, None)
    found = list(shared_with(mine, [mine, theirs]))
    assert bool(found) == is_shared
    assert all("`db.b`" in text for text in found)


def test_where_the_metadata_file_lies_counts_too() -> None:
    mine = places_of(A, metadata("s3://lake/db/a"), None)
    assert list(shared_with(mine, [places_of(B, metadata("s3://lake/b"), "s3://lake/db/a/metadata/v1.json")]))


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
    mine = places_of(A, metadata("s3://lake/db/a", snapshots=snapshots), "s3://lake/db/a/metadata/1")
    assert bool(list(copies_of(mine, [mine, places_of(B, other, None)]))) == is_copy


def test_a_table_that_went_meanwhile_is_refused() -> None:
    theirs = places_of(B, metadata("s3://lake/b"), None)
    look = Look(None, History("market"), AT, lambda: None, _places=(theirs,))  # type: ignore[arg-type, return-value]
    assert look.shared_folder(A) == look.shared_files(A) == "nobody knows where it is"
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
    assert expiring(read, 40 * DAY) == gone


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
    assert kept_by_references({"refs": {**MAIN, **refs}, "snapshots": LINE}, 40 * DAY) == kept


@pytest.mark.parametrize(
    ("age", "day"), [({}, 35), ({"history.expire.max-snapshot-age-ms": str(2**63 - 1)}, 0)]
)
def test_an_age_counts_from_the_moment_that_was_shown(age: dict[str, str], day: int) -> None:
    since = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(days=day)
    assert kept_since({"properties": age}, 40 * DAY) == since
    assert expiring({"properties": age, "refs": MAIN, "snapshots": LINE}, 40 * DAY) or day == 0


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
    assert expire_sql("lake", name, at + timedelta(milliseconds=7)) == (
        r"CALL lake.system.expire_snapshots(table => 'db.`it\'s`', "
        "older_than => TIMESTAMP '2026-01-02 00:00:00.007000+00:00')"
    )
    on_s3 = orphans_sql("lake", A, at, "s3://lake/a", dry_run=True)
    assert on_s3.endswith(
        "older_than => TIMESTAMP '2026-01-02 00:00:00.000000+00:00', prefix_listing => true, dry_run => true)"
    )
    assert "prefix_listing" not in orphans_sql("lake", A, at, "/lake/a", dry_run=False)


SCHEMA = Schema((Field(1, "id", Primitive("long"), required=False),))
AT = datetime(2026, 5, 1, tzinfo=timezone.utc)
GONE = TableName(("icemigrate_trash",), "db__a__market__0002")


def dropped(standing: str = "applied", log: Log | None = None) -> History:
    table = Table(A, SCHEMA, uuid="u1")
    undo = UndoRecord("0002", (TableUndo(A, None, table, None, table, None, GONE),))
    version = Version.parse("0002")
    return History(
        "market",
        applied=(Applied(version, "c", "", AT, standing=standing),),  # type: ignore[arg-type]
        undo={"0002": pack_undo(undo)},
        log="" if log is None else pack(log),
    )


def entry(event: Any, day: int, version: str = "0002") -> Entry:
    return Entry(event, Version.parse(version), "", AT + timedelta(days=day), "ada", "ci")


def test_a_table_in_the_trash_is_known_by_its_uuid_and_the_projects_mark_alone_is_not_enough() -> None:
    history = dropped()
    ours = Table(GONE, SCHEMA, uuid="u1")
    made = Table(
        TableName(GONE.namespace, "db__c__market__0001"),
        SCHEMA,
        {},
        uuid="u2",  # type: ignore[arg-type]
    )
    made = replace(made, spec=ours.spec, properties={"icemigrate.created-by": "market/0001"})
    theirs = replace(made, properties={"icemigrate.created-by": "other/0001"}, uuid="u3")
    by_hand = replace(ours, name=TableName(GONE.namespace, "mine"))
    found = list(trashed(history, "market", [ours, made, theirs, by_hand]))
    assert [one.table for one in found] == [ours, made]
    assert [one.version for one in found] == ["0002", "0001"]
    assert [one.is_known for one in found] == [True, False], "two histories can have one project name"


@pytest.mark.parametrize(
    ("history", "since"),
    [
        (dropped(), AT),
        (dropped("held"), None),
        (dropped(log=Log((entry("applied", 1), entry("rolled_back", 2), entry("redone", 3)))), 3),
        (dropped("held", Log((entry("applied", 7, "0009"),), earlier=5)), 7),
    ],
)
def test_a_stay_in_the_trash_counts_from_the_last_that_happened(history: History, since: Any) -> None:
    (one,) = trashed(history, "market", [Table(GONE, SCHEMA, uuid="u1")])
    assert one.since == (AT + timedelta(days=since) if isinstance(since, int) else since)


def test_what_is_lost_is_said_before_and_refusals_are_told() -> None:
    (one,) = trashed(dropped(), "market", [Table(GONE, SCHEMA, uuid="u1")])
    lost = one.lost(dropped())
    assert "0002 dropped `db.a` and can then not be undone" in lost[0]
    act = Upkeep("trash", str(GONE), "drop for good", "catalog.dropTable(…)", lost)
    kept = (Kept("orphans", "db.b", "its folder is not its own alone", True), Kept("trash", "x.y", "early"))
    result = MaintainResult("market", "prod", ("trash", "orphans"), AT, (act,), kept)
    text = render(result)
    assert lost[0] in text
    assert "db.b (orphans): refused: its folder is not its own alone" in text
    assert text.endswith("Maintenance: 1 table to drop for good.\n")
    done = render(replace(result, acts=(replace(act, outcome="dropped for good"),), done=True))
    assert done.endswith("Maintained 1 table in prod in 0.0 s.\n")
    assert result.refused == kept[:1]


def test_an_interrupted_migration_is_no_lock_but_is_waited_for() -> None:
    intent = Intent(Version.parse("0003"), "apply", AT, "ada", "ci", "r", ("db.a",))  # type: ignore[arg-type]
    look = Look(None, History("market", intents=(intent,)), AT, lambda: None)  # type: ignore[arg-type, return-value]
    assert "0003 was interrupted" in (look.waiting(A) or "")
    assert look.waiting(B) is None


def act(name: TableName, *consequences: str, run: Any = lambda engine: "done") -> Act:
    return Act(Upkeep("trash", str(name), "drop", "…", consequences), name, "u", run)


def test_what_costs_more_than_was_shown_is_passed_over() -> None:
    shown = (act(A, "one", "two"), act(B, "one"), act(GONE))
    due, notes = still_due(shown, (act(A, "two"), act(B, "one", "three")))
    assert due == (act(A, "two"),)
    assert notes == (
        "db.b: trash would cost more than was shown: three",
        f"{GONE}: trash is not to be done any more",
    )


class _Held:
    """What a journal is told."""

    lock = SimpleNamespace(mine=SimpleNamespace(user="ada", host="ci"))
    run = "r"

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.recorded: list[Any] = []

    def step(self, text: str) -> None: ...

    def supersede(self, records: Any, _change: Any) -> None:
        self.recorded.extend(records)
        if self.fault is not None:
            raise self.fault


def carry_out(held: _Held, stop: Stop, *acts: Act) -> None:
    world: Any = SimpleNamespace(
        project=SimpleNamespace(name="market"), environment=SimpleNamespace(name="prod")
    )
    engine: Any = None
    _part(world, held, "trash", acts, engine, stop, lambda part, table: None)  # type: ignore[arg-type]


def failing(fault: BaseException) -> Any:
    def run(_engine: Any) -> str:
        raise fault

    return run


def test_who_asks_to_stop_is_heard_between_two_acts() -> None:
    held, stop = _Held(), Stop()

    def interrupted(_engine: Any) -> str:
        stop.signal = signal.SIGINT
        return "done"

    with pytest.raises(Stopped):
        carry_out(held, stop, act(A, run=interrupted), act(B, run=failing(AssertionError())))
    assert [record.tables for record in held.recorded] == [("db.a",)]


def test_a_call_that_was_torn_apart_is_followed_by_no_other() -> None:
    held = _Held()
    with pytest.raises(KeyboardInterrupt):
        carry_out(held, Stop(), act(A), act(B, run=failing(KeyboardInterrupt())))
    assert held.recorded == []


def test_a_history_that_cannot_be_written_hides_no_failure_of_an_act() -> None:
    with pytest.raises(EngineError, match="the storage is gone"):
        carry_out(
            _Held(HistoryError("full")),
            Stop(),
            act(A),
            act(B, run=failing(EngineError("the storage is gone"))),
        )
    with pytest.raises(IcemigrateError, match="full"):
        carry_out(_Held(HistoryError("full")), Stop(), act(A))


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
    assert f"files that are younger than {least} are no orphans yet" in capsys.readouterr().err
