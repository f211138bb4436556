"""Whatever breaks midway: one message, the right exit code, nothing lost; once it is mended, all goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import icemigrate
from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.iceberg.names import TableName
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from tests.crash.cable import Cable
from tests.crash.client import Blow, Gateway
from tests.crash.stage import Stage, set_up
from tests.crash.world import World
from tests.servers.lake import Kind, Lake, postgres_kind, rest_kind
from tests.servers.postgres import postgres
from tests.servers.seaweedfs import SeaweedFS, seaweedfs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY, SECRET = "crash-access-pq4", "crash-secret-zt9"


@pytest.fixture
def alone(stage: Stage, tmp_path: Path) -> Stage:
    """A copy of the stage."""
    return stage.copied(tmp_path / "project", "atomic")


def as_root(*command: str | Path) -> None:
    lead = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*lead, *map(str, command)], check=True, timeout=30)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder.mkdir(parents=True)
    as_root("mount", "-t", "tmpfs", "-o", "size=6m,mode=777", "none", folder)
    try:
        yield folder
    finally:
        as_root("umount", "-l", folder)


@pytest.mark.parametrize(("harm", "changes"), [("full", 0), ("full", 3), ("read-only", 3)])
def test_a_warehouse_that_is_full_or_read_only(
    gateway: Gateway, tmp_path: Path, harm: str, changes: int
) -> None:
    sudo = "" if os.geteuid() == 0 else "sudo -n "
    with small_disk(tmp_path / "disk") as disk:
        stage = set_up(World(tmp_path / "project", gateway, "atomic", disk))
        world = stage.world
        world.restore(stage.pending)
        break_it, mend_it = {
            "full": (f"cat /dev/zero > {disk}/filler 2>/dev/null", f"rm {disk}/filler"),
            "read-only": (f"{sudo}mount -o remount,ro {disk}", f"{sudo}mount -o remount,rw {disk}"),
        }[harm]
        end = world.change("apply", blow=Blow(changes, command=break_it))
        assert end.code == ExitCode.ERROR, end
        assert end.is_one_message, end
        told = {"full": "No space left on device", "read-only": "Read-only file system"}[harm]
        assert told in end.err, end
        world.planned()
        subprocess.run(mend_it, shell=True, check=True)
        if changes == 0:
            assert stage.is_at_rest
            assert world.facts() == stage.before
        # Where not even the end of the lock could be written, its lease ends it.
        world.done("apply")
        stage.is_done()
        assert stage.is_at_rest


@pytest.mark.parametrize("harm", ["full", "read-only"])
def test_a_project_folder_that_is_full_or_read_only(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only reads works; what writes says so in one message, and leaves nothing behind by half."""
    table = "tables: [{name: shop.trades, columns: [{name: id, type: long}]}]"
    with small_disk(tmp_path / "disk") as disk:
        monkeypatch.chdir(disk)
        (disk / "migrations").mkdir()
        (disk / "migrations" / "0001_make.yaml").write_text(table, encoding="utf-8")
        (disk / "icemigrate.yaml").write_text("project: shop\n", encoding="utf-8")
        assert main(["check", "--fix"]) == ExitCode.OK
        subprocess.run("cat /dev/zero > filler 2>/dev/null", shell=True, check=False)
        if harm == "read-only":
            as_root("mount", "-o", "remount,ro", disk)
        before = sorted(path for path in disk.rglob("*") if path.is_file())
        for args in (["check"], ["plan"], ["status"], ["history"], ["drift"], ["show"]):
            assert main(args) == ExitCode.OK, (args, capsys.readouterr())
        capsys.readouterr()
        files = [["plan", "--out", "plan.json"], ["check", "--format", "sarif=found.sarif"], ["new", "more"]]
        # A folder takes no room on a full disk, and only Spark would find that out.
        for args in (*files, *([["apply", "--auto-approve"]] if harm == "read-only" else [])):
            assert main(args) == ExitCode.ERROR, args
            told = capsys.readouterr()
            assert told.err.count("error: ") == 1, (args, told)
            reason = {"full": "no space left on device", "read-only": "read-only file system"}[harm]
            assert reason in told.err, (args, told)
            assert "bug in icemigrate" not in told.err
        assert sorted(path for path in disk.rglob("*") if path.is_file()) == before
        monkeypatch.chdir(tmp_path)


def test_a_tag_that_somebody_removed(alone: Stage, crash_jvm: SparkSession) -> None:
    world = alone.world
    world.restore(alone.applied)
    session = session_of(world, crash_jvm)
    for tag in ("icemigrate-shop-0002", "icemigrate-shop-0002-before"):
        session.sql(f"ALTER TABLE {world.catalog}.shop.trades DROP TAG `{tag}`")
    world.planned()
    world.done("rollback")
    alone.is_undone()


def test_a_history_that_somebody_altered(alone: Stage, crash_jvm: SparkSession) -> None:
    world = alone.world
    session = session_of(world, crash_jvm)
    history = f"{world.catalog}.icemigrate.history"
    session.sql(f"DELETE FROM {history} WHERE outcome = 'applied'")
    facts = world.facts()
    for args in (["plan"], ["apply", "--auto-approve"], ["rollback", "--auto-approve"]):
        end = world.run(*args)
        assert end.code == ExitCode.ERROR, end
        assert end.is_one_message, end
        assert "altered by hand" in end.err
    assert world.facts() == facts


def session_of(world: World, jvm: SparkSession) -> SparkSession:
    assert jvm is not None
    return start_spark(SparkSettings(world.catalog, sqlite_catalog_conf(world.database, world.warehouse)))


def test_a_clock_that_jumps(alone: Stage, crash_jvm: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day back, a day ahead, with every look at it."""
    looks = count()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=(-1) ** next(looks))

    for module in ("execution.run", "history.journal"):
        monkeypatch.setattr(f"icemigrate.{module}.datetime", Jumping)
    project = icemigrate.Project(alone.world.folder)
    assert project.apply(spark=crash_jvm).applied == ("0002",)
    alone.is_done()
    assert project.rollback(spark=crash_jvm).rolled_back == ("0002",)
    alone.is_undone()
    assert next(looks) > 4
    assert alone.is_at_rest


MAKE = "tables: [{name: market_data.trades, columns: [{name: id, type: long}, {name: old, type: int}]}]"
CHANGE = """
allow: [destructive]
tables:
  - {name: market_data.more, columns: [{name: id, type: long}]}
  - {name: market_data.trades, drop_columns: [old], columns: [{name: new, type: string}]}
"""


def lake_on(kind: Kind, crash_jvm: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A project with a row in its table and a migration pending."""
    from icemigrate.execution.spark_start import open_engine
    from icemigrate.project import choose_environment

    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    project = kind.project(folder, "crash", "crash_meta.history")
    environment = choose_environment(project, None, kind.variables)
    lake = Lake(kind, open_engine(environment, crash_jvm).session, folder, "crash")
    lake.write("0001_make", MAKE)
    lake.apply()
    monkeypatch.setenv("ICEMIGRATE_LOCK_LEASE", "3")  # by now the JVM has done all of it once
    lake.sql("INSERT INTO {t} VALUES (1, 10)")
    lake.write("0002_change", CHANGE)
    return lake


def breaks_and_goes_on(
    lake: Lake, cable: Cable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is cut when the migration has made its first table; then it is mended."""
    from icemigrate.render.progress_text import ProgressWriter

    hear = ProgressWriter.__call__

    def cut(self: ProgressWriter, event: Any) -> None:
        hear(self, event)
        if type(event).__name__ == "TableVerified":
            cable.cut()

    with monkeypatch.context() as patched:
        patched.setattr(ProgressWriter, "__call__", cut)
        code = main(["apply", "--auto-approve"])
    told = capsys.readouterr()
    assert code == ExitCode.ERROR, told
    assert told.err.count("error: ") == 1, told
    assert "Traceback" not in told.err + told.out
    assert "bug in icemigrate" not in told.err
    assert "stopped at" in told.err
    cable.mend()
    assert lake.sql("SELECT * FROM {t}") == [(1, 10)]
    assert main(["apply", "--auto-approve"]) == ExitCode.OK, capsys.readouterr()
    assert lake.sql("SELECT * FROM {t}") == [(1, None)]
    assert {t.name for t in lake.tables()} == {"trades", "more"}
    history = lake.history()
    assert (history.lock, history.intents) == (None, ())
    assert main(["rollback", "--auto-approve"]) == ExitCode.OK, capsys.readouterr()
    assert lake.sql("SELECT * FROM {t}") == [(1, 10)]
    assert lake.find(TableName((lake.namespace,), "more")) is None


def test_a_catalog_that_goes_away_midway(
    crash_jvm: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with postgres(SECRET) as server, Cable(server.port) as cable:
        kind = postgres_kind(server, tmp_path)
        through = {**kind.variables, "DATABASE_URL": f"postgresql://127.0.0.1:{cable.port}/{server.database}"}
        lake = lake_on(Kind(kind.name, kind.environment, through), crash_jvm, tmp_path, monkeypatch)
        breaks_and_goes_on(lake, cable, capsys, monkeypatch)


@pytest.fixture(scope="module")
def store() -> Iterator[SeaweedFS]:
    with seaweedfs(KEY, SECRET) as server:
        yield server


def test_a_rest_catalog_that_goes_away_midway_and_a_credential_that_expired(
    store: SeaweedFS,
    crash_jvm: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Cable(port_of(store.catalog)) as cable:
        kind = rest_kind(store)
        through = {**kind.variables, "CATALOG_URI": f"http://127.0.0.1:{cable.port}"}
        lake = lake_on(Kind(kind.name, kind.environment, through), crash_jvm, tmp_path, monkeypatch)
        with monkeypatch.context() as patched:
            patched.setenv("CATALOG_CREDENTIAL", f"{KEY}:expired")
            for args in (["plan"], ["apply", "--auto-approve"], ["rollback", "--auto-approve"]):
                assert main(args) == ExitCode.ERROR
                told = capsys.readouterr()
                assert told.err.count("error: ") == 1, told
                assert "Traceback" not in told.err
                assert "bug in icemigrate" not in told.err
                assert SECRET not in told.err + told.out
        breaks_and_goes_on(lake, cable, capsys, monkeypatch)


def test_an_s3_that_goes_away_midway(
    store: SeaweedFS,
    crash_jvm: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Cable(port_of(store.s3)) as cable:
        lake = lake_on(s3_kind(store, cable.port, tmp_path), crash_jvm, tmp_path, monkeypatch)
        breaks_and_goes_on(lake, cable, capsys, monkeypatch)


def s3_kind(store: SeaweedFS, port: int, folder: Path) -> Kind:
    """A SQL catalog with its files on S3.

    :param port: where S3 is reached.
    """
    from pyarrow.fs import S3FileSystem  # type: ignore[import-untyped]

    endpoint = f"http://127.0.0.1:{port}"
    S3FileSystem(
        access_key=store.access_key,
        secret_key=store.secret_key,
        endpoint_override=endpoint,
        region="us-east-1",
        allow_bucket_creation=True,
    ).create_dir("files")
    return Kind(
        "s3",
        f"""\
        catalog: {{name: lake_s3, type: sqlite, uri: {folder}/catalog.db, warehouse: "s3://files/wh"}}
        storage:
          endpoint: {endpoint}
          path_style: true
          region: us-east-1
          access_key: "${{S3_ACCESS_KEY}}"
          secret_key: "${{S3_SECRET_KEY}}"
        """,
        {"S3_ACCESS_KEY": store.access_key, "S3_SECRET_KEY": store.secret_key},
    )


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])
