"""Migrations through a real Spark Connect server, which shares a catalog with the commits in Python."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import icemigrate
from icemigrate.commands import maintain as maintain_command
from icemigrate.commands.maintain import maintain, plan_maintenance
from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.events import Event, StatementStarted
from icemigrate.execution.connect_start import connect_settings
from icemigrate.execution.environment_session import open_environment
from icemigrate.maintenance.context import NO_JVM
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import choose_environment
from icemigrate.spark.connect_session import open_connect_session
from tests.servers.lake import Kind, postgres_kind, rest_kind
from tests.servers.postgres import Postgres
from tests.servers.seaweedfs import SeaweedFS
from tests.servers.spark_connect import ConnectServer, spark_connect

TOKEN = "connect-token-wq4zkt"
MAKE = """
description: Make trades
tables:
  - name: market_data.trades
    identifier: [id]
    columns:
      - {name: id, type: long, required: true}
      - {name: venue, type: string}
      - {name: volume, type: long}
      - {name: at, type: timestamptz}
    retention: {rows: {column: at, max_age: 3650d}, snapshots: {max_age: 1d, keep_at_least: 1}}
"""
FILL = """
description: Fill the note, and rename the volume
because: the venue is known
tables:
  - name: market_data.trades
    columns: [{name: note, type: string}]
    renames: {volume: quantity}
    backfill: [{set: {note: "concat(venue, ' ', quantity)"}}]
    checks: [{name: every note is filled, after: "select id from {table} where note is null"}]
"""
DROP = """
description: Drop the venue
allow: [destructive]
tables: [{name: market_data.trades, drop_columns: [venue]}]
"""


class _Servers:
    """A Connect server with a REST catalog on S3 and a Postgres catalog; it can be started again."""

    def __init__(self, kinds: dict[str, Kind], folder: Path) -> None:
        self.kinds, self.folder = kinds, folder
        self._stack = ExitStack()
        self._environments = [
            choose_environment(kind.project(folder, "ns", "ns.history"), None, dict(kind.variables))
            for kind in kinds.values()
        ]
        self.server: ConnectServer = self._started(None)

    def _started(self, port: int | None) -> ConnectServer:
        return self._stack.enter_context(spark_connect(self._environments, self.folder, TOKEN, port))

    def restart(self) -> None:
        """Start a killed server again, on its port."""
        self._stack.close()
        self.server = self._started(self.server.port)

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def servers(
    postgres_server: Postgres, seaweedfs_server: SeaweedFS, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[_Servers]:
    folder = tmp_path_factory.mktemp("connect")
    kinds = {"postgres": postgres_kind(postgres_server, folder), "rest": rest_kind(seaweedfs_server)}
    made = _Servers(kinds, folder)
    yield made
    made.close()


class ConnectLake:
    """A project whose environment has the server, without a JVM in this process."""

    def __init__(
        self, servers: _Servers, kind: str, folder: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.namespace, self.folder = namespace, folder
        spark = f'spark: {{remote: "{servers.server.remote}", token: "${{SPARK_TOKEN}}"}}\n'
        one = servers.kinds[kind]
        indent = one.environment[: len(one.environment) - len(one.environment.lstrip())]
        self.kind = replace(one, environment=f"{one.environment.rstrip()}\n{indent}{spark}")
        for name, value in {**one.variables, "SPARK_TOKEN": TOKEN}.items():
            monkeypatch.setenv(name, value)
        self.project = self.kind.project(folder, namespace, f"{namespace}_meta.history")
        self.api = icemigrate.Project(folder)
        self.table = f"{self.kind.catalog}.{namespace}.trades"

    def write(self, name: str, text: str) -> None:
        path = self.folder / "migrations" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def insert(self, session: Any) -> None:
        session.sql(
            f"INSERT INTO {self.table} VALUES (1, 'X', 10, TIMESTAMP '2000-01-01 00:00:00Z'), "
            "(2, 'Y', 20, TIMESTAMP '2026-01-01 00:00:00Z')"
        )


def rows(session: Any, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.sql(text).collect()]


def test_a_project_lives_on_a_connect_server(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ConnectLake(servers, "rest", tmp_path, "c_life", monkeypatch)
    lake.write("0001_make", MAKE)
    (note,) = [d.message for d in lake.api.plan().diagnostics if d.code == "applied-with"]
    assert note == "Python commits 0001 without Spark"
    lake.api.apply()
    session = lake.api.spark()
    lake.insert(session)
    session.conf.set("spark.wap.branch", "elsewhere")

    lake.write("0002_fill", FILL)
    (note,) = [d.message for d in lake.api.plan().diagnostics if d.code == "applied-with"]
    assert note.startswith("the Spark Connect server runs statements of 0002: `market_data.trades`: ")
    lake.api.apply(spark=session)
    # The session of a caller has its own settings again.
    assert session.conf.get("spark.wap.branch") == "elsewhere"
    session.conf.unset("spark.wap.branch")
    select = f"SELECT id, quantity, note FROM {lake.table} ORDER BY id"
    assert rows(session, select) == [(1, 10, "X 10"), (2, 20, "Y 20")]

    lake.write("0003_drop", DROP)
    lake.api.apply()
    session.sql(f"REFRESH TABLE {lake.table}")
    session.sql(f"UPDATE {lake.table} SET note = 'rewritten'")
    lake.api.rollback(options=UndoOptions(refill=True))
    session.sql(f"REFRESH TABLE {lake.table}")
    assert rows(session, f"SELECT id, venue FROM {lake.table} ORDER BY id") == [(1, "X"), (2, "Y")]

    assert [(m.version, m.state) for m in lake.api.status().migrations][:2] == [
        ("0001", "applied"),
        ("0002", "applied"),
    ]
    assert lake.api.drift().tables == ()
    session.sql(f"ALTER TABLE {lake.table} ADD COLUMN theirs int")
    assert lake.api.drift().tables != ()

    planned = plan_maintenance(lake.project, parts=("rows", "orphans"))
    assert {kept.reason for kept in planned.result.kept} == {NO_JVM}
    done = maintain(lake.project, planned)
    assert [act.outcome for act in done.acts] == ["1 row deleted"]
    session.sql(f"REFRESH TABLE {lake.table}")
    assert rows(session, f"SELECT id FROM {lake.table}") == [(2,)]

    monkeypatch.setattr(maintain_command, "datetime", _NextYear)
    expiring = plan_maintenance(lake.project, parts=("snapshots",)).result
    assert (expiring.acts, {kept.reason for kept in expiring.kept if kept.is_refused}) == ((), {NO_JVM})
    session.stop()


class _NextYear(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(days=365)


def test_what_a_server_cannot_do_is_refused_by_the_plan(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ConnectLake(servers, "rest", tmp_path, "c_refused", monkeypatch)
    lake.write("0001_make", MAKE)
    project = replace(lake.project, apply_with="spark")
    from icemigrate.commands.plan import plan

    (refused,) = [d for d in plan(project).diagnostics if d.code == "needs-jvm"]
    assert "Spark Connect has no way" in refused.message
    with pytest.raises(IcemigrateError, match="Spark Connect has no way"):
        icemigrate.Project(tmp_path).apply(plan(project))


def test_servers_that_do_not_fit_are_refused_with_one_error(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ConnectLake(servers, "postgres", tmp_path, "c_wrong", monkeypatch)
    settings = connect_settings(choose_environment(lake.project, None, _environ(lake)))
    with pytest.raises(EngineError, match="refuses this client: Invalid authentication token") as failed:
        open_connect_session(replace(settings, token="another"))
    assert TOKEN not in str(failed.value)
    with pytest.raises(EngineError, match="does not answer: "):
        open_connect_session(replace(settings, remote="sc://localhost:1"), seconds=5)
    with pytest.raises(EngineError, match="has no catalog `other`"):
        open_connect_session(replace(settings, catalog_name="other"))

    # The catalog of the project file is another one than the server's of the same name.
    lake.write("0001_make", MAKE)
    lake.write("0002_fill", FILL)
    text = (tmp_path / "icemigrate.yaml").read_text(encoding="utf-8")
    start, end = text.index("    catalog:"), text.index("    spark:")
    catalog = f"    catalog: {{name: lake_postgres, type: sqlite, uri: {tmp_path}/other.db}}\n"
    (tmp_path / "icemigrate.yaml").write_text(text[:start] + catalog + text[end:], encoding="utf-8")
    with pytest.raises(EngineError, match="is another one than that of the environment: it has no table"):
        icemigrate.Project(tmp_path).apply()


def _environ(lake: ConnectLake) -> dict[str, str]:
    return {**lake.kind.variables, "SPARK_TOKEN": TOKEN}


def test_a_lost_server_is_one_error_and_the_next_apply_resumes(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ConnectLake(servers, "postgres", tmp_path, "c_lost", monkeypatch)
    lake.write("0001_make", MAKE)
    lake.api.apply()
    session = lake.api.spark()
    lake.insert(session)
    lake.write("0002_fill", FILL)
    kills: list[threading.Timer] = []

    def kill(event: Event) -> None:
        if isinstance(event, StatementStarted) and event.text.startswith("UPDATE") and not kills:
            kills.append(threading.Timer(0.3, servers.server.kill))
            kills[0].start()

    with pytest.raises(IcemigrateError, match=r"Spark Connect server localhost:\d+ does not answer"):
        lake.api.apply(on_event=kill)
    assert kills
    servers.restart()
    lake.api.apply()
    session = lake.api.spark()
    select = f"SELECT id, quantity, note FROM {lake.table} ORDER BY id"
    assert rows(session, select) == [(1, 10, "X 10"), (2, 20, "Y 20")]
    with open_environment(lake.project, None) as world:
        assert world.history().intents == ()
    session.stop()
