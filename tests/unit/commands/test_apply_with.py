"""Commands that write without Spark, where the environment says `apply_with: metadata`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from icemigrate.commands.abandoned_versions import abandon_versions
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.recreated_tables import adopt_recreated
from icemigrate.commands.repair import repair
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.commands.status import status
from icemigrate.commands.unlock import unlock
from icemigrate.errors import EngineError
from icemigrate.execution.engine_choice import LazyEngine, history_engine
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.project_journal import open_journal
from icemigrate.history.journal import LockedJournal
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.project import Project, open_project

MAKE = "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n"
ADD = "tables: [{name: db.t, columns: [{name: b, type: int}]}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two applied migrations; Spark does not start."""

    def start_spark(*_: object) -> None:
        raise AssertionError("Spark starts")

    for module in ("execution.spark_start", "commands.unlock"):
        monkeypatch.setattr(f"icemigrate.{module}.engine_of", start_spark)
    (tmp_path / "migrations").mkdir()
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments: {local: {catalog: {type: sqlite}, apply_with: metadata}}\n",
        encoding="utf-8",
    )
    write(tmp_path, "0001_make", MAKE)
    write(tmp_path, "0002_add", ADD)
    made = open_project(tmp_path)
    apply(made, plan(made).plan)
    return made


def write(folder: Path, name: str, text: str) -> None:
    (folder / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")


def states(project: Project) -> dict[str, str]:
    return {migration.version: migration.state for migration in status(project).migrations}


@contextmanager
def locked(project: Project) -> Iterator[LockedJournal]:
    """A block in which another run holds the lock."""
    with open_environment(project, None) as session:
        journal = open_journal(session, LazyEngine(session, None, lambda: None)())
        with journal.hold_lock("apply", "ana", "ci") as held:
            yield held


def test_a_migration_is_undone_and_given_up(project: Project) -> None:
    rollback(project, plan_rollback(project).plan)
    assert states(project) == {"0001": "applied", "0002": "held"}
    abandon_versions(project, versions=("0002",))
    assert states(project)["0002"] == "abandoned"


def test_an_edited_file_is_accepted(project: Project) -> None:
    write(project.root, "0002_add", ADD.replace("type: int}", "type: int, required: false}"))
    assert [one.version for one in repair(project).repaired] == ["0002"]


def test_a_recreated_table_is_recorded(project: Project) -> None:
    with open_environment(project, None) as session:
        engine, name = LazyEngine(session, None, lambda: None)(), TableName.parse("db.t")
        table = engine.table(name)
        assert table is not None
        engine.store.drop(name)
        engine.create(table)
    assert [str(one.table) for one in adopt_recreated(project, tables=("db.t",)).adopted] == ["db.t"]


def test_the_lock_of_a_run_is_released(project: Project) -> None:
    with locked(project) as held:
        held.lock.let_expire()
        assert unlock(project).taken
    assert status(project).lock is None


class RunningSpark:
    """A session of the user's, and the engine on it; it notes which tables leave its caches."""

    def __init__(self) -> None:
        self.refreshed: list[str] = []
        self.session = self.conf = self.java = self
        self.guard = None

    def get(self, key: str, default: str | None) -> str:
        return "org.apache.iceberg.spark.SparkCatalog"

    def refresh(self, name: TableName) -> None:
        self.refreshed.append(str(name))

    forget = refresh


def test_a_running_session_sees_the_tables_and_the_history_as_they_are(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = RunningSpark()
    monkeypatch.setattr("icemigrate.execution.engine_choice.engine_of", lambda *_: spark)
    write(project.root, "0003_rename", "tables: [{name: db.u, renamed_from: db.t}]\n")
    apply(project, plan(project).plan, spark=spark)
    assert {"db.t", "db.u", "icemigrate.history"} == set(spark.refreshed)
    spark.refreshed.clear()
    rollback(project, plan_rollback(project, spark=spark).plan, spark=spark)
    assert {"db.u", "icemigrate.history"} <= set(spark.refreshed)


@pytest.mark.parametrize("apply_with", ["spark", None])
def test_a_setting_of_spark_holds_for_undos_and_the_history(project: Project, apply_with: str | None) -> None:
    line = "" if apply_with is None else f", apply_with: {apply_with}"
    (project.root / "icemigrate.yaml").write_text(
        f"project: market\nenvironments: {{local: {{catalog: {{type: sqlite}}{line}}}}}\n", encoding="utf-8"
    )
    changed = open_project(project.root)
    if apply_with is None:
        rollback(changed, plan_rollback(changed).plan)
        assert states(changed)["0002"] == "held"
        return
    with pytest.raises(AssertionError, match="Spark starts"):
        rollback(changed, plan_rollback(changed).plan)
    with locked(project), pytest.raises(AssertionError, match="Spark starts"):
        unlock(changed)


def test_spark_writes_the_history_where_python_cannot(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EngineError("the credentials are Spark's")

    (project.root / "icemigrate.yaml").write_text(
        "project: market\nenvironments: {local: {catalog: {type: sqlite}}}\n", encoding="utf-8"
    )
    spark = object()
    with open_environment(open_project(project.root), None) as session:
        assert history_engine(session, None, lambda: spark) is not spark
        # As for files that are not on this machine.
        monkeypatch.setattr("icemigrate.execution.engine_choice.local_path", lambda _: None)
        assert history_engine(session, None, lambda: spark) is not spark
        monkeypatch.setattr(TableFiles, "write", refuse)
        assert history_engine(session, None, lambda: spark) is spark
    assert not list(project.root.rglob("*.probe"))
