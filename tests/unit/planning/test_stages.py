"""What runs is what was shown, in the order in which it was shown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icemigrate.errors import CheckFailed, EngineError, StalePlan
from icemigrate.events import Event, StatementStarted
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.stages import statement_texts
from icemigrate.render.plan_markdown import plan_markdown
from icemigrate.render.plan_text import plan_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import PlanResult
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine
from tests.support.small_tables import NAME, table

OTHER = replace(NAME, name="u")
FILL = """
allow: [destructive]
tables:
  - name: db.t
    columns: [{name: w, type: int}]
    drop_columns: [v]
    checks:
      - {before: "select count(*) from {table} where v < 0", gives: 0}
      - {after: "select count(*) from {table} where w is null", gives: 0}
    backfill: [{set: {w: v}}]
    rewrite: {partitions: old}
"""
MARKS = ["v < 0", "ADD COLUMN", "CREATE OR REPLACE BRANCH", "UPDATE", "w is null", "fast_forward"]
MARKS += ["DROP COLUMN", "rewrite_data_files"]


def there(*names: Table) -> dict[TableName, Table]:
    return {t.name: replace(t, snapshot=Snapshot(1, 1, 3)) for t in names}


def plan(text: str, *more: Table) -> tuple[Plan, RecordingEngine]:
    """The plan, and an engine that knows what its statements come to."""
    tables = [table("id: long, v: int", partition="id"), *more]
    made = make_plan(
        {"0002": text}, there(*tables), "lake", DeclaredState({t.name: t for t in tables}), [("db",)]
    )
    assert made.ready
    engine = RecordingEngine(there(*tables), answers={"select count": [(0,)]})
    engine.expect(made)
    return made, engine


def run(made: Plan, engine: RecordingEngine, is_straight: bool = True) -> list[str]:
    """What was started.

    :param is_straight: nothing runs twice.
    """
    heard: list[Event] = []
    (migration,) = made.migrations
    marker = Marker("market", "0002", "", "")
    found = [(t.declared, engine.tables[t.name]) for t in migration.tables]
    undo = UndoRecord("0002", tuple(TableUndo(name, name, t, t, t, t) for name, t in found))
    publisher = DirectPublisher(engine, tags=False)
    work = MigrationRun(migration, engine, publisher, marker, heard.append, catalog="lake", undo=undo)
    work.run()
    started = [e.text for e in heard if isinstance(e, StatementStarted)]
    assert [*work.log.done] == started
    assert work.log.report().remaining == ()
    numbers = [e.number for e in heard if isinstance(e, StatementStarted)]
    texts = statement_texts(migration, "lake", "market")
    assert numbers == [texts.index(text) + 1 for text in started]
    assert not is_straight or tuple(started) == texts
    return started


def places(shown: str, texts: list[str]) -> list[int]:
    flat = " ".join(shown.split())
    return [flat.index(" ".join(text.split())) for text in texts]


def test_the_statements_run_in_the_order_that_the_plan_shows() -> None:
    made, engine = plan(FILL)
    result = PlanResult(made, ())
    text, markdown = plan_text(result, TerminalStyle()), plan_markdown(result)
    started = run(made, engine)
    assert [next(m for m in MARKS if m in t) for t in started] == MARKS
    for shown in (text, markdown):
        at = places(shown, started)
        assert at == sorted(at)


def test_a_saved_plan_is_told_apart_by_the_order_too() -> None:
    made, _ = plan(FILL)
    require_not_stale(parse_plan_file(plan_file_text(made), "p"), made)
    (migration,) = made.migrations
    (one,) = migration.tables
    late = replace(one, steps=(), finish=(*one.finish, *one.steps))
    other = replace(made, migrations=(replace(migration, tables=(late,)),))
    with pytest.raises(StalePlan, match="statement 2"):
        require_not_stale(made, other)


TWO = f"{FILL}  - {{name: db.u, properties: {{k: v}}}}\n"


def test_what_must_hold_is_asked_of_all_tables_ahead_of_all_else() -> None:
    check = "checks: [{before: 'select count(*) from {table} where id < 0', gives: 0}]"
    made, engine = plan(f"{FILL}  - {{name: db.u, {check}}}\n", table("id: long", name=OTHER))
    (migration,) = made.migrations
    result = PlanResult(made, ())
    assert "-- before everything else in the migration:" in plan_text(result, TerminalStyle())
    started = run(made, engine)
    assert ["v < 0" in started[0], "id < 0" in started[1]] == [True, True]
    assert tuple(started) == statement_texts(migration, "lake", "market")


def test_files_are_written_again_only_behind_all_tables() -> None:
    other = table("id: long", name=OTHER)
    made, engine = plan(TWO, other)
    result = PlanResult(made, ())
    for shown in (plan_text(result, TerminalStyle()), plan_markdown(result)):
        assert places(shown, ["after all tables of the migration:"]) < places(shown, ["rewrite_data_files"])
    started = run(made, engine)
    assert "rewrite_data_files" in started[-1]
    assert any("db.u" in text for text in started[:-1])

    made, engine = plan(TWO, other)
    engine.fails.add("SET TBLPROPERTIES")
    with pytest.raises(EngineError):
        run(made, engine)
    assert not any("rewrite_data_files" in text for text in engine.log)


BOTH = f"""{FILL}  - name: db.u
    checks: [{{after: "select count(*) from {{table}} where id < 0", gives: 0}}]
    backfill: [{{set: {{id: abs(id)}}}}]
"""


def test_rows_are_published_when_the_checks_of_all_tables_hold() -> None:
    other = table("id: long", name=OTHER)
    made, engine = plan(BOTH, other)
    result = PlanResult(made, ())
    for shown in (plan_text(result, TerminalStyle()), plan_markdown(result)):
        assert places(shown, ["when the checks of all tables pass:"]) < places(shown, ["fast_forward"])
    started = run(made, engine)
    (migration,) = made.migrations
    assert tuple(started) == statement_texts(migration, "lake", "market")
    out = [at for at, text in enumerate(started) if "fast_forward" in text]
    checked = next(at for at, text in enumerate(started) if "id < 0" in text)
    assert len(out) == 2
    assert checked < out[0]
    assert "DROP COLUMN" in started[out[0] + 1]

    made, engine = plan(BOTH, other)
    engine.answers = {"id < 0": [(1,)], **engine.answers}
    with pytest.raises(CheckFailed):
        run(made, engine)
    assert not any("fast_forward" in text for text in engine.log)
    dropped = [text for text in engine.log if "DROP BRANCH" in text]
    assert [any(name in text for text in dropped) for name in ("db.t", "db.u")] == [True, True]


class Overtaken(RecordingEngine):
    """Somebody writes to a table when the rows of another one are written."""

    late = 1

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        super().write(name, branch, text, summary)
        if "db.u" in text and self.late:
            self.late -= 1
            there = self.tables[NAME].snapshot
            assert there is not None
            self.tables[NAME] = replace(self.tables[NAME], snapshot=Snapshot(there.id + 1, 1, 4))


def test_rows_that_others_overtook_are_asked_about_again_before_any_are_published() -> None:
    made, recording = plan(BOTH, table("id: long", name=OTHER))
    engine = Overtaken(recording.tables, answers=recording.answers)
    engine.expect(made)
    heard = run(made, engine, is_straight=False)
    out = [at for at, text in enumerate(heard) if "fast_forward" in text]
    again = [at for at, text in enumerate(heard) if "w is null" in text]
    assert len(again) == 2  # of what is there by then
    assert again[1] < out[0]
