"""A conflict suggests only what planning has tried: each suggestion is followed here, and then it plans."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.changes.change import PlanProblem
from icemigrate.commands.apply import require_ready
from icemigrate.commands.conflict_resolutions import with_tried_hints
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile, reconcile_request, unready_tables
from icemigrate.commands.rollback import plan_rollback, require_undoable
from icemigrate.errors import ConflictError, UsageError
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field
from icemigrate.planning.plan import Direction, MigrationPlan, Plan
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import open_project
from icemigrate.results.command_results import PlanResult
from tests.support.embedded_project import HISTORY, Embedded, applied

T = TableName.parse("db.t")
MAKE = """
tables:
  - name: db.t
    columns: [{name: a, type: int}, {name: b, type: string}]
    properties: {x: y}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    made = applied(tmp_path, MAKE)
    made.write("0002_more.yaml", "tables: [{name: db.t, properties: {more: yes}}]\n")
    made.apply()  # the next migration records the table's uuid
    return made


def by_hand(shop: Embedded, column: str, **parts: object) -> None:
    """What another client does to a column."""
    there = shop.engine.tables[T]
    fields = (replace(f, **parts) if f.name == column else f for f in there.schema.fields)
    shop.engine.tables[T] = replace(there, schema=replace(there.schema, fields=tuple(fields)))
    shop.save()


def roll_back(shop: Embedded, *, to: str | None = None, partial: bool = False) -> None:
    planned = plan_rollback(open_project(shop.folder), to=to, options=UndoOptions(partial=partial)).plan
    shop.engine.expect(planned)
    run_plan(planned, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()


def resolutions(planned: PlanResult) -> dict[str, tuple[str, ...]]:
    """What is suggested about each fact."""
    return {c.fact: c.resolutions for m in planned.plan.migrations for c in m.conflicts}


def suggested(planned: PlanResult, fact: str, word: str) -> str:
    """The one suggestion about a fact that has a word."""
    (text,) = (t for t in resolutions(planned)[fact] if word in t)
    return text


def follow(shop: Embedded, text: str) -> PlanResult:
    """Run the command that a suggestion names, as a shell would."""
    (command,) = re.findall(r"`((?:plan|rollback) [^`]+)`", text)
    words = shlex.split(command)
    project = open_project(shop.folder)
    if words[0] == "rollback":
        assert "--partial" in words
        return plan_rollback(project, to=_value(words, "--to"), options=UndoOptions(partial=True))
    if "--reconcile" in words:
        return plan_reconcile(project, what=reconcile_request([_value(words, "--table") or ""]))
    overwrite = _value(words, "--overwrite")
    return plan(project, redo=_value(words, "--redo"), overwrite=[overwrite] if overwrite else [])


def unready_tables_of(shop: Embedded) -> frozenset[TableName]:
    """The tables that cannot be reconciled."""
    with open_environment(open_project(shop.folder), None) as world:
        return unready_tables(world, reconcile_request())


def _value(words: Sequence[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words else None


def conflicts(planned: Plan) -> list[str]:
    return [c.fact for m in planned.migrations for c in m.conflicts]


def test_every_suggestion_about_a_pending_migration_plans(shop: Embedded) -> None:
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: b, description: ours}]}]\n")
    by_hand(shop, "b", doc="theirs")
    fact = "db.t:columns.b.description"
    planned = plan(open_project(shop.folder))
    assert len(resolutions(planned)[fact]) == 3
    assert follow(shop, suggested(planned, fact, "--overwrite")).ready
    assert follow(shop, suggested(planned, fact, "--reconcile")).ready
    assert "`0003_wide.yaml`" in suggested(planned, fact, "keep the current state")
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: b, description: theirs}]}]\n")
    assert plan(open_project(shop.folder)).ready


def test_a_value_that_cannot_be_overwritten_is_not_suggested_to_be(shop: Embedded) -> None:
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: a, type: long}]}]\n")
    by_hand(shop, "a", type=parse_type("string"))
    planned = plan(open_project(shop.folder))
    assert not [t for t in resolutions(planned)["db.t:columns.a.type"] if "--overwrite" in t]
    # Without rows, the type can still go back.
    assert unready_tables_of(shop) == frozenset()
    assert suggested(planned, "db.t:columns.a.type", "--reconcile")


def test_conflicts_of_several_tables_have_each_their_own_suggestions(shop: Embedded) -> None:
    text = "tables: [{name: db.t, columns: [{name: a, type: long}, {name: b, description: ours}]}]\n"
    shop.write("0003_wide.yaml", text)
    by_hand(shop, "a", type=parse_type("string"))
    by_hand(shop, "b", doc="theirs")
    found = resolutions(plan(open_project(shop.folder)))
    assert [t for t in found["db.t:columns.b.description"] if "--overwrite" in t]
    assert not [t for t in found["db.t:columns.a.type"] if "--overwrite" in t]


def test_a_redo_from_the_trash_suggests_what_plans(shop: Embedded) -> None:
    by_hand(shop, "a", doc="by hand")
    roll_back(shop, to="0", partial=True)
    fact = "db.t:columns.a.description"
    planned = plan(open_project(shop.folder), redo="1")
    assert conflicts(planned.plan) == [fact]
    assert not [t for t in resolutions(planned)[fact] if "--accept" in t or "--reconcile" in t]
    assert "--redo 0001 --overwrite" in suggested(planned, fact, "--overwrite")
    assert follow(shop, suggested(planned, fact, "--overwrite")).ready
    assert "`0001_make.yaml`" in suggested(planned, fact, "keep the current state")
    shop.write(
        "0001_make.yaml", MAKE.replace("{name: a, type: int}", "{name: a, type: int, description: by hand}")
    )
    assert plan(open_project(shop.folder), redo="1").ready
    shop.write("0001_make.yaml", MAKE)
    (trashed,) = re.findall(r"`DROP TABLE local\.([^`]+)`", suggested(planned, fact, "anew"))
    shop.drop(trashed)
    assert plan(open_project(shop.folder), redo="1").ready


def test_a_table_that_is_gone_is_left_out_or_registered(shop: Embedded) -> None:
    shop.write("0003_other.yaml", "tables: [{name: db.t, properties: {x: z}}]\n")
    gone = shop.engine.tables[T]
    shop.drop("db.t")
    planned = plan(open_project(shop.folder))
    texts = resolutions(planned)["db.t:name"]
    assert ["delete its entry" in t for t in texts] == [True, False]
    assert "register_table" in texts[1]
    shop.engine.tables[T] = gone
    shop.save()
    assert plan(open_project(shop.folder)).ready


def test_an_adopted_table_that_differs_suggests_to_edit_the_file(shop: Embedded) -> None:
    there = shop.engine.tables[T]
    other = TableName.parse("db.other")
    fields = (Field(1, "a", parse_type("int")), Field(2, "c", parse_type("int")))
    shop.engine.tables[other] = replace(
        there, name=other, uuid="u", location=None, schema=Schema(fields), properties={}
    )
    shop.save()
    entry = "tables: [{name: db.other, adopt: true, columns: [{name: a, type: %s}]}]\n"
    shop.write("0003_adopt.yaml", entry % "long")
    planned = plan(open_project(shop.folder))
    (text,) = resolutions(planned)["db.other:columns.a.type"]
    assert "declare it in `0003_adopt.yaml`" in text
    shop.write("0003_adopt.yaml", entry % "int")
    assert plan(open_project(shop.folder)).ready


def test_a_baseline_records_the_migrations_before_the_one_that_conflicts(tmp_path: Path) -> None:
    shop = applied(tmp_path, MAKE)
    shop.engine.tables.pop(HISTORY)
    shop.save()
    shop.write("0002_more.yaml", "tables: [{name: db.t, columns: [{name: a, type: long}]}]\n")
    project = open_project(shop.folder)
    texts = resolutions(plan(project, to="2", baseline=True))["db.t:columns.a.type"]
    (text,) = (t for t in texts if "--baseline" in t)
    assert "`apply --baseline --to 0001`" in text
    assert plan(project, to="0001", baseline=True).ready
    by_hand(shop, "a", type=parse_type("string"))
    texts = resolutions(plan(project, to="2", baseline=True))["db.t:columns.a.type"]
    assert not [t for t in texts if "--baseline" in t], "0001 conflicts too"


def test_a_rollback_suggests_partial_with_the_same_versions(shop: Embedded) -> None:
    shop.write("0003_more.yaml", "tables: [{name: db.t, properties: {x: z}}]\n")
    shop.apply()
    there = shop.engine.tables[T]
    shop.engine.tables[T] = replace(there, properties={**there.properties, "x": "theirs"})
    shop.save()
    planned = plan_rollback(open_project(shop.folder), to="2")
    text = suggested(planned, "db.t:properties.x", "--partial")
    assert "`rollback --to 2 --partial`" in text
    assert follow(shop, text).ready


def test_a_refused_plan_names_the_command_that_shows_what_was_tried(shop: Embedded) -> None:
    shop.write("0003_more.yaml", "tables: [{name: db.t, properties: {x: z}}]\n")
    shop.apply()
    there = shop.engine.tables[T]
    shop.engine.tables[T] = replace(there, properties={**there.properties, "x": "theirs"})
    shop.save()
    project = open_project(shop.folder)
    with pytest.raises(ConflictError) as undone:
        require_undoable(plan_rollback(project))
    assert undone.value.hint == (
        "`icemigrate rollback --dry-run` shows the values and how to resolve each conflict"
    )
    shop.write("0004_again.yaml", "tables: [{name: db.t, properties: {x: other}}]\n")
    with pytest.raises(ConflictError) as applied_:
        require_ready(plan(project))
    assert applied_.value.hint == "`icemigrate plan` shows the values and how to resolve each conflict"


def test_a_problem_suggests_no_option_that_is_refused() -> None:
    hint = "`--partial` leaves it; `--discard-new-data` drops the new rows"
    migration = MigrationPlan(
        version="0002",
        description="more",
        checksum="",
        direction=Direction.ROLLBACK,
        problems=(PlanProblem("new-data", T, (), "rows were written since", hint),),
    )

    def planned(options: UndoOptions) -> tuple[MigrationPlan, ...]:
        if options.discard_new_data:
            raise UsageError("this table has no rows")
        return ()

    given: Any = SimpleNamespace(options=UndoOptions(), plan=planned)
    (tried,) = with_tried_hints(given, Plan("market", "local", "sqlite", "local", (migration,))).migrations
    assert [p.hint for p in tried.problems] == ["`--partial` leaves it"]
