"""`reset` of a disposable environment: tables go to the trash, the history becomes empty."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.reset import plan_reset, run_reset
from icemigrate.commands.status import history, status
from icemigrate.errors import EngineError, StalePlan, UsageError
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Interrupted
from icemigrate.execution.signals import StopRequest
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_branch_of, is_ref_of
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field
from icemigrate.maintenance.trash import find_trashed_tables
from icemigrate.project import open_project
from icemigrate.render.formats import render
from icemigrate.results.reset_results import ResetResult
from tests.support.embedded_project import HISTORY, Embedded
from tests.support.recording_engine import RecordingEngine

TWO = """
tables:
  - {name: db.a, columns: [{name: x, type: int}]}
  - {name: db.b, columns: [{name: x, type: int}]}
  - {name: db.old, adopt: true, columns: [{name: x, type: int}]}
"""
PROJECT = "project: market\nenvironments:\n  local:\n    catalog: {type: sqlite}\n"
OLD = TableName.parse("db.old")


@dataclass(slots=True)
class _Engine(RecordingEngine):
    """Its tables can be read from the catalog at once."""

    shop: Embedded | None = None

    def rename(self, name: TableName, new: TableName) -> None:
        RecordingEngine.rename(self, name, new)
        assert self.shop is not None
        self.shop.save()


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    (tmp_path / "icemigrate.yaml").write_text(f"{PROJECT}    disposable: true\n", encoding="utf-8")
    engine = _Engine()
    made = engine.shop = Embedded(tmp_path, engine)
    engine.tables[OLD] = Table(OLD, Schema((Field(1, "x", parse_type("int")),)), last_column_id=1)
    made.save()
    made.write("0001_two.yaml", TWO)
    made.apply()
    made.write("0002_more.yaml", "tables: [{name: db.a, columns: [{name: y, type: int}]}]\n")
    made.apply()
    return made


def reset(shop: Embedded, planned: ResetResult) -> ResetResult:
    with open_environment(open_project(shop.folder), None) as world:
        journal = Journal(HistoryWriter(shop.engine, HISTORY, "market"))
        done = run_reset(world, planned, shop.engine, journal, StopRequest())
    shop.save()
    return done


def names(shop: Embedded) -> list[str]:
    return sorted(str(name).partition("__")[0] for name in shop.engine.tables if name != HISTORY)


def test_tables_go_to_the_trash_and_apply_begins_again(shop: Embedded) -> None:
    project = open_project(shop.folder)
    planned = plan_reset(project)
    assert [(t.table, t.action) for t in planned.tables] == [
        ("db.a", "trash"),
        ("db.b", "trash"),
        ("db.old", "release"),
    ]
    assert "Reset: 2 tables to the trash; the history forgets 2 versions." in render(planned)
    done = reset(shop, planned)
    assert "2 tables moved to the trash, and the history is empty" in render(done)
    assert names(shop) == ["db.old", "icemigrate_trash.db", "icemigrate_trash.db"]
    assert "owner of db.old: None" in shop.engine.log
    assert plan_reset(project).is_empty
    assert render(plan_reset(project)) == "market in local: nothing to reset.\n"
    assert [m.state for m in status(project).migrations] == ["pending", "pending"]
    assert [e.event for e in history(project).events] == ["applied", "applied", "reset"]
    again = plan(project)
    assert [m.version for m in again.plan.migrations] == ["0001", "0002"]
    assert again.ready, render(again)
    # A new table must not get the folder of the table in the trash.
    assert "LOCATION" in render(again)
    shop.apply()
    second = reset(shop, plan_reset(project))
    assert {t.trash for t in second.tables}.isdisjoint(t.trash for t in planned.tables if t.trash)


def test_maintain_may_empty_the_trash_of_a_reset(shop: Embedded) -> None:
    reset(shop, plan_reset(open_project(shop.folder)))
    with open_environment(open_project(shop.folder), None) as world:
        tables = [
            table for name, table in shop.engine.tables.items() if name.namespace == ("icemigrate_trash",)
        ]
        found = list(find_trashed_tables(world.history(), "market", tables))
    assert [(one.is_known, one.since is not None) for one in found] == [(True, True)] * 2
    assert [one.lost(world.history()) for one in found] == [(), ()]


def test_a_reset_that_failed_halfway_is_finished_by_the_next(shop: Embedded) -> None:
    project = open_project(shop.folder)
    shop.engine.fails.add("rename db.b")
    with pytest.raises(EngineError):
        reset(shop, plan_reset(project))
    shop.save()
    shop.engine.fails.clear()
    rest = plan_reset(project)
    assert [(t.table, t.action) for t in rest.tables] == [("db.b", "trash"), ("db.old", "release")]
    reset(shop, rest)
    assert plan_reset(project).is_empty
    with open_environment(project, None) as world:
        (event,) = [e for e in history(project).events if e.event == "reset"]
        assert world.history().applied == ()
        assert event.description.startswith("reset: moved")
    assert len(shop.engine.rows[HISTORY][-1]["tables"]) == 2, "maintain knows both"
    assert plan(project).ready


@pytest.mark.parametrize("text", [PROJECT, f"{PROJECT}    disposable: false\n"])
def test_only_a_disposable_environment_is_reset(shop: Embedded, text: str) -> None:
    (shop.folder / "icemigrate.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        plan_reset(open_project(shop.folder))
    assert refused.value.message == "environment `local` is not disposable: `reset` drops its tables"
    assert "set `disposable: true` under `local`" in (refused.value.hint or "")


def test_tables_of_others_stay_and_new_tables_make_the_plan_stale(shop: Embedded) -> None:
    a, b = TableName.parse("db.a"), TableName.parse("db.b")
    project = open_project(shop.folder)
    planned = plan_reset(project)
    shop.engine.tables[OLD] = replace(
        shop.engine.tables[OLD],
        refs={"icemigrate-market-0001": Ref("tag", 1), "theirs": Ref("tag", 1)},
    )
    shop.engine.tables[b] = replace(
        shop.engine.tables[b],
        properties={**shop.engine.tables[b].properties, "icemigrate.owner": "other"},
        owner="other",
    )
    shop.engine.tables[a] = replace(shop.engine.tables[a], uuid="11111111-2222-3333-4444-555555555555")
    shop.save()
    now = plan_reset(project)
    assert [(t.table, t.action) for t in now.tables] == [
        ("db.a", "keep"),
        ("db.b", "keep"),
        ("db.old", "release"),
    ]
    assert "db.b: stays: it belongs to project `other`" in render(now)
    with pytest.raises(StalePlan):
        reset(shop, planned)
    document = json.loads(render(now, "json"))
    assert document["versions"] == 2


SWAP = "tables: [{name: db.a, renamed_from: db.b}, {name: db.b, renamed_from: db.a}]\n"


@pytest.mark.parametrize("renames", [1, 2])
def test_a_reset_finds_the_tables_of_an_exchange_of_names_that_was_killed(
    shop: Embedded, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write("0003_swap.yaml", SWAP)
    before = {shop.engine.tables[TableName.parse(f"db.{name}")].uuid for name in "ab"}
    done: list[str] = []

    def sql(engine: _Engine, text: str) -> None:
        if "RENAME TO" in text:
            if len(done) == renames:
                raise KeyboardInterrupt
            done.append(text)
        RecordingEngine.sql(engine, text)

    with monkeypatch.context() as patched:
        patched.setattr(_Engine, "sql", sql)
        with pytest.raises(Interrupted):
            shop.apply()
    shop.save()
    planned = plan_reset(open_project(shop.folder))
    assert sorted(t.action for t in planned.tables) == ["release", "trash", "trash"]
    reset(shop, planned)
    trashed = {t.uuid for name, t in shop.engine.tables.items() if name.namespace == ("icemigrate_trash",)}
    assert trashed == before


@pytest.mark.parametrize("is_undone", [False, True])
def test_a_table_that_was_dropped_before_a_reset_leaves_its_name_in_the_trash(
    shop: Embedded, is_undone: bool
) -> None:
    shop.write("0003_drop.yaml", "allow: [destructive]\ntables: [{name: db.b, drop: true}]\n")
    shop.apply()
    in_trash = TableName.parse("icemigrate_trash.db__b__market__0003")
    if is_undone:  # the trash has it under the version that created it
        shop.engine.rename(in_trash, in_trash := TableName(in_trash.namespace, "db__b__market__0001"))
    dropped = shop.engine.tables[in_trash]
    project = open_project(shop.folder)
    reset(shop, plan_reset(project))
    assert in_trash not in shop.engine.tables
    shop.apply()
    again = TableName.parse("icemigrate_trash.db__b__market__0003")
    assert shop.engine.tables[again].uuid != dropped.uuid
    kept = TableName(in_trash.namespace, f"{in_trash.name}__{(dropped.uuid or '')[:8]}")
    assert shop.engine.tables[kept].uuid == dropped.uuid
    with open_environment(project, None) as world:
        found = {
            t.table.name: t
            for t in find_trashed_tables(world.history(), "market", [replace(dropped, name=kept)])
        }
    if not is_undone:
        assert found[kept].is_known, "maintain may purge it"


def test_the_tags_of_a_project_whose_name_begins_alike_stay(shop: Embedded) -> None:
    own = {"icemigrate-market-0001": "tag", "icemigrate-market-0001-released-2": "tag"}
    own |= {
        f"icemigrate-market-{branch}": "branch"
        for branch in ("0002-data-0123abcd", "refill", "maintain-0123abcd")
    }
    others = {"icemigrate-market-eu-0002": "tag", "icemigrate-market-eu-refill-0123abcd": "branch"}
    refs = {name: Ref(kind, 1) for name, kind in {**own, **others}.items()}
    assert {name for name, ref in refs.items() if is_ref_of(name, ref, "market")} == own.keys()
    assert {name for name, ref in refs.items() if is_ref_of(name, ref, "market-eu")} == others.keys()
    assert not is_branch_of("icemigrate-market-refill-0002-data", "market", "0001")


def test_the_views_of_tables_are_dropped(shop: Embedded) -> None:
    shop.engine.catalog_name = "local"
    shop.write("0003_rename.yaml", "tables: [{name: db.a, renames: {y: z}, keep_view: 30d}]\n")
    shop.apply()
    assert [str(name) for name in shop.engine.views] == ["db.a__before_0003"]
    reset(shop, plan_reset(open_project(shop.folder)))
    assert shop.engine.views == {}
