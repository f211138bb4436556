"""One catalog for the whole suite, in the one Spark of the run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.catalog.metadata_files import read_local
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.spark import file_evidence
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.partition_entries import lossy_partition_fields
from icemigrate.spark.row_counts import RunQuery
from icemigrate.spark.session import start_spark
from icemigrate.spark.session_settings import SparkSettings, sqlite_catalog_conf
from icemigrate.spark_sql.identifiers import table_sql
from tests.support import random_spark_runs
from tests.support.shared_cases import FOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = count(1)

# Some cases are kept beside the project, see `tests/support/shared_cases.py`.
collect_ignore_glob = [] if FOLDER.is_dir() else ["test_shared_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many random examples there were: a number that the tests' names do not show."""
    if lines := random_spark_runs.summary():
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
    return start_spark(warehouse.settings)


ABOUT_EVIDENCE = {
    "test_deletes.py",
    "test_last_copies.py",
    "test_lost_partition_values.py",
    "test_partition_evolution.py",
    "test_refill.py",
    "test_rollback.py",
}
"""The files whose tests compare both readers of manifests; in all of them it would take minutes."""


@pytest.fixture(autouse=True)
def compare_evidence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask Python's reader of manifests whatever Java's is asked; both must give the same evidence."""
    if request.path.name not in ABOUT_EVIDENCE:
        return
    by_java = file_evidence.gather_evidence

    def gather(java: JavaCatalog, ask: RunQuery, name: TableName, questions: EvidenceQuery) -> Evidence:
        before = java.read(java.table(name).operations().current())
        found = by_java(java, ask, name, questions)
        if java.read(java.table(name).operations().current()) == before:
            rows = table_sql(java.name, name)
            same = file_evidence.gather_without_jvm(before, read_local, ask, rows, questions)
            assert same == found or (same is None and lossy_partition_fields(before, questions.columns))
        return found

    monkeypatch.setattr(file_evidence, "gather_evidence", gather)


@pytest.fixture
def fresh_name() -> str:
    """A name for a namespace that no other test uses; nothing is made."""
    return f"ns{next(_numbers)}"


@pytest.fixture
def namespace(spark: SparkSession, warehouse: Warehouse, fresh_name: str) -> str:
    """The name, without the catalog, of a new and empty namespace."""
    spark.sql(f"CREATE NAMESPACE `{warehouse.catalog}`.`{fresh_name}`")
    return fresh_name
