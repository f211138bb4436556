"""One catalog for the whole suite, in the one Spark of the run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.engine.session import start
from icemigrate.engine.settings import SparkSettings, sqlite_catalog_conf
from tests.shared_cases import FOLDER
from tests.spark import random_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = count(1)

# Some cases are kept beside the project, see `tests/shared_cases.py`.
collect_ignore_glob = [] if FOLDER.is_dir() else ["test_shared_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many random examples there were: a number that the tests' names do not show."""
    if lines := random_runs.summary():
        terminalreporter.section("random examples on Spark")
        for line in lines:
            terminalreporter.line(line)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Where the shared catalog keeps what it has, for tests that read it without Spark.

    :param catalog: its name in Spark, which is also ``catalog_name`` in the rows of ``iceberg_tables``.
    :param database: the SQLite file.
    :param path: the folder of the tables' files.
    """

    catalog: str
    database: Path
    path: Path

    @property
    def settings(self) -> SparkSettings:
        """What a session on this catalog is started with."""
        return SparkSettings(self.catalog, sqlite_catalog_conf(self.database, self.path))


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A catalog of its own for this run of the suite."""
    root = tmp_path_factory.mktemp("lake")
    return Warehouse(catalog="local", database=root / "catalog.db", path=root / "warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Warehouse, spark_jvm: SparkSession) -> SparkSession:
    """The suite's session on :func:`warehouse`; ``start`` gives further ones in the same JVM."""
    assert spark_jvm is not None
    return start(warehouse.settings)


@pytest.fixture
def fresh_name() -> str:
    """A name for a namespace that no other test uses; nothing is made."""
    return f"ns{next(_numbers)}"


@pytest.fixture
def namespace(spark: SparkSession, warehouse: Warehouse, fresh_name: str) -> str:
    """The name, without the catalog, of a new and empty namespace."""
    spark.sql(f"CREATE NAMESPACE `{warehouse.catalog}`.`{fresh_name}`")
    return fresh_name
