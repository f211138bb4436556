"""``apply`` on real tables: by the command line, and by the Python API with a session that runs already."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import icemigrate
from icemigrate.cli import main
from icemigrate.errors import ExitCode, StalePlan
from icemigrate.events import Event, MigrationRecorded
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.table_store import StoredTable, TableCommit
from icemigrate.spark.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCE = Path(__file__).parents[2] / "migrations"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Path:
    """The reference project in a folder (and so a catalog) of its own; ``apply`` finds Spark running."""
    shutil.copytree(REFERENCE, tmp_path / "migrations")
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments:\n  here:\n    catalog: {type: sqlite, name: command_lake}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_reference_project_is_applied_step_by_step(
    project: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--to", "0001", "--out", "plan.json"]) == ExitCode.OK
    assert main(["apply", "plan.json", "--auto-approve"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "0001." in out.splitlines()[-1]
    assert "[1/" in err
    # The plan was done; doing it again is refused.
    assert main(["apply", "plan.json", "--auto-approve"]) == ExitCode.CONFLICT
    assert main(["apply", "--to", "0003", "--auto-approve"]) == ExitCode.OK
    assert main(["plan", "--detailed-exitcode"]) == ExitCode.CHANGES

    # The rest through Python, in the session that the suite has running.
    seen: list[Event] = []
    market = icemigrate.Project(project)
    planned = market.plan()
    applied = market.apply(planned, spark=spark, on_event=seen.append)
    versions = tuple(m.version for m in planned.plan.migrations)
    assert applied.applied == versions
    assert tuple(e.version for e in seen if isinstance(e, MigrationRecorded)) == versions
    assert market.plan().is_empty
    assert main(["plan", "--detailed-exitcode"]) == ExitCode.OK
    with pytest.raises(StalePlan):
        market.apply(planned.plan)

    status = market.status()
    assert {m.state for m in status.migrations} == {"applied"}
    assert [t.table for t in status.tables] == ["market_data.quotes", "market_data.trades"]
    assert all(t.exists and not t.pending for t in status.tables)
    history = market.history()
    assert [e.version for e in history.entries] == [m.version for m in status.migrations]
    assert all(e.by and e.duration_ms >= 0 for e in history.entries)


def test_statements_run_on_copies_and_python_commits_all_tables_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments:\n  here: {catalog: {type: sqlite, name: together}}\n",
        encoding="utf-8",
    )
    (tmp_path / "migrations").mkdir()
    names, committed = ("db.a", "db.b"), list[set[str]]()
    commit, sql = SqlTableStore.commit, SparkEngine.sql
    ran: list[str] = []

    def count_tables(
        store: SqlTableStore, commits: Sequence[TableCommit], *arguments: Any
    ) -> tuple[StoredTable, ...]:
        committed.append({str(one.name) for one in commits})
        return commit(store, commits, *arguments)

    def note_statement(engine: SparkEngine, text: str) -> None:
        ran.append(f"{engine.catalog_name.rstrip('0123456789')}: {text.split('(')[0].strip()}")
        sql(engine, text)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SqlTableStore, "commit", count_tables)
    monkeypatch.setattr(SparkEngine, "sql", note_statement)
    for version, column in enumerate(("id", "price"), 1):
        entries = "".join(
            f"  - {{name: {name}, columns: [{{name: {column}, type: int}}]}}\n" for name in names
        )
        (tmp_path / "migrations" / f"000{version}_step.yaml").write_text(f"tables:\n{entries}")
        committed.clear()
        ran.clear()
        assert main(["apply", "--auto-approve"]) == ExitCode.OK
        if version == 1:
            assert "together: CREATE TABLE together.db.a" in ran
    altered = [one for one in ran if "ALTER TABLE" in one]
    assert len(altered) == len(names)
    assert all(one.startswith("icemigrate_scratch_: ALTER TABLE icemigrate_scratch_") for one in altered)
    assert set(names) in committed
    assert not any(name in tables for tables in committed for name in names if tables != set(names))
