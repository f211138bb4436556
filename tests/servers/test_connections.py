"""What an apply opens in a Spark that goes on running is closed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icemigrate
from tests.servers.lake import postgres_kind
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = "tables: [{name: market_data.t, columns: [{name: id, type: long}, {name: old, type: int}]}]"
CHANGE = "{allow: [destructive], tables: [{name: market_data.t, drop_columns: [old]}]}"


def connections(server: Postgres) -> int:
    """How many there are, beside the one that asks."""
    from sqlalchemy import create_engine, text

    url = f"postgresql+psycopg2://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.database}"
    asking = create_engine(url)
    with asking.connect() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND pid <> pg_backend_pid()"
        found = int(connection.execute(text(query), {"name": server.database}).scalar_one())
    asking.dispose()
    return found


def test_no_connection_stays_open(
    postgres_server: Postgres, spark_jvm: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = postgres_kind(postgres_server, tmp_path)
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    kind.project(tmp_path, "connected", "connected_meta.history")
    (tmp_path / "migrations").mkdir()
    project, before = icemigrate.Project(tmp_path), connections(postgres_server)
    for version, text in (("0001", MAKE), ("0002", CHANGE)):
        (tmp_path / "migrations" / f"{version}_m.yaml").write_text(text, encoding="utf-8")
        # The session that is given knows no such catalog, so another one is opened beside it.
        assert project.apply(spark=spark_jvm).applied == (version,)
    assert project.rollback(spark=spark_jvm).rolled_back == ("0002",)
    assert connections(postgres_server) == before
