"""`apply --baseline`: versions recorded as done already, the catalog held against them, no table touched."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from icemigrate.commands.drift import drift
from icemigrate.commands.import_tables import import_tables
from icemigrate.commands.plan import plan
from icemigrate.commands.revert import revert
from icemigrate.commands.rollback import plan_rollback
from icemigrate.commands.status import history, status
from icemigrate.errors import ConflictError
from icemigrate.execution.failures import Interrupted
from icemigrate.execution.run import run_plan
from icemigrate.files.parse.json_schemas import schema_text
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.history_properties import History, decode_history
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.command_results import PlanResult
from tests.support.embedded_project import HISTORY, Embedded

TRADES, DEALS = TableName(("db",), "trades"), TableName(("db",), "deals")
FILES = {
    "0001_trades.yaml": """\
tables:
  - name: db.trades
    columns: [{name: id, type: int}, {name: price, type: "decimal(9,2)"}, {name: old, type: int}]
    partition_by: ["bucket(4, id)"]
  - {name: db.gone, columns: [{name: a, type: int}]}
""",
    "0002_deals.yaml": """\
allow: [destructive, incompatible]
tables:
  - name: db.deals
    renamed_from: db.trades
    renames: {id: key}
    columns: [{name: key, type: long}, {name: venue, type: string, after: key}, {name: old, type: string}]
    drop_columns: [old]
    properties: {team: us}
""",
    "0003_gone.yaml": "allow: [destructive]\ntables: [{name: db.gone, drop: true}]\n",
}
LATER = "tables: [{name: db.deals, renames: {venue: place}, columns: [{name: size, type: int}]}]\n"


def carry_out(lake: Embedded, todo: Plan) -> None:
    lake.engine.expect(todo)
    run_plan(todo, lake.engine, Journal(HistoryWriter(lake.engine, HISTORY, "market")))
    lake.save()


def recorded(lake: Embedded) -> History:
    return decode_history(lake.engine.tables[HISTORY].properties)


def baseline(lake: Embedded, to: str | None = None) -> PlanResult:
    return plan(open_project(lake.folder), to=to, baseline=True)


@pytest.fixture
def lake(tmp_path: Path) -> Embedded:
    """Tables to which all files were applied, by whoever has no history any more."""
    lake = Embedded(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    for name, text in FILES.items():
        lake.write(name, text)
    lake.apply()
    return lake


def forgotten(lake: Embedded) -> None:
    lake.drop("icemigrate.history")


def test_all_up_to_a_version_is_recorded_as_if_it_had_been_applied(lake: Embedded) -> None:
    before = recorded(lake)
    forgotten(lake)
    tables = dict(lake.engine.tables)
    lake.write("0004_later.yaml", LATER)
    result = baseline(lake, "0003")
    assert result.ready
    assert "Baseline: 1 to adopt, 0 to add, 0 to change, 0 to drop (3 migrations, 1 table)." in render(result)
    jsonschema.validate(json.loads(render(result, "json")), json.loads(schema_text("plan")))
    assert parse_plan_file(plan_file_text(result.plan), "it") == result.plan
    carry_out(lake, result.plan)
    assert {n: t for n, t in lake.engine.tables.items() if n != HISTORY} == tables
    after = recorded(lake)
    assert [(a.version.text, a.checksum, a.state) for a in after.applied] == [
        (a.version.text, a.checksum, a.state) for a in before.applied
    ]
    # The ids of dropped fields are unknown.
    was, now = before.state.tables[DEALS], after.state.tables[DEALS]
    assert replace(now, uuid=None, dropped=()) == replace(was, uuid=None, dropped=())
    assert [d.path for d in now.dropped] == [d.path for d in was.dropped]
    assert all(d.field.id < 0 for d in now.dropped)
    assert after.state.former == before.state.former
    events = history(open_project(lake.folder)).events
    assert [(e.event, e.version) for e in events] == [("baselined", v) for v in ("0001", "0002", "0003")]
    assert [m.state for m in status(open_project(lake.folder)).migrations] == ["applied"] * 3 + ["pending"]
    # What comes next is planned on it as on any other.
    (later,) = plan(open_project(lake.folder)).plan.migrations
    assert [c.text for c in later.changes()] == ["venue → place", "size int"]


@pytest.mark.parametrize("entry", ["old", "{name: old, refill: true}"])
def test_a_column_that_a_recorded_version_dropped_is_added_where_it_is_restored(
    lake: Embedded, entry: str
) -> None:
    """Also by the file that `revert` writes: `check` accepts it, so every environment has to."""
    lake.write("0004_drop.yaml", "allow: [destructive]\ntables: [{name: db.deals, drop_columns: [venue]}]\n")
    lake.apply()
    forgotten(lake)
    carry_out(lake, baseline(lake, "0004").plan)
    project = open_project(lake.folder)
    if entry == "old":
        revert(project, "0004")
    else:
        lake.write(
            "0005_back.yaml", "tables: [{name: db.deals, restore_columns: [{name: venue, refill: true}]}]\n"
        )
    (migration,) = plan(project).plan.migrations
    assert [c.text for c in migration.changes()] == ["venue string"]
    lake.apply()
    assert plan(project).is_empty
    assert not drift(project).drifted


def test_taking_it_back_forgets_it_and_touches_no_table(lake: Embedded) -> None:
    forgotten(lake)
    tables = dict(lake.engine.tables)
    carry_out(lake, baseline(lake, "0003").plan)
    project = open_project(lake.folder)
    for version, declared in (("0003", "db.gone"), ("0002", "db.trades"), ("0001", "db.trades")):
        undo = plan_rollback(project).plan
        assert [m.version for m in undo.migrations] == [version]
        assert not list(undo.migrations[0].changes())
        assert declared in {str(t.declared) for t in undo.migrations[0].tables}
        carry_out(lake, undo)
        assert {n: t for n, t in lake.engine.tables.items() if n != HISTORY} == tables
    assert not recorded(lake).state.tables
    assert {a.state for a in recorded(lake).applied} == {"held"}


def test_what_was_taken_back_is_found_done_when_it_is_applied_again(lake: Embedded) -> None:
    forgotten(lake)
    carry_out(lake, baseline(lake, "0003").plan)
    project = open_project(lake.folder)
    carry_out(lake, plan_rollback(project, to="0001").plan)
    again = plan(project, redo="0002").plan
    assert again.ready
    assert not list(again.migrations[0].changes())


def test_a_table_that_differs_is_refused_with_the_differences(lake: Embedded) -> None:
    forgotten(lake)
    lake.edit("db.deals", {"team": "them"})
    result = baseline(lake, "0003")
    assert not result.ready
    shown = [
        f"{c.fact}: {c.base}, {c.wanted}, {c.actual}" for m in result.plan.migrations for c in m.conflicts
    ]
    assert shown == ["db.deals:properties.team: (unknown to the history), us, them"]
    result = baseline(lake, "0001")
    assert [c.fact for m in result.plan.migrations for c in m.conflicts] == ["db.trades:name", "db.gone:name"]


def test_a_table_that_a_file_drops_must_be_gone(lake: Embedded) -> None:
    forgotten(lake)
    lake.engine.tables[TableName(("db",), "gone")] = replace(
        lake.engine.tables[DEALS], name=TableName(("db",), "gone"), uuid=None
    )
    lake.save()
    (conflict,) = (c for m in baseline(lake, "0003").plan.migrations for c in m.conflicts)
    assert (conflict.wanted, conflict.actual) == ("dropped", "table db.gone")


def test_positions_that_files_assert_are_held_against_the_table(lake: Embedded) -> None:
    forgotten(lake)
    there = lake.engine.tables[DEALS]
    schema = replace(there.schema, fields=there.schema.fields[::-1])
    lake.engine.tables[DEALS] = replace(there, schema=schema)
    lake.save()
    (conflict,) = (c for m in baseline(lake, "0003").plan.migrations for c in m.conflicts)
    assert (conflict.fact, conflict.wanted, conflict.actual) == (
        "db.deals:columns.order",
        "key, venue, price, old",
        "old, price, venue, key",
    )


def test_without_a_version_only_what_adopts_is_recorded(lake: Embedded) -> None:
    forgotten(lake)
    result = baseline(lake)
    assert not result.ready
    assert {d.code for d in result.diagnostics} == {"baseline-does-more"}
    assert result.diagnostics[0].message == (
        "0001 does more than adopt `db.trades`, and a baseline changes no table"
    )


def test_import_then_baseline_then_a_migration(tmp_path: Path, lake: Embedded) -> None:
    forgotten(lake)
    for name in FILES:
        (lake.folder / "migrations" / name).unlink()
    project = open_project(tmp_path)
    import_tables(project, names=["db.deals"])
    tables = dict(lake.engine.tables)
    carry_out(lake, baseline(lake).plan)
    assert {n: t for n, t in lake.engine.tables.items() if n != HISTORY} == tables
    # No migration ran, so that none left a tag that could be missed.
    assert drift(project).tables == ()
    assert plan(project).plan.is_empty
    assert baseline(lake).plan.is_empty
    lake.write("0002_later.yaml", LATER)
    (later,) = plan(project).plan.migrations
    assert len(list(later.changes())) == 2
    carry_out(lake, plan(project).plan)
    with_later = plan_rollback(project, to="0").plan
    assert [m.version for m in with_later.migrations] == ["0002", "0001"]
    assert not list(with_later.migrations[1].changes())


def test_known_tables_are_held_against_what_their_history_says(lake: Embedded) -> None:
    lake.write("0004_later.yaml", LATER)
    project = open_project(lake.folder)
    todo = plan(project).plan
    lake.engine.expect(todo)
    assert not baseline(lake, "0004").ready
    for step in (s for m in todo.migrations for t in m.tables for s in t.steps):
        for statement in step.statements:
            lake.engine.sql(statement.text)
    lake.save()
    result = baseline(lake, "0004")
    assert result.ready
    carry_out(lake, result.plan)
    names = [f.name for f in recorded(lake).state.tables[DEALS].schema.fields]
    assert names == ["key", "place", "price", "old", "size"]
    assert all(f.id > 0 for f in recorded(lake).state.tables[DEALS].schema.fields)


def test_what_was_interrupted_is_finished_or_undone_and_not_recorded_beside_it(lake: Embedded) -> None:
    lake.write(
        "0004_later.yaml",
        "tables: [{name: db.deals, properties: {a: b}}, {name: db.more, columns: [{name: a, type: int}]}]\n",
    )
    lake.engine.fails.add("db.more")
    with pytest.raises(Interrupted):
        lake.apply()
    lake.engine.fails.clear()
    lake.save()
    result = baseline(lake, "0004")
    assert not result.ready
    (told,) = (d for d in result.diagnostics if d.code == "baseline-interrupted")
    assert told.message == "0004 was interrupted, and a baseline does not finish it"
    assert told.hint == "`icemigrate apply` finishes it, `icemigrate rollback` undoes it"
    assert "This plan cannot be recorded: 1 conflict and 1 problem." in render(result)
    # Nor does it get through where it was interrupted after the plan was made.
    (migration,) = result.plan.migrations
    tables = tuple(replace(t, conflicts=()) for t in migration.tables)
    sound = replace(result.plan, migrations=(replace(migration, problems=(), tables=tables),))
    with pytest.raises(ConflictError, match="0004 of the same tables was interrupted"):
        carry_out(lake, sound)
    assert {a.version.text: a.state for a in recorded(lake).applied}["0004"] == "interrupted"


def test_a_conflict_about_a_recorded_table_offers_what_a_baseline_can_do(lake: Embedded) -> None:
    lake.write("0004_later.yaml", "tables: [{name: db.deals, properties: {team: others}}]\n")
    lake.edit("db.deals", {"team": "them"})
    result = baseline(lake, "0004")
    for text in (render(result), render(result, "markdown")):
        assert "--overwrite" not in text
        assert "keep the current state: declare it in" in text
        assert "This plan cannot be recorded: 1 conflict." in text


def test_a_missing_namespace_is_told_once(lake: Embedded) -> None:
    forgotten(lake)
    lake.write("0004_place.yaml", "namespaces: [away]\n")
    lake.write("0005_other.yaml", "tables: [{name: db.deals, properties: {a: b}}]\n")
    lake.edit("db.deals", {"a": "b"})
    told = [d.message for d in baseline(lake, "0005").diagnostics]
    assert told == ["namespace `away` is not in the catalog"]
