"""A migration that fails among several real tables, by either way of publishing; a lock taken away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.app.applying import apply
from icemigrate.app.locking import journal, unlock
from icemigrate.app.opening import open_project
from icemigrate.app.planning import plan
from icemigrate.app.reporting import status
from icemigrate.app.spark import open_engine
from icemigrate.app.world import opened
from icemigrate.errors import EngineError, LockHeld
from icemigrate.events import Event, StatementStarted, UndoFinished
from icemigrate.executor import Undone
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.project import Project
from icemigrate.results import LockStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = [TableName(("shop",), name) for name in "abc"]


@pytest.fixture(params=["atomic", "direct"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    (tmp_path / "icemigrate.yaml").write_text(
        "project: shop\nenvironments:\n"
        f"  here: {{catalog: {{type: sqlite, name: shop_{request.param}}}, publish: {request.param}}}\n",
        encoding="utf-8",
    )
    write(tmp_path, "0001_make", "columns: [{name: id, type: int}, {name: old, type: string}]")
    return open_project(tmp_path)


def write(folder: Path, name: str, entry: str) -> None:
    tables = "".join(f"  - {{name: {table}, {entry}}}\n" for table in TABLES)
    (folder / "migrations").mkdir(exist_ok=True)
    path = folder / "migrations" / f"{name}.yaml"
    path.write_text(f"allow: [destructive]\ntables:\n{tables}", encoding="utf-8")


def run(project: Project, spark: SparkSession, listen: Callable[[Event], None] = lambda e: None) -> None:
    apply(project, plan(project).plan, spark=spark, on_event=listen, lock_timeout_s=0)


def tables(project: Project) -> dict[TableName, Table]:
    with opened(project, None) as world:
        return {n: t for n, t in world.catalog.load(TABLES).items() if t is not None}


def states(project: Project) -> list[str]:
    return [m.state for m in status(project).migrations]


def test_what_was_done_is_undone_on_every_table(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    before = tables(project)
    write(
        tmp_path, "0002_change", "drop_columns: [old], columns: [{name: id, type: long}], properties: {k: v}"
    )
    seen: list[Event] = []

    def fail(event: Event) -> None:
        seen.append(event)
        if isinstance(event, StatementStarted) and event.table == TABLES[2] and "TBLPROPERTIES" in event.text:
            raise EngineError("no space left on device")

    with pytest.raises(Undone, match="no space left on device") as failed:
        run(project, spark, fail)
    assert any(isinstance(event, UndoFinished) for event in seen)
    assert failed.value.undid
    after = tables(project)
    for name in TABLES:
        assert after[name].schema.fields == before[name].schema.fields, "under the same ids"
        assert "k" not in after[name].properties
    shown = status(project)
    assert shown.lock is None
    assert states(project) == ["applied", "pending"]
    run(project, spark)
    assert states(project) == ["applied", "applied"]
    assert all(t.schema.find(("old",)) is None for t in tables(project).values())


def test_the_lock_is_shown_and_taken_away(spark: SparkSession, project: Project) -> None:
    run(project, spark)
    assert not unlock(project, spark=spark).taken
    with opened(project, None) as world:
        engine = open_engine(world.environment, spark)
        with journal(world, engine, 0).held("apply", "ana", "ci") as held:
            held.lock.write("step", step="0002: ALTER TABLE")
            lock = status(project).lock
            assert lock is not None
            assert (lock.user, lock.host, lock.step) == ("ana", "ci", "0002: ALTER TABLE")
            (note,) = plan(project).diagnostics
            assert (note.code, note.severity.value) == ("lock-held", "note")
            asked: list[LockStatus] = []

            def refuse(status: LockStatus) -> bool:
                asked.append(status)
                return False

            assert not unlock(project, approve=refuse, spark=spark).taken
            assert asked == [lock]
            result = unlock(project, spark=spark)
            assert result.taken
            with pytest.raises(LockHeld, match="taken away"):
                held.lock.write("step")
        rows = engine.session.sql(
            f"SELECT outcome, message FROM {engine.catalog_name}.{world.history_name} WHERE action = 'unlock'"
        ).collect()
    assert [row[0] for row in rows] == ["unlocked"]
    assert "taken away from ana on ci" in rows[0][1]
    assert status(project).lock is None
