"""The laws that every document in ``cases/`` is held to; no Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change, Reversibility
from icemigrate.diagnostics import has_errors
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import tag_name
from icemigrate.iceberg.table import Ref, Table
from icemigrate.planning.plan import MigrationPlan, Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import (
    CATALOG,
    Case,
    Planned,
    World,
    make_plan,
    plan_entry,
)

VERSION = "0100"
CASES = documents.all_cases()
BY_KIND = {kind.kind: kind for kind in CHANGE_KINDS}
every = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
positive = pytest.mark.parametrize("case", [c for c in CASES if c.is_positive], ids=lambda c: c.id)


def planned(case: Case) -> tuple[World, Planned]:
    world = documents.world_before(case)
    return world, make_plan(world, VERSION, case.migration)


def ready(case: Case) -> tuple[World, Planned, MigrationPlan]:
    world, found = planned(case)
    assert not has_errors(found.diagnostics), texts.diagnostics_text(found.diagnostics)
    assert found.plan is not None
    assert found.plan.ready, found.plan.conflicts
    return world, found, found.plan


@every
def test_what_is_told(case: Case) -> None:
    """Errors, conflicts and warnings are as written."""
    _, found = planned(case)
    key = "error" if "error" in case.says else "warnings"
    assert texts.diagnostics_text(found.diagnostics) == case.text(key)
    assert has_errors(found.diagnostics) == ("error" in case.says)
    conflicts = texts.conflicts_text(found.plan) if found.plan else ""
    assert conflicts == case.text("conflicts")


@positive
def test_the_difference_gives_the_plan(case: Case) -> None:
    _, _, plan = ready(case)
    assert texts.plan_text(plan) == case.text("plan")


@positive
def test_statements_are_as_written(case: Case) -> None:
    _, _, plan = ready(case)
    assert texts.statements_text(plan) == case.text("statements")


@positive
def test_folding_the_changes_gives_what_is_declared(case: Case) -> None:
    world, found, plan = ready(case)
    goal = documents.declared(case.after)
    there = documents.after(world, found).actual
    mentioned = {t.name for t in plan.tables} | goal.keys()
    assert {n for n in mentioned if there.get(n) is not None} == goal.keys()
    for name, table in goal.items():
        made = there[name]
        assert made is not None
        assert texts.comparable(made, with_ids=False) == texts.comparable(table, with_ids=False)
        if not case.by_hand:
            base = texts.comparable(found.base.tables[name], with_ids=True)
            assert _in_any_order(base) == _in_any_order(texts.comparable(made, with_ids=True))
    ids = {p: i for n in goal if (t := there[n]) is not None for p, i in texts.ids_of(t).items()}
    assert {path: ids.get(path) for path in case.says.get("ids", {})} == case.says.get("ids", {})


@positive
def test_planning_again_gives_nothing(case: Case) -> None:
    """Neither for who has recorded it, nor for who has lost the record and sees the tables alone."""
    world, found, _ = ready(case)
    done = documents.after(world, found)
    marked = {n: None if t is None else _marked(t) for n, t in done.actual.items()}
    again = make_plan(World(world.base, marked, done.namespaces), VERSION, case.migration)
    assert again.plan is not None
    assert not again.plan.conflicts
    assert texts.open_text(again.plan) == ""
    for table in done.base.tables.values():
        entry = texts.entry_of(table)
        same = plan_entry(done, "0101", entry)
        assert same.plan is not None
        assert texts.plan_text(same.plan) == ""


def _marked(table: Table) -> Table:
    """The table with the tag that a run puts on it in the end."""
    return replace(table, refs={**table.refs, tag_name("market", VERSION): Ref("tag", 8)})


@every
def test_what_an_environment_calls_a_namespace_changes_no_verdict(case: Case) -> None:
    place = documents.Place(namespace="prod")
    world = documents.world_before(case, place)
    found = make_plan(world, VERSION, case.migration, place)
    _, here = planned(case)
    assert [(d.code, d.place) for d in found.diagnostics] == [(d.code, d.place) for d in here.diagnostics]
    if here.plan and found.plan:
        hazards = [h for c in found.plan.changes() for h in c.hazards]
        assert hazards == [h for c in here.plan.changes() for h in c.hazards]
        assert len(found.plan.conflicts) == len(here.plan.conflicts)


@positive
def test_undoing_leads_back(case: Case) -> None:
    """A plan without loss leads back to the tables before; a condition that it names holds here."""
    world, found, plan = ready(case)
    done = documents.after(world, found)
    for table in plan.tables:
        answers = [c.reversal.answer for c in table.changes()]
        lossy = Reversibility.NO in answers or not answers
        if lossy or table.formerly is None or table.wanted is None:
            continue
        there, before = done.actual[documents.HERE.physical(table.declared)], world.actual[table.name]
        assert there is not None
        assert before is not None
        base, wanted = done.base.tables[table.declared], world.base.tables[table.formerly]
        back = _in_any_order(texts.comparable(texts.undone(wanted, base, there), with_ids=True))
        # What was half done by an earlier run is taken back whole.
        ways = [before, wanted] if case.by_hand else [before]
        assert back in [_in_any_order(texts.comparable(t, with_ids=True)) for t in ways]


def _in_any_order(told: dict[str, Any]) -> dict[str, Any]:
    """Without the order of the partition fields: one that comes back comes last, and means the same.

    In format version 1 it is a new one besides, since the void one in its place keeps the id.
    """
    terms = sorted(told["partition_by"])
    if told["format_version"] == 1:
        terms = [term.split(", field")[0] for term in terms]
    return told | {"partition_by": sorted(terms)}


@every
def test_a_plan_goes_through_a_file_unchanged(case: Case) -> None:
    world, found = planned(case)
    if found.plan is None:
        assert "error" in case.says
        return
    plan = Plan(
        "market", "local", "here", CATALOG, (found.plan,), based_on=dict(world.actual), base=world.base
    )
    assert parse_plan_file(plan_file_text(plan), "plan.json") == plan


@every
def test_a_case_stands_where_it_belongs(case: Case) -> None:
    if case.folder not in BY_KIND or "error" in case.says:
        return
    _, found = planned(case)
    assert found.plan is not None
    kinds = {c.change.kind for c in found.plan.changes()}
    assert case.folder in kinds or case.says.get("plan") is None or found.plan.tables[0].notes


@pytest.mark.parametrize("kind", CHANGE_KINDS, ids=lambda k: k.kind)
def test_every_kind_has_its_documents(kind: type[Change]) -> None:
    own = [c for c in CASES if c.folder == kind.kind]
    assert len(own) >= 4
    assert any(c.is_positive for c in own)
    if kind.problems is not Change.problems:
        assert any("error" in c.says for c in own)


def test_titles_are_unique() -> None:
    twice = [case for case, times in Counter((c.folder, c.title) for c in CASES).items() if times > 1]
    assert twice == []


def test_names_stand_for_something() -> None:
    assert TableName.parse(documents.NAME) == TableName(("db",), "t")
