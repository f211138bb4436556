"""A migration that fails among several real tables, by either way of publishing; a lock taken away."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.commands.status import status
from icemigrate.commands.unlock import unlock
from icemigrate.errors import EngineError, ExitCode, LockHeld
from icemigrate.events import Event, NoteAdded, StatementStarted, TableVerified, UndoFinished
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Interrupted, Undone
from icemigrate.execution.project_journal import open_journal
from icemigrate.execution.spark_start import open_engine
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import Project, open_project
from icemigrate.results.status_results import LockStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.spark_engine import SparkEngine

TABLES = [TableName(("shop",), name) for name in "abcde"]
THIRD = TABLES[2]
CHANGE = "drop_columns: [old], columns: [{name: id, type: long}], properties: {k: v}"
# Iceberg reads this number when it commits, and takes any text for it before.
FAILING = CHANGE.replace("{k: v}", "{k: v, write.metadata.previous-versions-max: many}")


@pytest.fixture(params=["atomic", "direct"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    (tmp_path / "icemigrate.yaml").write_text(
        "project: shop\nenvironments:\n"
        f"  here: {{catalog: {{type: sqlite, name: shop_{request.param}}}, publish: {request.param}}}\n",
        encoding="utf-8",
    )
    write(tmp_path, "0001_make", "columns: [{name: id, type: int}, {name: old, type: string}]")
    return open_project(tmp_path)


def write(folder: Path, name: str, entry: str, third: str | None = None) -> None:
    """A migration of all tables.

    :param third: what it says of the third one, where that is something else.
    """
    entries = [third if third is not None and table == THIRD else entry for table in TABLES]
    tables = "".join(f"  - {{name: {t}, {e}}}\n" for t, e in zip(TABLES, entries, strict=True))
    (folder / "migrations").mkdir(exist_ok=True)
    path = folder / "migrations" / f"{name}.yaml"
    path.write_text(f"allow: [destructive]\ntables:\n{tables}", encoding="utf-8")


def run(project: Project, spark: SparkSession, listen: Callable[[Event], None] = lambda e: None) -> None:
    apply(project, plan(project).plan, spark=spark, on_event=listen, lock_timeout_s=0)


def tables(project: Project) -> dict[TableName, Table]:
    with open_environment(project, None) as world:
        return {n: t for n, t in world.catalog.load(TABLES).items() if t is not None}


def states(project: Project) -> list[str]:
    return [m.state for m in status(project).migrations]


def test_what_was_done_is_undone_on_every_table(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    before = tables(project)
    write(tmp_path, "0002_change", CHANGE)
    seen: list[Event] = []

    def fail(event: Event) -> None:
        seen.append(event)
        if isinstance(event, StatementStarted) and event.table == THIRD and "TBLPROPERTIES" in event.text:
            raise EngineError("no space left on device")

    with pytest.raises(Undone, match="no space left on device") as failed:
        run(project, spark, fail)
    assert any(isinstance(event, UndoFinished) for event in seen)
    assert failed.value.undo_statements
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


def when_verified(table: TableName, act: Callable[[], object]) -> Callable[[Event], None]:
    """Does something once a table is done, before the next one is read."""
    is_done = False

    def listen(event: Event) -> None:
        nonlocal is_done
        if isinstance(event, TableVerified) and event.table == table and not is_done:
            is_done = True
            act()

    return listen


def engine_of(project: Project, spark: SparkSession) -> SparkEngine:
    """Somebody else's, in a session of his own."""
    with open_environment(project, None) as world:
        return open_engine(world.environment, spark)


def parts(project: Project, but: TableName | None = None) -> list[tuple[Any, ...]]:
    """What a migration changes, of all tables but one."""
    found = tables(project)
    return [(n, t.schema.fields, dict(t.properties)) for n, t in sorted(found.items()) if n != but]


def is_undone_on_the_first_two(failed: Undone) -> None:
    assert len(failed.undo_statements) == 2, failed.undo_statements
    assert "was undone: no table was changed by it, and it is pending" in failed.message


def test_what_spark_refuses_in_the_third_of_five_tables_is_undone_in_all(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    before = parts(project)
    write(tmp_path, "0002_change", CHANGE, third=FAILING)
    with pytest.raises(Undone, match=r'^For input string: "many"') as failed:
        run(project, spark)
    assert failed.value.exit_code == ExitCode.ERROR
    assert "c SET TBLPROPERTIES" in failed.value.failed
    assert [text for text in failed.value.remaining if "shop.a" in text or "shop.b" in text] == []
    assert parts(project) == before
    assert status(project).lock is None
    assert states(project) == ["applied", "pending"]
    write(tmp_path, "0002_change", CHANGE)
    run(project, spark)
    assert states(project) == ["applied", "applied"]
    assert {dict(t.properties)["k"] for t in tables(project).values()} == {"v"}


def wide_row(engine: SparkEngine) -> None:
    """Somebody writes what only the new type of the first table holds: its old one cannot come back."""
    engine.sql(f"INSERT INTO {engine.catalog_name}.shop.a VALUES (3000000000)")


def is_interrupted(project: Project, failed: Interrupted) -> None:
    (why,) = failed.why
    assert "`id` cannot be `int` again: 1 data file was added since" in why
    assert "`icemigrate apply` continues" in (failed.hint or "")
    assert states(project) == ["applied", "interrupted"]
    assert status(project).lock is None


def test_where_rows_came_meanwhile_it_is_interrupted_and_apply_goes_on(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    engine = engine_of(project, spark)
    folder = metadata_folder(engine)
    away = folder.with_name("away")
    write(tmp_path, "0002_change", CHANGE)

    def act() -> None:
        wide_row(engine)
        folder.rename(away)

    with pytest.raises(Interrupted, match=r"reading table `shop\.c`") as failed:
        run(project, spark, when_verified(TABLES[1], act))
    away.rename(folder)
    is_interrupted(project, failed.value)
    run(project, spark)
    assert states(project) == ["applied", "applied"]
    assert all(t.schema.find(("old",)) is None for t in tables(project).values())
    assert engine.session.table(f"{engine.catalog_name}.shop.a").collect() == [(3000000000,)]


def test_where_rows_came_meanwhile_it_is_interrupted_and_rollback_undoes_the_rest(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    engine = engine_of(project, spark)
    write(tmp_path, "0002_change", CHANGE, third=FAILING)
    with pytest.raises(Interrupted, match="many") as failed:
        run(project, spark, when_verified(TABLES[0], lambda: wide_row(engine)))
    is_interrupted(project, failed.value)
    options = UndoOptions(partial=True)
    rollback(project, plan_rollback(project, options=options, spark=spark).plan, options=options, spark=spark)
    assert states(project) == ["applied", "held"]
    assert all(t.schema.find(("old",)) is not None for t in tables(project).values())
    kept = [format_type(t.schema.fields[0].type) for _, t in sorted(tables(project).items())]
    assert kept == ["long", "int", "int", "int", "int"]
    assert engine.session.table(f"{engine.catalog_name}.shop.a").collect() == [(3000000000, None)]


def metadata_folder(engine: SparkEngine) -> Path:
    """Where the third table's metadata files are."""
    location = engine.metadata_location(THIRD)
    assert location is not None
    return Path(location.removeprefix("file:")).parent


def test_a_third_table_whose_files_are_gone_keeps_nobody_from_undoing_the_others(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    before = parts(project)
    folder = metadata_folder(engine_of(project, spark))
    away = folder.with_name("away")
    write(tmp_path, "0002_change", CHANGE)
    with pytest.raises(
        Undone, match=r"(?s)^File .* does not exist.*stopped at: reading table `shop.c`"
    ) as failed:
        run(project, spark, when_verified(TABLES[1], lambda: folder.rename(away)))
    is_undone_on_the_first_two(failed.value)
    away.rename(folder)
    assert parts(project) == before
    assert status(project).lock is None
    run(project, spark)
    assert states(project) == ["applied", "applied"]


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("DROP TABLE {t}", "another client dropped or renamed table `shop.c` meanwhile"),
        ("DROP TABLE {t}; CREATE TABLE {t} (id int, old string)", "another table now has the name `shop.c`"),
        (
            "ALTER TABLE {t} SET TBLPROPERTIES (k = 'theirs')",
            "shop.c:properties.k is theirs instead of (absent)",
        ),
        (
            "ALTER TABLE {t} DROP COLUMN old",
            "another client already made some of these changes: shop.c:columns.old",
        ),
    ],
)
def test_what_somebody_did_to_the_third_table_meanwhile_is_left_alone(
    spark: SparkSession, project: Project, tmp_path: Path, does: str, told: str
) -> None:
    run(project, spark)
    engine = engine_of(project, spark)
    before = parts(project, but=THIRD)
    write(tmp_path, "0002_change", CHANGE)
    theirs: list[Table | None] = []

    def act() -> None:
        for text in does.split("; "):
            engine.sql(text.format(t=f"{engine.catalog_name}.{THIRD}"))
        theirs.append(engine.table(THIRD))

    with pytest.raises(Undone, match=re.escape(told)) as failed:
        run(project, spark, when_verified(TABLES[1], act))
    assert failed.value.exit_code == ExitCode.CONFLICT
    is_undone_on_the_first_two(failed.value)
    assert [engine.table(THIRD)] == theirs
    assert parts(project, but=THIRD) == before
    assert status(project).lock is None


def test_what_somebody_did_beside_the_plan_is_noted_and_stays(
    spark: SparkSession, project: Project, tmp_path: Path
) -> None:
    run(project, spark)
    engine = engine_of(project, spark)
    write(tmp_path, "0002_change", CHANGE)
    seen: list[Event] = []
    added = f"ALTER TABLE {engine.catalog_name}.{THIRD} ADD COLUMN theirs int"
    add = when_verified(TABLES[1], lambda: engine.sql(added))
    run(project, spark, lambda event: (seen.append(event), add(event))[1])
    notes = [event.text for event in seen if isinstance(event, NoteAdded)]
    assert notes == ["changed by another client meanwhile: shop.c:columns.theirs"]
    assert [f.name for f in tables(project)[THIRD].schema.fields] == ["id", "theirs"]
    assert states(project) == ["applied", "applied"]


def test_the_lock_is_shown_and_taken_away(spark: SparkSession, project: Project) -> None:
    run(project, spark)
    assert not unlock(project, spark=spark).taken
    with open_environment(project, None) as world:
        engine = open_engine(world.environment, spark)
        with open_journal(world, engine, 0).hold_lock("apply", "ana", "ci") as held:
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
            with pytest.raises(LockHeld, match="unlock` removed"):
                held.lock.write("step")
        rows = engine.session.sql(
            f"SELECT outcome, message FROM {engine.catalog_name}.{world.history_name} WHERE action = 'unlock'"
        ).collect()
    assert [row[0] for row in rows] == ["unlocked"]
    assert "released the lock of ana on ci" in rows[0][1]
    assert status(project).lock is None
