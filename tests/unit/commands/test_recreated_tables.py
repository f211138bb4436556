"""A table that another tool drops and creates again every day: `repair --adopt` records it, and every message
names that."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.drift import drift
from icemigrate.commands.drift_accept import accept_drift
from icemigrate.commands.import_tables import import_tables
from icemigrate.commands.maintain import plan_maintenance
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile
from icemigrate.commands.recreated_tables import adopt_recreated, record_recreated
from icemigrate.commands.revert import revert
from icemigrate.commands.rollback import plan_rollback
from icemigrate.commands.status import status
from icemigrate.diagnostics import has_errors
from icemigrate.errors import ConflictError, Mistakes, UsageError
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.command_results import AdoptedTable
from tests.support.embedded_project import HISTORY, Embedded, applied

T = TableName.parse("db.t")
NEW = "11111111-2222-3333-4444-555555555555"
MAKE = """
tables:
  - name: db.t
    columns: [{name: a, type: int}, {name: b, type: string}, {name: at, type: timestamptz}]
    partition_by: [day(at)]
    properties: {owner.team: trading}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    made = applied(tmp_path, MAKE)
    made.write("0002_more.yaml", "tables: [{name: db.t, properties: {more: yes}}]\n")
    made.apply()  # the next migration records the table's uuid
    return made


def recreate(shop: Embedded, *fields: Field, **parts: object) -> None:
    """What a full refresh does: the same name, another table, its field ids in another order."""
    there = shop.engine.tables[T]
    fields = fields or (
        Field(1, "b", parse_type("string")),
        Field(2, "at", parse_type("timestamptz")),
        Field(3, "a", parse_type("int")),
    )
    spec = replace(there.spec, fields=tuple(replace(f, source_ids=(2,)) for f in there.spec.fields))
    shop.engine.tables[T] = replace(
        there,
        uuid=NEW,
        schema=Schema(fields),
        spec=spec,
        last_column_id=len(fields),
        properties={"owner.team": "trading", "more": "yes"},
        location=f"{there.location}_2",
        **parts,
    )
    shop.save()


def adopt(shop: Embedded, *tables: str) -> tuple[AdoptedTable, ...]:
    with open_environment(open_project(shop.folder), None) as world:
        done = record_recreated(world, tables, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()
    return done


def test_a_recreated_table_is_recorded_and_everything_works_again(shop: Embedded) -> None:
    was = shop.engine.tables[T].uuid
    recreate(shop)
    assert adopt(shop, "db.t") == (AdoptedTable("db.t", was or "", NEW),)
    project = open_project(shop.folder)
    found = drift(project)
    assert (found.drifted, found.tables) == (False, ()), render(found)
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: a, type: long}]}]\n")
    assert plan(project).ready
    shop.apply()
    types = {f.name: f.type for f in shop.engine.tables[T].schema.fields}
    assert types["a"] == parse_type("long")
    assert adopt(shop, "db.t") == (), "a schedule can repeat the call"


@pytest.mark.parametrize("entry", [None, "restore_columns: [{name: b, refill: true}]"])
def test_a_revert_of_what_the_earlier_table_lost_adds_the_column_to_the_new_one(
    shop: Embedded, entry: str | None
) -> None:
    drop = "allow: [destructive]\ntables: [{name: db.t, drop_columns: [b, s]}]\n"
    shop.write("0003_struct.yaml", 'tables: [{name: db.t, columns: [{name: s, type: "struct<x: int>"}]}]\n')
    shop.write("0004_drop.yaml", drop)
    shop.apply()
    recreate(shop, Field(1, "a", parse_type("int")), Field(2, "at", parse_type("timestamptz")))
    adopt(shop, "db.t")
    project = open_project(shop.folder)
    if entry is None:
        revert(project, "4")
    else:
        shop.write("0005_back.yaml", f"tables: [{{name: db.t, {entry}}}]\n")
    assert not has_errors(check(project).diagnostics)
    found = plan(project)
    assert found.ready, render(found)
    assert "+ b string" in render(found)
    assert "under its own field id" not in render(found)
    shop.apply()
    fields = {f.name: f.id for f in shop.engine.tables[T].schema.fields}
    assert fields["b"] > 2
    assert ("s" in fields) is (entry is None)
    assert plan(project).is_empty
    assert not drift(project).drifted


def test_what_the_new_table_lacks_is_drift_that_can_be_restored(shop: Embedded) -> None:
    recreate(shop, Field(1, "b", parse_type("string")), Field(2, "at", parse_type("timestamptz")))
    there = shop.engine.tables[T]
    shop.engine.tables[T] = replace(there, properties={"more": "yes"})
    shop.save()
    adopt(shop, "db.t")
    project = open_project(shop.folder)
    found = {f.fact: f.change for t in drift(project).tables for f in t.facts}
    assert found == {"columns.a": "removed", "properties.owner.team": "removed"}
    with open_environment(project, None) as world:
        (field,) = (f for f in world.history().state.tables[T].schema.fields if f.name == "a")
    assert field.id > 2, "the new table never gave this id"
    assert any("`drift --accept`" in text for text in drift(project).resolutions)


def test_every_message_about_a_recreated_table_names_the_way(shop: Embedded) -> None:
    recreate(shop)
    project = open_project(shop.folder)
    found = drift(project)
    assert found.drifted
    assert found.resolutions == (
        "`repair --adopt db.t` records what was created again under the name of a recorded table",
    )
    assert "`icemigrate repair --adopt db.t`" in render(found)
    assert "`icemigrate repair --adopt db.t` records that table" in accept_drift(project).notes[0]
    command = "`icemigrate repair --adopt db.t` records it"
    assert command in render(status(project))
    with pytest.raises(Mistakes) as named:
        import_tables(project, names=["db.t"])
    assert command in named.value.diagnostics[0].message
    (skipped,) = plan_maintenance(project, parts=["snapshots"]).result.kept
    assert command in skipped.reason
    undone = plan_rollback(project).plan
    (conflict,) = (c for m in undone.migrations for c in m.conflicts)
    assert conflict.actual == "another table, which is not the recorded one"
    restored, adopted = conflict.resolutions
    assert restored.startswith("move the table that has the name now away, restore the recorded one:")
    assert adopted == (
        "record the table that has the name now: `repair --adopt db.t`, "
        "and undo the rest: `rollback --partial`"
    )
    (problem,) = plan_reconcile(project).diagnostics
    assert "`icemigrate repair --adopt db.t`" in (problem.hint or "")
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: a, type: long}]}]\n")
    (conflict,) = (c for m in plan(project).plan.migrations for c in m.conflicts)
    assert conflict.resolutions == ("record the table that has the name now: `repair --adopt db.t`",)
    shop.write("0003_wide.yaml", "allow: [destructive]\ntables: [{name: db.t, drop: true}]\n")
    (conflict,) = (c for m in plan(project).plan.migrations for c in m.conflicts)
    assert conflict.resolutions == ("record the table that has the name now: `repair --adopt db.t`",)
    adopt(shop, "db.t")
    assert not [c for m in plan(project).plan.migrations for c in m.conflicts]


def test_a_pending_file_does_not_hide_that_a_table_was_recreated_or_is_gone(shop: Embedded) -> None:
    shop.write("0003_wide.yaml", "tables: [{name: db.t, columns: [{name: a, type: long}]}]\n")
    recreate(shop)
    project = open_project(shop.folder)
    (table,) = drift(project).tables
    assert (table.state, table.drifted, table.pending) == ("replaced", True, None)
    shop.drop("db.t")
    (table,) = drift(project).tables
    assert (table.state, table.drifted, table.pending) == ("gone", True, None)
    shop.write("0003_wide.yaml", "allow: [destructive]\ntables: [{name: db.t, drop: true}]\n")
    (table,) = drift(project).tables
    assert (table.state, table.drifted, table.pending) == ("gone", False, "0003")


def test_what_cannot_be_adopted_is_refused(shop: Embedded) -> None:
    project = open_project(shop.folder)
    there = shop.engine.tables[T]
    with pytest.raises(UsageError, match=r"no table `db.other`"):
        adopt_recreated(project, tables=["db.other"])
    moved = TableName.parse("db.u")
    recreate(shop)
    shop.engine.tables[moved] = replace(there, name=moved)
    shop.save()
    with pytest.raises(ConflictError, match=r"was not dropped: the recorded table is now `db.u`"):
        adopt_recreated(project, tables=["db.t"])
    shop.drop("db.u")
    shop.edit("db.t", {"icemigrate.owner": "desk"})
    with pytest.raises(ConflictError, match=r"belongs to project `desk`"):
        adopt_recreated(project, tables=["db.t"])
    shop.drop("db.t")
    with pytest.raises(ConflictError, match=r"the catalog has no table `db.t`"):
        adopt_recreated(project, tables=["db.t"])


def test_a_migration_of_the_earlier_table_is_not_undone_on_the_new_one(shop: Embedded) -> None:
    recreate(shop)
    adopt(shop, "db.t")
    project = open_project(shop.folder)
    planned = plan_rollback(project)
    (conflict,) = (c for m in planned.plan.migrations for c in m.conflicts)
    assert "created again" in conflict.actual
    assert conflict.resolutions == ("leave it and undo the rest: `rollback --partial`",)
    assert plan_rollback(project, options=UndoOptions(partial=True)).ready
    undone = plan_rollback(project, to="0", options=UndoOptions(partial=True))
    assert undone.ready
    assert not [s for m in undone.plan.migrations for t in m.tables for s in t.all_steps]


def test_a_redo_on_a_table_that_was_created_again_takes_no_field_id_of_the_earlier_table(
    shop: Embedded,
) -> None:
    shop.write("0003_venue.yaml", "tables: [{name: db.t, columns: [{name: venue, type: string}]}]\n")
    shop.apply()
    assert shop.engine.tables[T].schema.find(("venue",)).id == 4  # type: ignore[union-attr]
    todo = plan_rollback(open_project(shop.folder)).plan
    shop.engine.expect(todo)
    run_plan(todo, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()
    # Another client creates the table again; its own column of id 4 is dropped, and its values stay in files.
    recreate(shop)
    shop.engine.tables[T] = replace(shop.engine.tables[T], last_column_id=4)
    shop.save()
    adopt(shop, "db.t")
    (migration,) = plan(open_project(shop.folder), redo="0003").plan.migrations
    (change,) = [found.change for found in migration.changes()]
    assert type(change).__name__ == "AddColumn"
    assert change.field.id < 0, "Spark numbers a new field"  # type: ignore[attr-defined]
