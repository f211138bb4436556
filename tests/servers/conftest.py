"""Real servers for the tests, each started when the first test needs it, all gone when the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.execution.spark_start import spark_settings
from icemigrate.project import choose_environment
from icemigrate.spark.session import start_spark
from tests.servers.hive_metastore import HiveMetastore, hive_metastore
from tests.servers.lake import KINDS, Kind, Lake, hive_kind, postgres_kind, rest_kind, sqlite_kind
from tests.servers.postgres import Postgres, postgres
from tests.servers.seaweedfs import SeaweedFS, seaweedfs
from tests.servers.trino import Trino, trino
from tests.support.shared_cases import FOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A test looks for these in everything that is printed, so they stand nowhere else.
PASSWORD = "pass-kq7wzr"
ACCESS_KEY = "access-vd3mxt"
SECRET_KEY = "secret-jh8ynb"

_numbers = count(1)

# Some cases are kept beside the project, see `tests/support/shared_cases.py`.
collect_ignore_glob = [] if FOLDER.is_dir() else ["test_shared_*.py"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres(PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs_server() -> Iterator[SeaweedFS]:
    with seaweedfs(ACCESS_KEY, SECRET_KEY) as server:
        yield server


@pytest.fixture(scope="session")
def hive_server() -> Iterator[HiveMetastore]:
    with hive_metastore() as server:
        yield server


@pytest.fixture(scope="session")
def trino_server() -> Iterator[Trino]:
    """One for all tests, whose start takes half a minute; each names its own catalog."""
    with trino() as server:
        yield server


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    """A kind of catalog, with its server running."""
    folder = tmp_path_factory.mktemp(str(request.param))
    if request.param == "postgres":
        return postgres_kind(request.getfixturevalue("postgres_server"), folder)
    if request.param == "hive":
        return hive_kind(request.getfixturevalue("hive_server"), folder)
    if request.param == "rest":
        return rest_kind(request.getfixturevalue("seaweedfs_server"))
    return sqlite_kind(folder)


@pytest.fixture(scope="session")
def session(kind: Kind, spark_jvm: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session on the kind's catalog in the one JVM of the run, as ``apply`` would open it."""
    assert spark_jvm is not None
    project = kind.project(tmp_path_factory.mktemp("session"), "ns", history="ns.history")
    return start_spark(spark_settings(choose_environment(project, None, kind.variables)))


@pytest.fixture
def lake(kind: Kind, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A project of its own on the kind's catalog, under namespaces that no other test uses."""
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    return Lake(kind, session, tmp_path, f"n{next(_numbers)}")
