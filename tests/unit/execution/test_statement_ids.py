"""Statements with equal texts stay distinct: in the report of a failure, and where the file is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icemigrate.commands.data_step_locations import locate_data_step_errors
from icemigrate.errors import EngineError, IcemigrateError, spark_condition
from icemigrate.events import Event, StatementStarted
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import FailureReport, Interrupted
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.project import open_project
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher
from tests.support.embedded_project import Embedded
from tests.support.planned_migrations import make_plan
from tests.support.recording_engine import RecordingEngine
from tests.support.small_tables import NAME, table

OTHER = replace(NAME, name="u")
BACKFILLS = """allow: [destructive]
tables:
  - name: db.t
    backfill:
      - set: {v: v + 1}
      - set: {v: v + 1}
"""
CHECKS = """tables:
  - name: db.t
    checks:
      - {before: "select count(*) from {table}", gives: 0}
      - {before: "select count(*) from {table}", gives: 0}
"""


@dataclass(slots=True)
class Refusing(RecordingEngine):
    """An engine on which the second of two equal statements fails, and queries count their earlier runs."""

    def write(self, name: TableName, branch: str, text: str, summary: Mapping[str, str]) -> None:
        if any(text == earlier for earlier in self.log):
            raise EngineError("[DIVIDE_BY_ZERO] division by zero")
        RecordingEngine.write(self, name, branch, text, summary)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        answer = [(sum(text == earlier for earlier in self.log),)]
        RecordingEngine.ask(self, text)
        return answer


def failed_run(text: str) -> tuple[FailureReport, IcemigrateError, list[int]]:
    """The report of a run, its failure, and the numbers of the statements that were started."""
    tables = {
        n: replace(table("id: long, v: int", name=n), snapshot=Snapshot(1, 1, 3)) for n in (NAME, OTHER)
    }
    made = make_plan({"0002": text}, tables, "lake", DeclaredState(tables), [("db",)])
    assert made.ready
    (migration,) = made.migrations
    engine, heard = Refusing(dict(tables)), list[Event]()
    undo = UndoRecord("0002", tuple(TableUndo(n, n, t, t, t, t) for n, t in tables.items()))
    run = MigrationRun(
        migration,
        engine,
        DirectPublisher(engine, tags=False),
        Marker("market", "0002", "", ""),
        heard.append,
        catalog="lake",
        undo=undo,
    )
    with pytest.raises(IcemigrateError) as failed:
        run.run()
    return run.log.report(), failed.value, [e.number for e in heard if isinstance(e, StatementStarted)]


@pytest.mark.parametrize(
    ("text", "numbers", "line"), [(BACKFILLS, [1, 2, 3], 6), (CHECKS, [1, 2], 5)], ids=["backfills", "checks"]
)
def test_the_second_of_two_equal_statements_is_the_one_that_failed(
    tmp_path: Path, text: str, numbers: list[int], line: int
) -> None:
    report, cause, started = failed_run(text)
    assert started == numbers
    assert report.done.count(report.failed) == 1
    assert report.failed not in report.remaining
    assert report.failed_statement is not None
    assert report.failed_statement.number == numbers[-1]
    project = Embedded(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    project.write("0002_step.yaml", text)
    project.save()
    with (
        pytest.raises(Interrupted) as located,
        open_environment(open_project(tmp_path), None) as session,
        locate_data_step_errors(session),
    ):
        raise Interrupted(report, cause)
    assert f"/0002_step.yaml:{line}:" in located.value.message.splitlines()[0]


def test_the_first_of_two_equal_statements_leaves_the_second_to_be_run() -> None:
    report, _, _ = failed_run(
        BACKFILLS.replace("backfill:", "checks: [{before: 'select 1 from {table}', gives: 1}]\n    backfill:")
    )
    assert report.failed == "select 1 from lake.db.t"
    assert len([text for text in report.remaining if text.startswith("UPDATE")]) == 2


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero", "DIVIDE_BY_ZERO"),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("[1, 2] is no condition", None),
        ("the storage did not respond: [TIMEOUT]", None),
    ],
)
def test_only_a_message_that_begins_with_a_condition_is_about_sql(
    message: str, condition: str | None
) -> None:
    assert spark_condition(message) == condition
