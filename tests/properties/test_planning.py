"""The laws of planning: random tables, random migrations written as YAML, random changes by other hands."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import assume, event, given

import icemigrate
from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Reversibility
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState, TableTarget
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import children, is_nested
from icemigrate.planning.merge import merge_tables, with_catalog_ids
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text, plan_from_json
from icemigrate.planning.table_difference import find_difference, remaining_differences
from icemigrate.render.json_documents import plan_document
from icemigrate.results.command_results import PlanResult
from tests.support.evolution_strategies import NAME, Evolution, befores, evolutions
from tests.support.replayed_migrations import replay_text
from tests.support.shared_plans import Judged, plan_text, plan_value
from tests.support.table_facts import GONE, conflicting, facts, renumbered

ALL = ("destructive", "incompatible", "irreversible")
VALIDATOR = jsonschema.Draft202012Validator(
    json.loads(
        (Path(icemigrate.__file__).parent / "schemas" / "plan.schema.json").read_text(encoding="utf-8")
    )
)


def state(table: Table) -> DeclaredState:
    return DeclaredState({table.name: table}, frozenset({table.name.namespace}))


def migration(evolution: Evolution) -> str:
    return format_migration_file([entry_between(evolution.before, evolution.wanted)], allow=ALL)


def planned(evolution: Evolution) -> Judged:
    judged = plan_text(migration(evolution), state(evolution.before), {NAME: evolution.actual})
    assert not judged.said, "what is written is read again without a mistake"
    event("ready" if judged.ready else "conflict" if judged.table.conflicts else "refused")
    return judged


def folded(evolution: Evolution) -> TableTarget:
    """What the migration wants, as the fold of its text has it."""
    (wanted,) = replay_text(migration(evolution), state(evolution.before)).wanted
    return wanted


def declared(evolution: Evolution) -> Table:
    """The table of it."""
    wanted = folded(evolution).table
    assert wanted is not None
    return wanted


@given(evolutions(by_hand=False))
def test_a_plan_leads_from_what_was_to_what_is_wanted(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert not judged.table.conflicts
    assert "unproved" not in judged.rules
    assume(judged.ready)
    outcome = judged.after
    wanted = with_catalog_ids(declared(evolution), outcome)
    assert facts(outcome) == facts(wanted)
    assert orders(outcome) == orders(wanted)
    kept = {f.id for _, f in evolution.wanted.schema.walk() if f.id > 0}
    fresh = {f.id for _, f in outcome.schema.walk()} - kept
    assert all(i > evolution.before.last_column_id for i in fresh), "a new field never takes an old id"


def orders(table: Table) -> list[list[int]]:
    """Ids of all siblings, in their order."""
    return [
        [f.id for f in children(t)]
        for t in (table.schema.root, *(f.type for _, f in table.schema.walk() if is_nested(f.type)))
    ]


@given(evolutions())
def test_wanted_facts_come_and_those_of_others_stay(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert "unproved" not in judged.rules
    assume(judged.ready)
    wanted = with_catalog_ids(declared(evolution), judged.after)
    base, want, have, out = map(facts, (evolution.before, wanted, evolution.actual, judged.after))
    for key in base.keys() | want.keys() | have.keys() | out.keys():
        b, w, a = (side.get(key, GONE) for side in (base, want, have))
        if b != w:
            assert out.get(key, GONE) == w, key
        elif not _goes_along(evolution, key):
            assert out.get(key, GONE) == a, key


def _goes_along(evolution: Evolution, key: tuple[object, ...]) -> bool:
    """Whether a fact is of a field inside one that goes."""
    field_id, there = key[0], schema_index(evolution.actual.schema)
    gone = schema_index(evolution.before.schema).keys() - schema_index(evolution.wanted.schema).keys()
    while isinstance(field_id, int):
        if field_id in gone:
            return True
        field_id = there[field_id].parent if field_id in there else None
    return False


@given(evolutions())
def test_a_conflict_is_a_fact_that_is_neither_as_it_was_nor_as_wanted(evolution: Evolution) -> None:
    judged = planned(evolution)
    expected = conflicting(evolution, folded(evolution))
    assert bool(judged.table.conflicts) == bool(expected), (judged.table.conflicts, expected)
    of_table = {c.fact.partition(":")[2].split(".")[0] for c in judged.table.conflicts} - {"columns"}
    named = {"identifier": "identifier", "spec": "partition_by", "order": "sort_by"}
    named |= {"format": "format_version", "property": "properties", "ref": "tags"}
    assert of_table == {named[str(key[0])] for key in expected if isinstance(key, tuple)}


@given(evolutions())
def test_overwriting_every_conflict_leaves_none(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.table.conflicts)
    wanted = declared(evolution)
    facts_ = frozenset(c.fact for c in judged.table.conflicts)
    left = merge_tables(evolution.before, wanted, evolution.actual, overwrite=facts_).conflicts
    # Only what rests on fields that somebody dropped stays refused.
    assert all("absent" in c.actual or "there is no" in c.actual for c in left)


@given(evolutions())
def test_a_plan_that_has_run_leaves_nothing_to_do(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.ready)
    outcome = judged.after
    # A run that died before its record: base is what it was.
    again = plan_text(migration(evolution), state(evolution.before), {NAME: outcome})
    assert again.ready
    assert again.table.steps == ()
    # And with the record: base is what was settled.
    base = with_catalog_ids(declared(evolution), outcome)
    nothing = plan_value(TableTarget(NAME, base, NAME), (), state(base), outcome)
    assert nothing.table.steps == ()
    assert nothing.table.conflicts == ()


@given(evolutions())
def test_a_run_that_died_is_finished_by_the_next(evolution: Evolution) -> None:
    judged = planned(replace(evolution, actual=evolution.before))
    assume(judged.ready)
    found = list(judged.table.changes())
    for done in range(len(found)):
        half = reduce(lambda t, c: c.change.apply(t), found[:done], evolution.before)
        rest = plan_text(migration(evolution), state(evolution.before), {NAME: half})
        assert not rest.table.conflicts
        assert "unproved" not in rest.rules
        if rest.ready:
            top = evolution.before.last_column_id
            assert by_name(rest.after, top) == by_name(judged.after, top)


def by_name(table: Table, above: int) -> dict[tuple[object, ...], Any]:
    """The facts of a table; new fields by name, since which of them comes first depends on what was done."""
    ids = {i: e.path for i, e in schema_index(table.schema).items() if i > above}
    return renumbered(table, ids)


@given(evolutions())
def test_a_plan_is_the_same_as_a_file(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert judged.plan is not None
    plan = Plan(
        "p",
        "local",
        "sqlite:x",
        "lake",
        (judged.plan,),
        (("0001", "sum"),),
        {NAME: evolution.actual},
        state(evolution.before),
        frozenset({"db.t:identifier"}),
        "1",
    )
    assert parse_plan_file(plan_file_text(plan), "plan.json") == plan
    shown = json.loads(json.dumps(plan_document(PlanResult(plan))))
    VALIDATOR.validate(shown)
    assert plan_from_json(shown) == plan


@given(befores())
def test_a_declared_table_is_made_as_declared(table: Table) -> None:
    bare = replace(table, refs={}, uuid=None)
    judged = plan_text(format_migration_file([creation_entry(bare)]), EMPTY_STATE, {})
    assert not judged.said
    assert judged.plan is not None
    (plan,) = judged.plan.tables
    assert plan.wanted is not None
    assume(judged.ready)
    made = judged.after
    assert facts(with_catalog_ids(plan.wanted, made)).items() <= facts(made).items()
    again = plan_text(
        format_migration_file([creation_entry(bare)]), EMPTY_STATE, {NAME: made}, version="0002"
    )
    assert again.ready
    assert again.table.steps == (), "a creation that was cut short is found done"


@given(evolutions())
def test_a_lossless_plan_is_undone_by_merging_with_base_and_wanted_exchanged(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.ready)
    assume(all(c.reversal.answer is not Reversibility.NO for c in judged.table.changes()))
    outcome = judged.after
    back = merge_tables(with_catalog_ids(declared(evolution), outcome), evolution.before, outcome)
    alone = evolution.actual == evolution.before
    wrong = any(not b.is_warning for b in validation.find_violations(back.target, outcome))
    # What others did may stand in the way, and is not undone; or may forbid what was before.
    assume(alone or not (back.conflicts or wrong))
    assert not back.conflicts
    undoing = find_difference(outcome, back.target, CHANGE_KINDS)
    assert remaining_differences(undoing, CHANGE_KINDS) == ()
    if alone:
        assert facts(undoing.after) == facts(evolution.before)
    else:
        # What the migration did is gone, whatever others did meanwhile.
        want, was = facts(with_catalog_ids(declared(evolution), outcome)), facts(evolution.before)
        undone = facts(undoing.after)
        ours = {key for key in want.keys() | was.keys() if want.get(key, GONE) != was.get(key, GONE)}
        assert {k: undone.get(k, GONE) for k in ours} == {k: was.get(k, GONE) for k in ours}
