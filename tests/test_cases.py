"""The laws that every document in ``cases/`` is held to; no Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from icemigrate.changes import KINDS
from icemigrate.changes.base import Change, Reversible
from icemigrate.diagnostics import has_errors
from icemigrate.model.names import TableName
from icemigrate.plan import MigrationPlan, Plan
from icemigrate.plan_file import dumps, loads
from tests import case_documents as documents
from tests.case_documents import (
    CATALOG,
    Case,
    Planned,
    World,
    comparable,
    ids_of,
    make_plan,
    plan_entry,
)

VERSION = "0100"
CASES = documents.all_cases()
BY_KIND = {kind.kind: kind for kind in KINDS}
every = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
positive = pytest.mark.parametrize("case", [c for c in CASES if c.is_positive], ids=lambda c: c.id)


def planned(case: Case) -> tuple[World, Planned]:
    world = documents.world_before(case)
    return world, make_plan(world, VERSION, case.migration)


def ready(case: Case) -> tuple[World, Planned, MigrationPlan]:
    world, found = planned(case)
    assert not has_errors(found.diagnostics), documents.diagnostics_text(found.diagnostics)
    assert found.plan is not None
    assert found.plan.ready, found.plan.conflicts
    return world, found, found.plan


@every
def test_what_is_told(case: Case) -> None:
    """Errors, conflicts and warnings are as written."""
    _, found = planned(case)
    key = "error" if "error" in case.says else "warnings"
    assert documents.diagnostics_text(found.diagnostics) == case.text(key)
    assert has_errors(found.diagnostics) == ("error" in case.says)
    conflicts = documents.conflicts_text(found.plan) if found.plan else ""
    assert conflicts == case.text("conflicts")


@positive
def test_the_difference_gives_the_plan(case: Case) -> None:
    _, _, plan = ready(case)
    assert documents.plan_text(plan) == case.text("plan")


@positive
def test_statements_are_as_written(case: Case) -> None:
    _, _, plan = ready(case)
    assert documents.statements_text(plan) == case.text("statements")


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
        assert comparable(made, with_ids=False) == comparable(table, with_ids=False)
        if not case.by_hand:
            base = comparable(found.base.tables[name], with_ids=True)
            assert _in_any_order(base) == _in_any_order(comparable(made, with_ids=True))
    ids = {p: i for n in goal if (t := there[n]) is not None for p, i in ids_of(t).items()}
    assert {path: ids.get(path) for path in case.says.get("ids", {})} == case.says.get("ids", {})


@positive
def test_planning_again_gives_nothing(case: Case) -> None:
    """Neither for who has recorded it, nor for who has lost the record and sees the tables alone."""
    world, found, _ = ready(case)
    done = documents.after(world, found)
    again = make_plan(World(world.base, done.actual, done.namespaces), VERSION, case.migration)
    assert again.plan is not None
    assert not again.plan.conflicts
    assert documents.statements_text(again.plan) == ""
    for table in done.base.tables.values():
        entry = documents.document_of(table)
        same = plan_entry(done, "0101", entry)
        assert same.plan is not None
        assert documents.plan_text(same.plan) == ""


@positive
def test_undoing_leads_back(case: Case) -> None:
    """A plan without loss leads back to the tables before; where it waits for a condition, the condition holds."""
    world, found, plan = ready(case)
    done = documents.after(world, found)
    for table in plan.tables:
        answers = [c.reversal.answer for c in table.changes()]
        lossy = Reversible.NO in answers or not answers
        if lossy or table.formerly is None or table.wanted is None:
            continue
        there, before = done.actual[documents.HERE.physical(table.declared)], world.actual[table.name]
        assert there is not None
        assert before is not None
        base, wanted = done.base.tables[table.declared], world.base.tables[table.formerly]
        back = documents.undone(wanted, base, there)
        assert _in_any_order(comparable(back, with_ids=True)) == _in_any_order(
            comparable(before, with_ids=True)
        )


def _in_any_order(told: dict[str, Any]) -> dict[str, Any]:
    """Without the order of the partition fields: one that comes back comes last, and means the same."""
    return told | {"partition_by": sorted(told["partition_by"])}


@every
def test_a_plan_goes_through_a_file_unchanged(case: Case) -> None:
    world, found = planned(case)
    if found.plan is None:
        assert "error" in case.says
        return
    plan = Plan(
        "market", "local", "here", CATALOG, (found.plan,), based_on=dict(world.actual), base=world.base
    )
    assert loads(dumps(plan), "plan.json") == plan


@every
def test_a_case_stands_where_it_belongs(case: Case) -> None:
    if case.folder not in BY_KIND or "error" in case.says:
        return
    _, found = planned(case)
    assert found.plan is not None
    kinds = {c.change.kind for c in found.plan.changes()}
    assert case.folder in kinds or case.says.get("plan") is None or found.plan.tables[0].notes


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
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
