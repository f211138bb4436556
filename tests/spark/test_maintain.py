"""Retention carried out on real tables: nothing goes but what was said, and nothing that others need."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from icemigrate.cli import main
from icemigrate.commands import maintain as maintain_command
from icemigrate.commands.maintain import MaintenancePlan, maintain, plan_maintenance
from icemigrate.errors import ConflictError, EngineError, ExitCode, LockHeld, Mistakes, Stopped
from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.spark import maintenance_calls
from icemigrate.spark.storage_deletes import delete_files
from tests.spark.test_rollback import ROW_1, ROW_2, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.spark_engine import SparkEngine

DROP = """
    description: Trades are kept elsewhere now
    allow: [destructive]
    tables: [{name: db.trades, drop: true}]
"""
TRASHED = "icemigrate_trash.db__trades__shop__0002"
SCHEMA = Path(__file__).parents[2] / "schemas" / "maintain.schema.json"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


class _Later(datetime):
    """A clock that goes some days ahead."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + cls.ahead


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets ``maintain`` count ages from some days later."""

    def go(days: float) -> None:
        monkeypatch.setattr(_Later, "ahead", timedelta(days=days))
        monkeypatch.setattr(maintain_command, "datetime", _Later)

    return go


def look(shop: Shop, *parts: str) -> MaintenancePlan:
    return plan_maintenance(open_project(shop.folder), parts=parts, spark=shop.spark)


def do(shop: Shop, *parts: str) -> MaintainResult:
    return maintain(open_project(shop.folder), look(shop, *parts), spark=shop.spark)


def aged(file: Path, days: float) -> None:
    """Make a file older."""
    at = time.time() - days * 86_400
    os.utime(file, (at, at))


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))


def test_the_trash_is_emptied_after_its_retention_and_the_undo_of_the_drop_says_so(
    shop: Shop, later: Any
) -> None:
    shop.insert(ROW_1)
    home = shop.folder / ".icemigrate" / "warehouse" / "db" / "trades"
    assert files(home)
    shop.apply("0002", DROP)

    early = do(shop, "trash")
    assert early.acts == ()
    assert [(k.table, k.is_refused) for k in early.kept] == [(TRASHED, False)]
    later(29.9)
    assert look(shop, "trash").acts == ()

    later(30.1)
    plan = look(shop, "trash")
    (act,) = plan.result.acts
    assert act.table == TRASHED
    assert act.consequences == (
        "0002 dropped `db.trades` and cannot be undone after that: `rollback` refuses, "
        "or with `--partial` leaves it dropped",
    )
    assert files(home), "looking changes nothing"
    done = do(shop, "trash")
    assert [(a.table, a.outcome) for a in done.acts] == [(TRASHED, "dropped for good")]
    assert files(home) == []
    assert shop.spark.sql(f"SHOW TABLES IN {shop.catalog}.icemigrate_trash").collect() == []
    event = shop.project.history().events[-1]
    assert (event.event, event.version) == ("maintained", None)
    assert "cannot be undone after that" in (event.message or "")

    assert do(shop, "trash").acts == (), "once is enough"
    with pytest.raises(Mistakes) as refused:
        shop.rollback()
    assert [d.code for d in refused.value.diagnostics] == ["trash-emptied"]
    assert shop.rollback(options=UndoOptions(partial=True)) == ("0002",)


def test_a_table_whose_purge_was_killed_behind_its_rename_is_restored(
    shop: Shop, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.insert(ROW_1)
    rows = shop.sql("SELECT * FROM @.trades")
    shop.apply("0002", DROP)
    later(31)
    plan, looks = look(shop, "trash"), iter((maintenance_calls.require_same, _killed))
    monkeypatch.setattr(maintenance_calls, "require_same", lambda *given: next(looks)(*given))
    with pytest.raises(KeyboardInterrupt):
        maintain(open_project(shop.folder), plan, spark=shop.spark)
    monkeypatch.undo()
    left = shop.spark.sql(f"SHOW TABLES IN {shop.catalog}.icemigrate_trash").collect()
    assert [row["tableName"].startswith("db__trades__shop__0002__") for row in left] == [True]
    assert shop.rollback() == ("0002",)
    assert shop.sql("SELECT * FROM @.trades") == rows


def test_a_table_that_another_process_dropped_meanwhile_is_not_reported_as_dropped(
    shop: Shop, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.apply("0002", DROP)
    later(31)
    plan, require_same = look(shop, "trash"), maintenance_calls.require_same

    def then_drop(engine: SparkEngine, name: TableName, uuid: str | None) -> None:
        require_same(engine, name, uuid)
        if str(name) != TRASHED:
            shop.spark.sql(f"DROP TABLE {shop.catalog}.{name}")

    monkeypatch.setattr(maintenance_calls, "require_same", then_drop)
    with pytest.raises(ConflictError, match=f"another process has restored or dropped table `{TRASHED}`"):
        maintain(open_project(shop.folder), plan, spark=shop.spark)
    assert [e.event for e in shop.project.history().events if e.event == "maintained"] == []


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_a_rollback_put_into_the_trash_goes_after_its_own_stay(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.rollback()
    later(31)
    (act,) = do(shop, "trash").acts
    assert act.table == "icemigrate_trash.db__trades__shop__0001"
    assert act.consequences == ("`apply --redo 0001` then creates `db.trades` again, without its rows",)


def test_the_stay_in_the_trash_is_a_setting(shop: Shop, later: Any) -> None:
    shop.apply("0002", DROP)
    file = shop.folder / "icemigrate.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "trash: {max_age: 2d}\n", encoding="utf-8")
    later(1.9)
    assert look(shop, "trash").acts == ()
    later(2.1)
    assert len(look(shop, "trash").acts) == 1


def test_a_trashed_table_whose_folder_another_uses_stays(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", DROP)
    # Somebody made a table of that name by hand: Iceberg gives it the same folder.
    shop.sql("CREATE TABLE @.trades (id INT) USING iceberg")
    shop.sql("INSERT INTO @.trades VALUES (7)")
    later(31)
    done = do(shop, "trash")
    assert done.acts == ()
    (kept,) = done.kept
    assert kept.is_refused
    assert "`db.trades` stores files in the same folder" in kept.reason
    assert shop.sql("SELECT * FROM @.trades") == [(7,)]


def test_trash_of_others_is_passed_over(shop: Shop, later: Any) -> None:
    shop.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {shop.catalog}.icemigrate_trash")
    other = f"{shop.catalog}.icemigrate_trash.db__theirs__shop__0001"
    shop.spark.sql(f"CREATE TABLE {other} (id INT) USING iceberg")
    later(365)
    assert look(shop, "trash").result.kept == ()
    assert look(shop, "trash").acts == ()
    assert shop.spark.sql(f"SELECT * FROM {other}").collect() == []


def test_trash_of_another_history_of_the_same_project_name_is_refused(shop: Shop, later: Any) -> None:
    shop.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {shop.catalog}.icemigrate_trash")
    other = f"{shop.catalog}.icemigrate_trash.db__theirs__shop__0001"
    mark = "'icemigrate.created-by'='shop/0001'"
    shop.spark.sql(f"CREATE TABLE {other} (id INT) USING iceberg TBLPROPERTIES ({mark})")
    later(365)
    done = do(shop, "trash")
    assert done.acts == ()
    assert [(k.reason, k.is_refused) for k in done.kept] == [("the history has no record of it", True)]
    assert shop.spark.sql(f"SELECT * FROM {other}").collect() == []


RETAIN = """
    description: Keep less
    tables:
      - name: db.trades
        retention: {snapshots: {max_age: 2d, keep_at_least: 1}, rows: {column: at, max_age: 400d}}
"""


def test_snapshots_expire_as_declared_and_tags_keep_what_rollback_needs(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.insert(ROW_2)
    shop.apply("0002", RETAIN)
    shop.insert("(3, 'CC', 1, 'X', TIMESTAMP '2026-01-03 10:00:00')")
    assert look(shop, "snapshots").acts == ()
    later(3)
    (act,) = look(shop, "snapshots").result.acts
    assert act.text.startswith("expire 1 of 5 snapshots: kept for 2d, at least 1"), act.text


def test_what_expires_is_what_was_foreseen(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.insert(ROW_2)
    shop.apply("0002", RETAIN.replace("max_age: 2d", "max_age: 1s"))
    shop.insert("(3, 'CC', 1, 'X', TIMESTAMP '2026-01-03 10:00:00')")
    shop.sql("DELETE FROM @.trades WHERE id = 3")
    time.sleep(1.1)
    (act,) = do(shop, "snapshots").acts
    assert act.text.startswith("expire 2 of 6 snapshots"), act.text
    assert len(shop.sql("SELECT * FROM @.trades.snapshots")) == 4
    assert sorted(shop.sql("SELECT id FROM @.trades")) == [(1,), (2,)]
    before = "SELECT id FROM @.trades VERSION AS OF 'icemigrate-shop-0002-before'"
    assert sorted(shop.sql(before)) == [(1,), (2,)]
    assert look(shop, "snapshots").acts == ()
    assert shop.rollback() == ("0002",)


def test_no_snapshot_expires_that_was_young_when_it_was_shown(shop: Shop) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", RETAIN.replace("max_age: 2d", "max_age: 5s"))
    shop.insert(ROW_2)
    time.sleep(5.1)
    shop.sql("DELETE FROM @.trades WHERE id = 2")
    shop.sql("DELETE FROM @.trades WHERE id = 1")
    snapshots = "SELECT snapshot_id FROM @.trades.snapshots"
    before = len(shop.sql(snapshots))
    plan = look(shop, "snapshots")
    count = int(plan.result.acts[0].text.split()[1])
    time.sleep(5.1)  # by now the first deletion is old enough too
    assert int(look(shop, "snapshots").result.acts[0].text.split()[1]) > count
    maintain(open_project(shop.folder), plan, spark=shop.spark)
    assert len(shop.sql(snapshots)) == before - count


def test_snapshots_of_a_table_with_a_copy_do_not_expire(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.insert(ROW_2)
    shop.apply("0002", RETAIN)
    place = shop.engine.metadata_location(TableName(("db",), "trades"))
    shop.spark.sql(
        f"CALL {shop.catalog}.system.register_table(table => 'db.copy', metadata_file => '{place}')"
    ).collect()
    shop.insert("(3, 'CC', 1, 'X', TIMESTAMP '2026-01-03 10:00:00')")
    later(3)
    result = look(shop, "snapshots").result
    assert result.acts == ()
    (kept,) = (k for k in result.kept if k.is_refused)
    assert "`db.copy` started as a copy of the same table" in kept.reason


def test_a_policy_that_somebody_altered_is_not_followed(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", RETAIN)
    shop.sql("ALTER TABLE @.trades SET TBLPROPERTIES ('icemigrate.retention.rows.max-age-ms'='1000')")
    result = do(shop, "rows")
    assert result.acts == ()
    assert [k.is_refused for k in result.kept] == [True]
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]


def test_rows_go_by_their_age_and_those_without_one_stay(shop: Shop) -> None:
    now = datetime.now(timezone.utc)
    old, young = now - timedelta(days=401), now - timedelta(days=399)
    shop.apply("0002", RETAIN)
    shop.insert(
        f"(1, 'AA', 1, 'X', TIMESTAMP '{old:%Y-%m-%d %H:%M:%S}'),"
        f"(2, 'BB', 1, 'X', TIMESTAMP '{young:%Y-%m-%d %H:%M:%S}'), (3, 'CC', 1, 'X', NULL)"
    )
    (act,) = look(shop, "rows").result.acts
    assert "at most 1 in 1 file" in act.text, act.text
    assert [a.outcome for a in do(shop, "rows").acts] == ["1 row deleted"]
    assert sorted(shop.sql("SELECT id FROM @.trades")) == [(2,), (3,)]
    assert look(shop, "rows").acts == ()


def test_orphans_go_where_a_folder_is_a_tables_own_and_only_old_ones(shop: Shop) -> None:
    shop.insert(ROW_1)
    home = shop.folder / ".icemigrate" / "warehouse" / "db" / "trades" / "data"
    (home / "left-over.parquet").write_bytes(b"x")
    assert look(shop, "orphans").acts == (), "it is too young"
    aged(home / "left-over.parquet", 3.1)
    (act,) = look(shop, "orphans").result.acts
    assert "remove 1 file" in act.text
    assert [a.outcome for a in do(shop, "orphans").acts] == ["1 file deleted"]
    assert not (home / "left-over.parquet").exists()
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]


@pytest.mark.parametrize("where", ["", "/data/inner", "/.."])
def test_orphan_cleaning_refuses_a_folder_that_another_table_uses(shop: Shop, where: str) -> None:
    shop.insert(ROW_1)
    home = shop.folder / ".icemigrate" / "warehouse" / "db" / "trades"
    place = home.parent if where == "/.." else f"{home}{where}"
    shop.sql(f"CREATE TABLE @.other (id INT) USING iceberg LOCATION 'file:{place}'")
    shop.sql("INSERT INTO @.other VALUES (1)")
    before = files(home)
    for file in before:
        aged(file, 4)
    done = do(shop, "orphans")
    assert done.acts == ()
    (kept,) = done.kept
    assert kept.is_refused
    assert "db.other" in kept.reason
    assert files(home) == before


def test_one_at_a_time(shop: Shop, later: Any) -> None:
    from icemigrate.execution.environment_session import open_environment
    from icemigrate.execution.project_journal import open_journal

    shop.apply("0002", DROP)
    later(31)
    project = open_project(shop.folder)
    plan = look(shop, "trash")
    with (
        open_environment(project, None) as world,
        open_journal(world, shop.engine).hold_lock("apply", "ada", "ci"),
        pytest.raises(LockHeld),
    ):
        maintain(project, plan, spark=shop.spark, lock_timeout_s=0)
    assert len(look(shop, "trash").acts) == 1


def test_what_is_not_due_any_more_is_passed_over(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", DROP)
    later(31)
    plan = look(shop, "trash")
    shop.rollback()
    done = maintain(open_project(shop.folder), plan, spark=shop.spark)
    assert done.acts == ()
    assert done.notes == (f"{TRASHED}: `trash` has nothing to do any more",)
    assert shop.sql("SELECT id FROM @.trades") == [(1,)]


def test_what_is_refused_only_under_the_lock_is_told(shop: Shop, later: Any) -> None:
    shop.insert(ROW_1)
    shop.apply("0002", DROP)
    later(31)
    plan = look(shop, "trash")
    assert (len(plan.acts), plan.result.refused) == (1, ())
    # Somebody made a table of that name by hand: Iceberg gives it the same folder.
    shop.sql("CREATE TABLE @.trades (id INT) USING iceberg")
    done = maintain(open_project(shop.folder), plan, spark=shop.spark)
    assert done.acts == ()
    assert [k.table for k in done.refused] == [TRASHED]


def test_ctrl_c_is_heard_after_the_act_that_goes_on(shop: Shop, later: Any) -> None:
    shop.apply("0002", "tables: [{name: db.venues, columns: [{name: id, type: int}]}]")
    drop = "{name: db.trades, drop: true}, {name: db.venues, drop: true}"
    shop.apply("0003", f"allow: [destructive]\ntables: [{drop}]")
    later(31)
    plan = look(shop, "trash")
    told: list[str] = []

    def interrupt(_part: str, table: str) -> None:
        told.append(table)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        maintain(open_project(shop.folder), plan, spark=shop.spark, on_act=interrupt)
    assert told == [plan.result.acts[0].table]
    assert shop.project.history().events[-1].description == f"emptied the trash of {told[0]}"
    assert shop.project.status().lock is None
    assert [a.table for a in look(shop, "trash").result.acts] == [plan.result.acts[1].table]


def test_json_fits_its_schema(shop: Shop, later: Any) -> None:
    shop.apply("0002", DROP)
    later(31)
    for result in (look(shop, "trash").result, do(shop, "trash")):
        document = json.loads(render(result, "json"))
        jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_command_shows_asks_and_does(
    shop: Shop, later: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.folder)
    assert main(["maintain"]) == ExitCode.OK
    assert capsys.readouterr().out.endswith("shop in local: nothing to maintain.\n")
    shop.apply("0002", DROP)
    later(31)
    assert main(["maintain", "--dry-run"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"- {TRASHED}: drop permanently, with its files: in the trash since " in shown
    assert "0002 dropped `db.trades` and cannot be undone after that" in shown
    assert main(["maintain"]) == ExitCode.USAGE, "standard input is not a terminal"
    assert capsys.readouterr().out == shown
    assert main(["maintain", "--auto-approve", "--format", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [act["outcome"] for act in document["acts"]] == ["dropped for good"]
    assert main(["history"]) == ExitCode.OK
    assert f"emptied the trash of {TRASHED}" in capsys.readouterr().out


def test_what_is_refused_is_an_exit_code(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.folder)
    home = shop.folder / ".icemigrate" / "warehouse" / "db" / "trades"
    shop.sql(f"CREATE TABLE @.other (id INT) USING iceberg LOCATION 'file:{home}'")
    assert main(["maintain", "--orphans", "--auto-approve"]) == ExitCode.FINDINGS
    assert "refused" in capsys.readouterr().out
    assert main(["maintain", "--orphans", "--older-than", "2d"]) == ExitCode.USAGE
    assert main(["maintain", "--orphans", "--older-than", "soon"]) == ExitCode.USAGE
    assert main(["maintain", "--older-than", "9d"]) == ExitCode.USAGE


def test_the_api_maintains(shop: Shop) -> None:
    looked = shop.project.maintain("trash", dry_run=True, spark=shop.spark)
    assert (looked.parts, looked.done) == (("trash",), False)
    assert shop.project.maintain(spark=shop.spark).done


def test_what_was_done_before_a_failure_is_recorded_and_the_rest_is_done_next_time(
    shop: Shop, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icemigrate.spark import maintenance_calls

    shop.apply("0002", "tables: [{name: db.venues, columns: [{name: id, type: int}]}]")
    drop = "{name: db.trades, drop: true}, {name: db.venues, drop: true}"
    shop.apply("0003", f"allow: [destructive]\ntables: [{drop}]")
    later(31)
    first, second = (act.table for act in look(shop, "trash").result.acts)
    purge = maintenance_calls.purge_table

    def fails_at_the_second(engine: Any, name: TableName, uuid: str | None) -> None:
        if str(name) == second:
            raise EngineError("the storage is gone")
        purge(engine, name, uuid)

    monkeypatch.setattr(maintenance_calls, "purge_table", fails_at_the_second)
    with pytest.raises(EngineError, match="the storage is gone"):
        do(shop, "trash")
    event = shop.project.history().events[-1]
    assert event.description == f"emptied the trash of {first}"
    assert shop.project.status().lock is None
    monkeypatch.setattr(maintenance_calls, "purge_table", purge)
    assert [act.table for act in do(shop, "trash").acts] == [second]


def _expirable(shop: Shop) -> frozenset[int]:
    """Snapshots of which some are old enough to expire; the ids of all of them."""
    shop.insert(ROW_1)
    shop.apply("0002", RETAIN.replace("max_age: 2d", "max_age: 1s"))
    for row in (ROW_2, "(3, 'CC', 1, 'X', TIMESTAMP '2026-01-03 10:00:00')"):
        shop.insert(row)
    shop.sql("DELETE FROM @.trades WHERE id = 2")
    shop.sql("DELETE FROM @.trades WHERE id = 3")
    return frozenset(id_ for (id_,) in shop.sql("SELECT snapshot_id FROM @.trades.snapshots"))


def test_no_snapshot_expires_whose_tag_was_dropped_after_the_look(shop: Shop) -> None:
    every = _expirable(shop)
    tagged = shop.sql("SELECT snapshot_id FROM @.trades.snapshots ORDER BY committed_at DESC")[1][0]
    shop.sql(f"ALTER TABLE @.trades CREATE TAG audit AS OF VERSION {tagged}")
    time.sleep(1.1)
    project, plan = open_project(shop.folder), look(shop, "snapshots")

    def snapshots() -> frozenset[int]:
        return frozenset(id_ for (id_,) in shop.sql("SELECT snapshot_id FROM @.trades.snapshots"))

    def drop(_part: str, _table: str) -> None:
        shop.sql("ALTER TABLE @.trades DROP TAG audit")

    with pytest.raises(ConflictError, match="more of its snapshots would expire than were shown"):
        maintain(project, plan, spark=shop.spark, on_act=drop)
    assert snapshots() == every
    done = maintain(project, plan, spark=shop.spark)
    assert done.acts == ()
    assert done.notes == ("db.trades: more snapshots would now expire than were shown",)
    assert snapshots() == every
    do(shop, "snapshots")
    assert tagged not in snapshots()


def test_files_that_the_storage_does_not_delete_are_not_counted_as_deleted(shop: Shop) -> None:
    _expirable(shop)
    kept = {str(path) for (path,) in shop.sql("SELECT file_path FROM @.trades.files")}
    paths = [str(path) for (path,) in shop.sql("SELECT file_path FROM @.trades.all_data_files")]
    for tag in ("icemigrate-shop-0002", "icemigrate-shop-0002-before"):
        kept |= {str(path) for (path,) in shop.sql(f"SELECT _file FROM @.trades VERSION AS OF '{tag}'")}
    place = Path(next(path for path in paths if path not in kept).removeprefix("file:"))
    place.unlink()
    place.mkdir()
    (place / "inner").write_bytes(b"x")  # a folder that is not empty cannot be deleted as a file
    time.sleep(1.1)
    (act,) = do(shop, "snapshots").acts
    found = re.fullmatch(
        r"snapshots expired, (\d+) of (\d+) files deleted; the storage refused the others, .*", act.outcome
    )
    assert found, act.outcome
    assert int(found[1]) == int(found[2]) - 1
    assert place.is_dir()

    files = shop.engine.java.jvm.java.util.ArrayList()
    files.add(str(place))
    io = shop.engine.java.table(TableName(("db",), "trades")).io()
    with pytest.raises(EngineError, match="the storage deleted none of 1 unneeded file"):
        delete_files(io, files)
    assert place.is_dir()


DROP_AND_RENAME = """
    description: Drop and rename
    allow: [destructive]
    tables:
      - name: db.trades
        renames: {symbol: ticker}
        drop_columns: [venue, price]
        columns: [{name: note, type: string}]
"""
ADD = "tables: [{name: db.trades, columns: [{name: extra, type: string}]}]"


@pytest.mark.parametrize(
    ("format_version", "settings", "removed"), [(2, "", {1}), (3, ", record: history", {1, 2})]
)
def test_old_schemas_go_and_everything_that_needs_one_still_works(
    format_version: int, settings: str, removed: set[int], tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tmp_path, spark, format_version, settings)
    shop.insert(f"{ROW_1}, {ROW_2}")
    before = shop.columns()
    shop.sql("ALTER TABLE @.trades CREATE TAG audit")
    shop.sql("ALTER TABLE @.trades ADD COLUMN theirs string")
    shop.apply("0002", DROP_AND_RENAME)
    shop.apply("0003", ADD)
    shop.insert("(3, 'CC', TIMESTAMP '2026-01-03 10:00:00', 'mine')", "id, ticker, at, note")
    snapshots, name = shop.sql("SELECT * FROM @.trades.snapshots"), TableName(("db",), "trades")

    def ids() -> set[int]:
        found = shop.engine.metadata_json(name)
        assert found is not None
        return {schema["schema-id"] for schema in found["schemas"]}

    every, plan = ids(), look(shop, "schemas")
    (act,) = plan.result.acts
    assert act.text.startswith(f"remove {len(removed)} of {len(every)} schemas ("), act.text
    assert ids() == every, "looking changes nothing"
    (done,) = maintain(open_project(shop.folder), plan, spark=shop.spark).acts
    assert done.outcome == f"{len(removed)} schema{'s' if len(removed) > 1 else ''} removed"
    assert every - ids() == removed
    assert shop.project.history().events[-1].description == "removed old schemas of db.trades"
    assert look(shop, "schemas").acts == (), "once is enough"

    def reads_all_versions() -> None:
        for tag in ("audit", *(t for t in _tags(shop) if t != "icemigrate-fence")):
            assert shop.sql(f"SELECT * FROM @.trades VERSION AS OF '{tag}'") is not None
        for (snapshot_id,) in shop.sql("SELECT snapshot_id FROM @.trades.snapshots"):
            assert shop.sql(f"SELECT * FROM @.trades VERSION AS OF {snapshot_id}") is not None
        audit = shop.sql("SELECT id, symbol, venue FROM @.trades VERSION AS OF 'audit' ORDER BY id")
        assert audit == [(1, "AA", "X"), (2, "BB", "Y")]

    assert len(snapshots) == len(shop.sql("SELECT * FROM @.trades.snapshots"))
    reads_all_versions()
    assert [t.table for t in shop.project.drift().tables] == ["db.trades"]
    assert shop.rollback() == ("0003",)
    assert sorted(shop.columns()) == ["at#5", "id#1", "note#7", "theirs#6", "ticker#2"]
    assert shop.rollback() == ("0002",)
    assert shop.columns() == [*before, "theirs#6"]
    rows = "SELECT id, symbol, CAST(price AS string), venue FROM @.trades ORDER BY id"
    assert shop.sql(rows) == [(1, "AA", "1.25", "X"), (2, "BB", "2.50", "Y"), (3, "CC", None, None)]
    do(shop, "schemas")
    redo = shop.project.plan(redo="2")
    assert shop.project.apply(redo, spark=shop.spark).applied == ("0002",)
    assert sorted(shop.columns()) == ["at#5", "id#1", "note#7", "theirs#6", "ticker#2"]
    assert shop.sql("SELECT id, note FROM @.trades WHERE id = 3") == [(3, "mine")]
    reads_all_versions()
    assert shop.standing() == {"0001": "applied", "0002": "applied", "0003": "held"}


def _tags(shop: Shop) -> list[str]:
    return [name for name, kind in shop.sql("SELECT name, type FROM @.trades.refs") if kind == "TAG"]
